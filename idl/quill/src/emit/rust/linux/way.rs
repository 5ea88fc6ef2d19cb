// The way of messages, tables of objects and of context handles: the second part of the module `rt` of outputs over sockets.

/// Says for which object of a server the requests are that follow on this connection; 0 is for the one that it began with.
pub fn select(transport: &mut impl Transport, object: Object) -> Result<(), Failure> {
    match transport.call(SELECT, &object.0.to_le_bytes())? {
        (0, _) => Ok(()),
        (label, _) => Err(Failure::Refused(label)),
    }
}

/// The context handles that a client has open, each with the number of its type.
#[derive(Debug, Default)]
pub struct Contexts {
    open: std::collections::BTreeSet<(usize, u64)>,
}

impl Contexts {
    /// Whether a request may have that handle: it is open, or none.
    pub fn holds(&self, kind: usize, handle: u64) -> bool {
        handle == 0 || self.open.contains(&(kind, handle))
    }

    /// A method was given one handle, and gave back another one: the first is closed, the second open, unless they are the same.
    pub fn change(&mut self, kind: usize, before: u64, after: u64) {
        if before != after {
            self.open.remove(&(kind, before));
        }
        if after != 0 {
            self.open.insert((kind, after));
        }
    }

    /// How many are open.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Takes one out: its type and number.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Option<(usize, u64)> {
        self.open.pop_first()
    }
}

/// Answers requests for an object.
type Answers = dyn FnMut(u32, &[u8]) -> Option<(u32, Vec<u8>)> + Send;
/// An object that a table and connections share.
type Exported = std::sync::Arc<std::sync::Mutex<Answers>>;

/// A server's table of the objects that clients may call, whichever connection they have. Its copies are the same table.
#[derive(Clone, Default)]
pub struct Objects {
    all: std::sync::Arc<std::sync::Mutex<std::collections::HashMap<u64, Exported>>>,
    last: std::sync::Arc<std::sync::atomic::AtomicU64>,
}

impl Objects {
    /// A table without objects.
    pub fn new() -> Objects {
        Objects::default()
    }

    fn all(&self) -> std::sync::MutexGuard<'_, std::collections::HashMap<u64, Exported>> {
        self.all.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Takes an object into the table; `dispatch` is that of its interface's module. No number is given twice.
    pub fn export(
        &self,
        dispatch: impl FnMut(u32, &[u8]) -> Option<(u32, Vec<u8>)> + Send + 'static,
    ) -> Object {
        let number = self.last.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        self.all().insert(number, std::sync::Arc::new(std::sync::Mutex::new(dispatch)));
        Object(number)
    }

    /// Takes an object out of the table. Who has selected it may go on to call it. Whether it was there.
    pub fn withdraw(&self, object: Object) -> bool {
        self.all().remove(&object.0).is_some()
    }

    /// Serves one connection until the client closes it: first for the object `root`, later for whichever the client selects.
    pub fn serve(&self, stream: &mut (impl Read + Write), root: Object) -> Result<(), Failure> {
        let mut selected = self.all().get(&root.0).cloned();
        serve(stream, |label, body| {
            if label != SELECT {
                let Some(object) = &selected else { return Some((NO_OBJECT, Vec::new())) };
                let mut answers = object.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                return answers(label, body);
            }
            let Ok(number) = body.try_into().map(u64::from_le_bytes) else {
                return Some((MALFORMED, Vec::new()));
            };
            let number = if number == 0 { root.0 } else { number };
            let Some(object) = self.all().get(&number).cloned() else { return Some((NO_OBJECT, Vec::new())) };
            selected = Some(object);
            Some((0, Vec::new()))
        })
    }
}

impl std::fmt::Debug for Objects {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{} objects", self.all().len())
    }
}

/// A way to a server.
pub trait Transport {
    /// Sends a request and waits for the reply: its label and body.
    fn call(&mut self, label: u32, body: &[u8]) -> Result<(u32, Vec<u8>), Failure>;
    /// Sends a request to which nothing comes back.
    fn send(&mut self, label: u32, body: &[u8]) -> Result<(), Failure>;
    /// Sends a request, and reads the reply where it is. Stubs call; who has a shorter way than a body of its own for each has it here.
    fn exchange<T, E: From<Failure>>(
        &mut self,
        label: u32,
        request: &mut Out,
        read: impl FnOnce(u32, &[u8]) -> Result<T, E>,
    ) -> Result<T, E>
    where
        Self: Sized,
    {
        let (label, reply) = self.call(label, &std::mem::take(request).finish()?)?;
        read(label, &reply)
    }
    /// Sends a request so to which nothing comes back.
    fn tell(&mut self, label: u32, request: &mut Out) -> Result<(), Failure>
    where
        Self: Sized,
    {
        self.send(label, &std::mem::take(request).finish()?)
    }
}

/// A connection, such as a `UnixStream`, or a `TcpStream` that delays nothing.
impl<S: Read + Write> Transport for S {
    fn call(&mut self, label: u32, body: &[u8]) -> Result<(u32, Vec<u8>), Failure> {
        self.send(label, body)?;
        with_reply(self, |label, body| Ok((label, body.to_vec())))
    }
    fn send(&mut self, label: u32, body: &[u8]) -> Result<(), Failure> {
        write_message(self, label, body).map_err(Failure::Io)
    }
    #[inline]
    fn exchange<T, E: From<Failure>>(
        &mut self,
        label: u32,
        request: &mut Out,
        read: impl FnOnce(u32, &[u8]) -> Result<T, E>,
    ) -> Result<T, E> {
        request.write_to(self, label)?;
        with_reply(self, read)
    }
    fn tell(&mut self, label: u32, request: &mut Out) -> Result<(), Failure> {
        request.write_to(self, label)
    }
}

/// A request of up to so many bytes, with its header, is taken in by one read.
const ARRIVALS_BYTES: usize = 4224;
/// A reply of up to so many bytes is; less, since their place is cleared for each call.
const REPLY_BYTES: usize = 512;
/// Room that is made for a body before its bytes have come, at most.
const CLAIMED_BYTES_MAX: usize = 64 << 10;

/// Writes a message: label, length, body.
pub fn write_message(stream: &mut impl Write, label: u32, body: &[u8]) -> std::io::Result<()> {
    let mut message = Vec::with_capacity(HEADER_BYTES + body.len());
    message.extend_from_slice(&label.to_le_bytes());
    message.extend_from_slice(&(body.len() as u32).to_le_bytes());
    message.extend_from_slice(body);
    stream.write_all(&message)
}

/// Reads until `have` bytes are `wanted` or more, and as many as have come; how many they are. 0 when the other side has closed before the first.
#[inline]
fn fill(stream: &mut impl Read, bytes: &mut [u8], mut have: usize, wanted: usize) -> Result<usize, Failure> {
    while have < wanted {
        match stream.read(&mut bytes[have..]) {
            Ok(0) if have == 0 => return Ok(0),
            Ok(0) => return Err(Failure::Malformed),
            Ok(count) => have += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Failure::Io(error)),
        }
    }
    Ok(have)
}

/// Label and length in a header.
#[inline]
fn header(bytes: &[u8]) -> Result<(u32, usize), Failure> {
    let word = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    match (word(0), word(4)) {
        (Some(label), Some(length)) if length as usize <= BODY_BYTES_MAX => Ok((label, length as usize)),
        _ => Err(Failure::Malformed),
    }
}

/// A body of that length, of which the first bytes are there already. Memory is taken for what comes, not for what is claimed.
fn read_body(stream: &mut impl Read, here: &[u8], length: usize) -> Result<Vec<u8>, Failure> {
    let left = length.checked_sub(here.len()).ok_or(Failure::Malformed)?;
    let mut body = Vec::with_capacity(length.min(CLAIMED_BYTES_MAX));
    body.extend_from_slice(here);
    if left > 0 {
        stream.take(left as u64).read_to_end(&mut body).map_err(Failure::Io)?;
    }
    if body.len() == length { Ok(body) } else { Err(Failure::Malformed) }
}

/// Reads a message, and nothing of what comes behind it; `None` when the other side has closed the connection between two.
pub fn read_message(stream: &mut impl Read) -> Result<Option<(u32, Vec<u8>)>, Failure> {
    let mut bytes = [0; HEADER_BYTES];
    if fill(stream, &mut bytes, 0, HEADER_BYTES)? == 0 {
        return Ok(None);
    }
    let (label, length) = header(&bytes)?;
    Ok(Some((label, read_body(stream, &[], length)?)))
}

/// Reads the reply to a request where it arrives; a longer one has a place of its own. Nothing follows it before the next request, so a read may bring all of it.
#[inline]
fn with_reply<T, E: From<Failure>>(
    stream: &mut impl Read,
    read: impl FnOnce(u32, &[u8]) -> Result<T, E>,
) -> Result<T, E> {
    let mut bytes = [0; REPLY_BYTES];
    let have = fill(stream, &mut bytes, 0, HEADER_BYTES)?;
    if have == 0 {
        return Err(Failure::Io(std::io::ErrorKind::UnexpectedEof.into()).into());
    }
    let (label, length) = header(&bytes)?;
    let whole = HEADER_BYTES + length;
    if whole > bytes.len() {
        let body = read_body(stream, &bytes[HEADER_BYTES..have], length)?;
        return read(label, &body);
    }
    if have > whole {
        return Err(Failure::Malformed.into());
    }
    if have < whole {
        fill(stream, &mut bytes[..whole], have, whole)?;
    }
    read(label, &bytes[HEADER_BYTES..whole])
}

/// Bytes that have come on a connection, and belong to requests that nobody has looked at yet.
struct Arrivals {
    bytes: Vec<u8>,
    begin: usize,
    end: usize,
}

impl Arrivals {
    /// Whether so many bytes are there, in one piece: waits for them. None are when the other side has closed before the first.
    fn wait_for(&mut self, stream: &mut impl Read, count: usize) -> Result<bool, Failure> {
        let have = self.end - self.begin;
        if have == 0 {
            self.begin = 0;
        }
        if count > self.bytes.len() - self.begin {
            self.bytes.copy_within(self.begin..self.end, 0);
            self.begin = 0;
        }
        let have = fill(stream, &mut self.bytes[self.begin..], have, count)?;
        self.end = self.begin + have;
        Ok(have > 0)
    }

    /// The next request, whose body stays where it has arrived if it is short; `None` when there is none any more.
    fn next(&mut self, stream: &mut impl Read) -> Result<Option<(u32, Cow<'_, [u8]>)>, Failure> {
        if !self.wait_for(stream, HEADER_BYTES)? {
            return Ok(None);
        }
        let (label, length) = header(&self.bytes[self.begin..self.end])?;
        if length > self.bytes.len() - HEADER_BYTES {
            let here = self.begin + HEADER_BYTES..self.end;
            (self.begin, self.end) = (0, 0);
            let body = read_body(stream, &self.bytes[here], length)?;
            return Ok(Some((label, Cow::Owned(body))));
        }
        self.wait_for(stream, HEADER_BYTES + length)?;
        let body = self.begin + HEADER_BYTES..self.begin + HEADER_BYTES + length;
        self.begin = body.end;
        Ok(Some((label, Cow::Borrowed(&self.bytes[body]))))
    }
}

/// Serves one connection until the client closes it. `dispatch` is that of an interface's module.
pub fn serve(
    stream: &mut (impl Read + Write),
    mut dispatch: impl FnMut(u32, &[u8]) -> Option<(u32, Vec<u8>)>,
) -> Result<(), Failure> {
    let mut arrivals = Arrivals { bytes: vec![0; ARRIVALS_BYTES], begin: 0, end: 0 };
    while let Some((label, body)) = arrivals.next(stream)? {
        if let Some((label, body)) = dispatch(label, &body) {
            write_message(stream, label, &body).map_err(Failure::Io)?;
        }
    }
    Ok(())
}

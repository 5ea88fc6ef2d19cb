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
}

impl Transport for UnixStream {
    fn call(&mut self, label: u32, body: &[u8]) -> Result<(u32, Vec<u8>), Failure> {
        self.send(label, body)?;
        read_message(self)?.ok_or(Failure::Io(std::io::ErrorKind::UnexpectedEof.into()))
    }
    fn send(&mut self, label: u32, body: &[u8]) -> Result<(), Failure> {
        write_message(self, label, body).map_err(Failure::Io)
    }
}

/// Writes a message: label, length, body.
pub fn write_message(stream: &mut impl Write, label: u32, body: &[u8]) -> std::io::Result<()> {
    let mut message = Vec::with_capacity(8 + body.len());
    message.extend_from_slice(&label.to_le_bytes());
    message.extend_from_slice(&(body.len() as u32).to_le_bytes());
    message.extend_from_slice(body);
    stream.write_all(&message)
}

/// Reads a message; `None` when the other side has closed the connection between two.
pub fn read_message(stream: &mut impl Read) -> Result<Option<(u32, Vec<u8>)>, Failure> {
    let mut header = [0; 8];
    let mut filled = 0;
    while filled < header.len() {
        match stream.read(&mut header[filled..]) {
            Ok(0) if filled == 0 => return Ok(None),
            Ok(0) => return Err(Failure::Malformed),
            Ok(count) => filled += count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Failure::Io(error)),
        }
    }
    let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let length = word(4) as usize;
    if length > BODY_BYTES_MAX {
        return Err(Failure::Malformed);
    }
    let mut body = Vec::new();
    stream.take(length as u64).read_to_end(&mut body).map_err(Failure::Io)?;
    if body.len() == length { Ok(Some((word(0), body))) } else { Err(Failure::Malformed) }
}

/// Serves one connection until the client closes it. `dispatch` is that of an interface's module.
pub fn serve(
    stream: &mut (impl Read + Write),
    mut dispatch: impl FnMut(u32, &[u8]) -> Option<(u32, Vec<u8>)>,
) -> Result<(), Failure> {
    while let Some((label, body)) = read_message(stream)? {
        if let Some((label, body)) = dispatch(label, &body) {
            write_message(stream, label, &body).map_err(Failure::Io)?;
        }
    }
    Ok(())
}

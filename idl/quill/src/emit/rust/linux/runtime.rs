// Messages and their values: the first part of the module `rt` of outputs over sockets.
// Lines that end in "any" are there for values in an `any`, and left out of files that have none.

use std::any::{Any, TypeId};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{Read, Write};
/// A value that several others may share.
pub use std::sync::Arc as Shared;

/// The largest body of a message.
pub const BODY_BYTES_MAX: usize = 16 << 20;
/// Bytes in front of a body: label, length.
const HEADER_BYTES: usize = 8;
/// A body of up to so many bytes is made without the heap.
const FIRST_BYTES: usize = 248;
/// Values within values, at most: a hostile message cannot nest deeper.
const DEPTH_MAX: usize = 64;
/// Bytes of elements and of what may be absent, in one message: a few bytes of it could be a great value.
const HEAP_BYTES_MAX: usize = 64 << 20;
/// Labels of replies from here on are errors of the transport.
const LABEL_ERROR: u32 = 0xffff_0000;
/// The request was no valid message of its method.
pub const MALFORMED: u32 = LABEL_ERROR;
/// There is no such method.
pub const NO_METHOD: u32 = LABEL_ERROR + 1;
/// There is no such object.
pub const NO_OBJECT: u32 = LABEL_ERROR + 2;
/// The client has no such context handle open.
pub const NO_CONTEXT: u32 = LABEL_ERROR + 3;
/// A request that says for which object those are that come after it.
const SELECT: u32 = LABEL_ERROR + 0x8000;

/// Why a call failed, other than by an exception of the server.
#[derive(Debug)]
pub enum Failure {
    /// The connection did.
    Io(std::io::Error),
    /// The reply is no valid message.
    Malformed,
    /// The server refused the request: [`MALFORMED`], [`NO_METHOD`], or an error of its own.
    Refused(u32),
    /// An argument is too long for its type or for a message.
    TooLong,
}

impl From<Malformed> for Failure {
    fn from(_: Malformed) -> Failure {
        Failure::Malformed
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Failure::Io(error) => write!(f, "the connection failed: {error}"),
            Failure::Malformed => f.write_str("the reply is malformed"),
            Failure::Refused(label) => write!(f, "the server refused the request ({label:#x})"),
            Failure::TooLong => f.write_str("an argument is too long"),
        }
    }
}

impl std::error::Error for Failure {}

/// The bytes are no value of the type that is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// A body that is being written.
#[derive(Debug)]
pub struct Out {
    /// Room for a header, and the body as long as it is short; zeros behind it.
    near: [u8; HEADER_BYTES + FIRST_BYTES],
    /// The body once it is longer, without a header.
    far: Vec<u8>,
    length: usize,
    packed: bool, // any
    /// Where values lie that may be shared, of which types they are, and the numbers that they have in the message.
    shared: Option<BTreeMap<(usize, TypeId), u32>>,
}

/// An empty one.
impl Default for Out {
    fn default() -> Out {
        Out {
            packed: false, // any
            near: [0; HEADER_BYTES + FIRST_BYTES], far: Vec::new(), length: 0, shared: None }
    }
}

impl Out {
    /// So many zeros more, which become something else.
    #[inline]
    fn extend(&mut self, count: usize) -> &mut [u8] {
        let begin = self.length;
        let end = begin.saturating_add(count);
        if end > FIRST_BYTES || !self.far.is_empty() {
            return self.extend_far(count);
        }
        self.length = end;
        &mut self.near[HEADER_BYTES + begin..HEADER_BYTES + end]
    }

    /// These zeros, where longer bodies are.
    #[cold]
    fn extend_far(&mut self, count: usize) -> &mut [u8] {
        let begin = self.length;
        self.length = begin.saturating_add(count);
        if self.far.is_empty() {
            self.far.reserve(self.length);
            self.far.extend_from_slice(&self.near[HEADER_BYTES..HEADER_BYTES + begin]);
        }
        self.far.resize(self.length, 0);
        &mut self.far[begin..]
    }

    /// Pads to a multiple of `align`.
    pub fn align(&mut self, align: usize) {
        self.at(self.length.next_multiple_of(align));
    }

    /// Pads to where the layout puts the next value.
    pub fn at(&mut self, offset: usize) {
        assert!(self.length <= offset, "the layout goes forward");
        if self.length < offset {
            self.extend(offset - self.length);
        }
    }

    /// The body as far as it has been written.
    fn bytes(&self) -> &[u8] {
        if self.far.is_empty() { &self.near[HEADER_BYTES..HEADER_BYTES + self.length] } else { &self.far }
    }

    /// The finished body.
    pub fn finish(self) -> Result<Vec<u8>, Failure> {
        if self.length > BODY_BYTES_MAX {
            return Err(Failure::TooLong);
        }
        Ok(if self.far.is_empty() { self.bytes().to_vec() } else { self.far })
    }

    /// Writes the message with that label and this body; a short one from where it is.
    #[inline(always)]
    fn write_to(&mut self, stream: &mut impl Write, label: u32) -> Result<(), Failure> {
        if !self.far.is_empty() {
            return match self.far.len() {
                ..=BODY_BYTES_MAX => write_message(stream, label, &self.far).map_err(Failure::Io),
                _ => Err(Failure::TooLong),
            };
        }
        let header = u64::from(label) | (self.length as u64) << 32;
        self.near[..HEADER_BYTES].copy_from_slice(&header.to_le_bytes());
        let message = &self.near[..HEADER_BYTES + self.length];
        match stream.write(message) {
            Ok(count) if count == message.len() => Ok(()),
            Err(error) if error.kind() != std::io::ErrorKind::Interrupted => Err(Failure::Io(error)),
            some => stream.write_all(message.get(some.unwrap_or(0)..).unwrap_or_default()).map_err(Failure::Io),
        }
    }
}

/// A body that is being read. Every step checks that the bytes are there.
#[derive(Debug)]
pub struct In<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: usize,
    heap_bytes: usize,
    packed: bool, // any
    /// Values that may be shared, by their numbers; none while they are being read.
    shared: Vec<Option<Shared<dyn Any + Send + Sync>>>,
}

impl<'a> In<'a> {
    /// Starts at the front.
    pub fn new(bytes: &'a [u8]) -> In<'a> {
        In {
            packed: false, // any
            bytes, at: 0, depth: 0, heap_bytes: 0, shared: Vec::new() }
    }

    #[inline]
    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let end = self.at.checked_add(count).ok_or(Malformed)?;
        let bytes = self.bytes.get(self.at..end).ok_or(Malformed)?;
        self.at = end;
        Ok(bytes)
    }

    /// Skips to a multiple of `align`.
    #[inline]
    pub fn align(&mut self, align: usize) -> Result<(), Malformed> {
        self.take(self.at.next_multiple_of(align) - self.at).map(drop)
    }

    /// Skips to where the layout puts the next value.
    pub fn at(&mut self, offset: usize) -> Result<(), Malformed> {
        self.take(offset.checked_sub(self.at).ok_or(Malformed)?).map(drop)
    }

    /// Whether `count` elements of `size` bytes can be there at all; asked before anything is allocated.
    pub fn has(&self, count: usize, size: usize) -> Result<usize, Malformed> {
        let left = self.bytes.len() - self.at;
        if count.checked_mul(size).is_some_and(|n| n <= left) { Ok(count) } else { Err(Malformed) }
    }

    /// Takes room on the heap.
    fn room(&mut self, bytes: usize) -> Result<(), Malformed> {
        self.heap_bytes = self.heap_bytes.saturating_add(bytes);
        if self.heap_bytes <= HEAP_BYTES_MAX { Ok(()) } else { Err(Malformed) }
    }

    /// Elements whose number is known.
    pub fn elements<T: Wire>(&mut self, count: usize) -> Result<Vec<T>, Malformed> {
        let count = self.has(count, 1)?;
        self.room(count.saturating_mul(size_of::<T>()))?;
        T::get_all(self, count)
    }

    /// Text of so many bytes.
    pub fn text(&mut self, bytes: usize) -> Result<String, Malformed> {
        String::from_utf8(self.take(bytes)?.to_vec()).map_err(|_| Malformed)
    }

    /// The end: nothing may be left.
    #[inline]
    pub fn finish(self) -> Result<(), Malformed> {
        if self.at == self.bytes.len() { Ok(()) } else { Err(Malformed) }
    }

    /// Reads one level deeper.
    pub fn nested<T>(
        &mut self,
        read: impl FnOnce(&mut Self) -> Result<T, Malformed>,
    ) -> Result<T, Malformed> {
        if self.depth == DEPTH_MAX {
            return Err(Malformed);
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }
}

/// A type whose values travel in messages.
pub trait Wire: Sized {
    /// Writes a value.
    fn put(&self, out: &mut Out);
    /// Reads and checks a value.
    fn get(from: &mut In) -> Result<Self, Malformed>;
    /// Writes values one behind the other.
    fn put_all(list: &[Self], out: &mut Out) {
        list.iter().for_each(|value| value.put(out));
    }
    /// Reads so many values, for which there is room.
    fn get_all(from: &mut In, count: usize) -> Result<Vec<Self>, Malformed> {
        let mut list = Vec::with_capacity(count);
        for _ in 0..count {
            list.push(Self::get(from)?);
        }
        Ok(list)
    }
    /// Bytes that are looked at when something is compared with what is in it, as far as declared types.
    fn weight(&self) -> usize {
        0
    }
}

macro_rules! number {
    ($($ty:ty)*) => {$(
        impl Wire for $ty {
            #[inline]
            fn put(&self, out: &mut Out) {
                out.align(size_of::<$ty>());
                out.extend(size_of::<$ty>()).copy_from_slice(&self.to_le_bytes());
            }
            #[inline]
            fn get(from: &mut In) -> Result<$ty, Malformed> {
                from.align(size_of::<$ty>())?;
                let bytes = from.take(size_of::<$ty>())?;
                Ok(<$ty>::from_le_bytes(bytes.try_into().map_err(|_| Malformed)?))
            }
            // All bytes are values, so a list is copied in one piece. Nothing is aligned where nothing follows.
            fn put_all(list: &[$ty], out: &mut Out) {
                if list.is_empty() {
                    return;
                }
                out.align(size_of::<$ty>());
                let places = out.extend(size_of_val(list)).chunks_exact_mut(size_of::<$ty>());
                places.zip(list).for_each(|(place, value)| place.copy_from_slice(&value.to_le_bytes()));
            }
            fn get_all(from: &mut In, count: usize) -> Result<Vec<$ty>, Malformed> {
                if count == 0 {
                    return Ok(Vec::new());
                }
                from.align(size_of::<$ty>())?;
                let bytes = from.take(count.checked_mul(size_of::<$ty>()).ok_or(Malformed)?)?;
                let values = bytes.chunks_exact(size_of::<$ty>());
                Ok(values.map(|value| <$ty>::from_le_bytes(value.try_into().unwrap_or_default())).collect())
            }
        }
    )*};
}

number!(u16 u32 u64 i8 i16 i32 i64 f32 f64);

/// Bytes, which are copied as they are.
impl Wire for u8 {
    fn put(&self, out: &mut Out) {
        out.extend(1)[0] = *self;
    }
    fn get(from: &mut In) -> Result<u8, Malformed> {
        Ok(from.take(1)?[0])
    }
    fn put_all(list: &[u8], out: &mut Out) {
        out.extend(list.len()).copy_from_slice(list);
    }
    fn get_all(from: &mut In, count: usize) -> Result<Vec<u8>, Malformed> {
        Ok(from.take(count)?.to_vec())
    }
}

impl Wire for bool {
    fn put(&self, out: &mut Out) {
        u8::from(*self).put(out);
    }
    fn get(from: &mut In) -> Result<bool, Malformed> {
        match u8::get(from)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Malformed),
        }
    }
}

impl Wire for char {
    fn put(&self, out: &mut Out) {
        u32::from(*self).put(out);
    }
    fn get(from: &mut In) -> Result<char, Malformed> {
        char::from_u32(u32::get(from)?).ok_or(Malformed)
    }
}

impl Wire for String {
    fn put(&self, out: &mut Out) {
        put_count(self.len(), out);
        put_text(self, out);
        put_end(out); // any
    }
    fn get(from: &mut In) -> Result<String, Malformed> {
        let count = u32::get(from)? as usize;
        if from.packed { return get_packed_text(count, from); } // any
        from.text(count)
    }
    fn weight(&self) -> usize {
        self.len()
    }
}

impl<T: Wire> Wire for Option<T> {
    fn put(&self, out: &mut Out) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }
    fn get(from: &mut In) -> Result<Option<T>, Malformed> {
        if bool::get(from)? { from.nested(T::get).map(Some) } else { Ok(None) }
    }
    fn weight(&self) -> usize {
        self.as_ref().map_or(0, T::weight)
    }
}

/// A value that several others may share: 0 if it is absent, 1 before one that is new, 2 before the number of one that was there before.
impl<T: Wire + Send + Sync + 'static> Wire for Option<Shared<T>> {
    fn put(&self, out: &mut Out) {
        let Some(value) = self else { return 0u8.put(out) };
        let shared = out.shared.get_or_insert_default();
        let next = u32::try_from(shared.len()).unwrap_or(u32::MAX);
        match shared.entry((Shared::as_ptr(value).addr(), TypeId::of::<T>())) {
            Entry::Occupied(known) => {
                let number = *known.get();
                2u8.put(out);
                number.put(out);
            }
            Entry::Vacant(place) => {
                place.insert(next);
                1u8.put(out);
                value.as_ref().put(out);
            }
        }
    }
    fn get(from: &mut In) -> Result<Option<Shared<T>>, Malformed> {
        match u8::get(from)? {
            0 => Ok(None),
            1 => {
                let number = from.shared.len();
                from.room(size_of::<T>() + size_of::<Option<Shared<T>>>())?;
                from.shared.push(None);
                let value = Shared::new(from.nested(T::get)?);
                from.shared[number] = Some(value.clone());
                Ok(Some(value))
            }
            2 => {
                let number = u32::get(from)? as usize;
                let value = from.shared.get(number).cloned().flatten().ok_or(Malformed)?;
                let value = value.downcast::<T>().map_err(|_| Malformed)?;
                // It is looked at once more.
                from.room(value.weight())?;
                Ok(Some(value))
            }
            _ => Err(Malformed),
        }
    }
    fn weight(&self) -> usize {
        self.as_ref().map_or(0, |value| value.as_ref().weight())
    }
}

impl<T: Wire> Wire for Box<T> {
    fn put(&self, out: &mut Out) {
        (**self).put(out);
    }
    fn get(from: &mut In) -> Result<Box<T>, Malformed> {
        from.room(size_of::<T>())?;
        T::get(from).map(Box::new)
    }
    fn weight(&self) -> usize {
        (**self).weight()
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn put(&self, out: &mut Out) {
        put_count(self.len(), out);
        put_elements(self, out);
    }
    fn get(from: &mut In) -> Result<Vec<T>, Malformed> {
        let count = u32::get(from)? as usize;
        from.nested(|from| from.elements(count))
    }
    fn weight(&self) -> usize {
        self.iter()
            .map(|value| size_of::<T>().max(1).saturating_add(value.weight()))
            .fold(0, usize::saturating_add)
    }
}

/// The first bytes of a value as a value of another type, of which all bit patterns are values. Zeros stand behind them.
pub fn view<A: Wire, B: Wire, const WORDS: usize>(value: &A) -> B {
    let mut out = Out::default();
    value.put(&mut out);
    out.at(8 * WORDS);
    B::get(&mut In::new(out.bytes())).unwrap_or_else(|_| unreachable!("all bytes are values"))
}

impl<T: Wire, const N: usize> Wire for [T; N] {
    fn put(&self, out: &mut Out) {
        put_elements(self, out);
    }
    fn get(from: &mut In) -> Result<[T; N], Malformed> {
        let list = from.nested(|from| from.elements(N))?;
        list.try_into().map_err(|_| Malformed)
    }
    fn weight(&self) -> usize {
        self.iter().map(T::weight).fold(0, usize::saturating_add)
    }
}

/// Writes a count. One that does not fit makes the message too long anyway, which `finish` reports.
#[inline]
pub fn put_count(count: usize, out: &mut Out) {
    u32::try_from(count).unwrap_or(u32::MAX).put(out);
}

/// Writes elements without their number.
pub fn put_elements<T: Wire>(list: &[T], out: &mut Out) {
    T::put_all(list, out);
}

/// Writes text without its length.
pub fn put_text(text: &str, out: &mut Out) {
    out.extend(text.len()).copy_from_slice(text.as_bytes());
}

/// A reference to an object: its number in the table of the server that is called. None is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Object(pub u64);

impl Wire for Object {
    fn put(&self, out: &mut Out) {
        self.0.put(out);
    }
    fn get(from: &mut In) -> Result<Object, Malformed> {
        u64::get(from).map(Object)
    }
}

// Values in an `any`: the third part of the module `rt` of outputs over sockets, in files that have one.

/// The bytes of a value as they stand in an `any`: in whole words, with a zero behind each text. `None` of one that is too long.
pub fn pack<T: Wire>(value: &T) -> Option<Vec<u8>> {
    let mut out = Out { packed: true, ..Out::default() };
    value.put(&mut out);
    out.align(8);
    out.finish().ok()
}

/// The value of such bytes, if they are one and nothing else.
pub fn unpack<T: Wire>(bytes: &[u8]) -> Option<T> {
    let mut from = In { packed: true, ..In::new(bytes) };
    let value = T::get(&mut from).ok()?;
    from.align(8).ok()?;
    from.finish().ok()?;
    Some(value)
}

/// The zero behind a text.
fn put_end(out: &mut Out) {
    if out.packed {
        0u8.put(out);
    }
}

/// Text of so many bytes, and the zero.
fn get_packed_text(count: usize, from: &mut In) -> Result<String, Malformed> {
    let text = from.text(count)?;
    if u8::get(from)? == 0 { Ok(text) } else { Err(Malformed) }
}

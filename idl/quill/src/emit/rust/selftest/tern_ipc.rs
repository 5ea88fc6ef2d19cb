/// What a server gives references to.
type Kept = Option<alloc::boxed::Box<dyn ::core::any::Any>>;

/// Keeps something until the next call.
fn keep<T: 'static>(kept: &mut Kept, value: T) -> &T {
    let kept: &dyn ::core::any::Any = &**kept.insert(alloc::boxed::Box::new(value));
    kept.downcast_ref().unwrap_or_else(|| panic!("it is what it was"))
}

/// A server that answers whatever it is asked with anything at all.
pub fn nonsense(seed: u64) -> ! {
    let mut random = Random::new(seed, 1 << 40);
    let mut block = [0; 80];
    let (mut to, mut label, mut words, mut long) = (::stub::Uid::NIL, 0, [0; ::stub::WORDS], false);
    loop {
        let [dope, address, rest @ ..] = words;
        let [w2, w3, w4, w5, w6, w7, ..] = rest;
        let got = if long {
            let block = ::sys::Block { dope: ::sys::Dope(dope), address };
            ::sys::ipc_reply_wait_long(to, label, block, [w2, w3, w4, w5, w6, w7]).ok()
        } else {
            ::sys::ipc_reply_wait(to, label, [dope, address, w2, w3, w4, w5, w6, w7]).ok()
        };
        // The message that could not be sent was the answer's own affair.
        to = got.map_or(::stub::Uid::NIL, |message| message.sender);
        (label, words, long) = random.nonsense(&mut block);
    }
}

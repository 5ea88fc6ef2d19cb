/// Pages of this task.
#[repr(C, align(8192))]
pub struct Pages([::core::sync::atomic::AtomicU64; 1024]);

/// Those that it hands over.
static GIVEN: Pages = Pages([const { ::core::sync::atomic::AtomicU64::new(0) }; 1024]);
/// Those in whose place others arrive.
static WINDOW: Pages = Pages([const { ::core::sync::atomic::AtomicU64::new(0) }; 1024]);

impl Pages {
    /// All of them.
    fn page(&self) -> ::stub::Fpage {
        let address = ::core::ptr::from_ref(self).addr() as u64;
        ::stub::Fpage::memory(address, 13, ::sys::Rights::RW)
    }

    /// All of the pages, with something in each, so that there is one.
    fn hold(&self, number: u64) -> ::stub::Fpage {
        let order = ::core::sync::atomic::Ordering::SeqCst;
        self.0[0].store(number, order);
        self.0[1023].store(!number, order);
        self.page()
    }

    /// Whether these are the pages.
    fn is(&self, page: ::stub::Fpage) -> bool {
        page == self.page()
    }

    /// Whether these are the pages, and what they hold is this.
    fn holds(&self, page: ::stub::Fpage, number: u64) -> bool {
        let order = ::core::sync::atomic::Ordering::SeqCst;
        self.is(page) && self.0[0].load(order) == number && self.0[1023].load(order) == !number
    }
}

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

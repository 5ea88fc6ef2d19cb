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

/// What a server gives references to stays: calls come from anywhere, and nobody says when the last of them has been answered. The
/// task ends with the test.
type Kept = ();

/// Keeps something.
fn keep<T: 'static>(_: &mut Kept, value: T) -> &'static T {
    alloc::boxed::Box::leak(alloc::boxed::Box::new(value))
}

/// An object that answers whatever it is asked with anything at all.
#[derive(Debug)]
pub struct Nonsense(::rt::sync::Mutex<Random>);

impl Nonsense {
    /// The seed says with what.
    pub fn new(seed: u64) -> Nonsense {
        Nonsense(::rt::sync::Mutex::new(Random::new(seed, 1 << 40)))
    }
}

/// Strings that a request may have.
const STRINGS: &[u32] = &[4096, 4096];

impl ::stub::door::Object for Nonsense {
    type Table = [::stub::door::Entry; 4];
    const TABLE: &'static [::stub::door::Entry; 4] = &[
        ::stub::door::method::<Anything<false>>(),
        ::stub::door::method::<Anything<false>>(),
        ::stub::door::method::<Anything<true>>(),
        ::stub::door::method::<Anything<true>>(),
    ];
    const SHIFT: u32 = 63;
    const ROOM: Option<&'static [u32]> = Some(STRINGS);
}

/// Its answer.
struct Anything<const LONG: bool>;

impl<const LONG: bool> ::stub::door::Handler for Anything<LONG> {
    type Object = Nonsense;
    const IN: usize = 0;
    const OUT: usize = 11;
    const LONG: bool = LONG;
    type Frame = ::stub::door::Frame<::stub::door::Place<()>, [u64; 80]>;
    extern "sysv64" fn handle(
        _: u64,
        _: u64,
        behind: &::stub::door::Behind<Nonsense>,
        frame: &mut Self::Frame,
        _: u64,
        _: u64,
    ) -> ::stub::door::Answer {
        let (label, words, long) = behind.object.0.lock().nonsense(&mut frame.outgoing);
        let answer = ::stub::door::Answer::label::<11>(frame, &words, label);
        if long { answer.with_memory() } else { answer }
    }
}

/// Looks at all that it hears of.
struct Listener;

impl ::stub::Watch for Listener {
    type Note = ();
    fn begins(
        &self,
        _: ::stub::Called,
        arguments: &[::stub::Argument],
    ) -> ::core::result::Result<(), ::stub::Failure> {
        core::hint::black_box(alloc::format!("{arguments:?}"));
        Ok(())
    }
    fn ended(
        &self,
        _: ::stub::Called,
        (): (),
        result: ::core::result::Result<&[::stub::Argument], &dyn ::core::fmt::Debug>,
    ) {
        core::hint::black_box(alloc::format!("{result:?}"));
    }
}

/// An object that is known by a number.
struct Token(u64);

impl ::rt::door::Object for Token {
    fn call(&self, _: u32, mut words: [u64; 8]) -> (u32, [u64; 8]) {
        words[0] = self.0;
        (u32::MAX, words)
    }
}

/// A reference to one, as something that has whatever interface is wanted.
fn token<C: ::stub::Interface>(number: u64) -> ::rt::door::Reference<C> {
    ::rt::door::export(Token(number)).unwrap_or_else(|error| panic!("no object can be made: {error}")).into()
}

/// Its number, or another one if it is none.
fn number_of<C: ::stub::Interface>(reference: &::rt::door::Reference<C>) -> u64 {
    let (rax, [number, ..]) = ::stub::Callee::call::<1, false>(C::view(reference), 0, [0; ::stub::WORDS]);
    if rax == <::stub::View as ::stub::Callee>::DONE { number } else { !number }
}

/// Whether values are the same but for the references in them, and these lead to objects that say the same.
fn same_objects<T: rt::Wire>(one: &[T], other: &[T]) -> bool {
    let write = |values: &[T]| {
        let mut handing = rt::Handing::new(rt::HANDED_MAX, false);
        let (mut words, mut items) = (alloc::vec![0u64; 512], alloc::vec![0u64; 2 * rt::HANDED_MAX]);
        let mut out = rt::Out::handing(&mut words, &mut handing);
        rt::put_elements(values, &mut out);
        let used = out.finish();
        handing.describe(&mut items);
        // Places are the program's own; what is there says which object it is.
        let items = items.into_iter().step_by(2).take(handing.count() as usize);
        let numbers = items.map(|place| {
            let door = ::stub::Door((rt::Fpage(place).base() >> 12) as u32);
            let (rax, [number, ..]) = ::stub::Callee::call::<1, false>(door, 0, [0; ::stub::WORDS]);
            if rax == <::stub::Door as ::stub::Callee>::DONE { number } else { !number }
        });
        (used.is_some(), words, numbers.collect::<alloc::vec::Vec<u64>>())
    };
    write(one) == write(other)
}

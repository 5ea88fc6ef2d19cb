//! References to objects that are described in a message's part in memory: several of them, or such as are parts of something.
//!
//! Those that are parameters come first, then those within what is read piece by piece, in the order in which they are written. Who gets them finds them in
//! windows: a server in those of its thread's block, a client in those of its inbox, which are open during the call. What a server answers with leaves from
//! the numbers that it has there; these are the windows of its thread from then on.

use super::*;
use crate::plan::Item;

impl Emitter<'_> {
    /// Code that gives the references in a value away.
    pub(super) fn gives(&self, from: &[String], id: TypeId) -> TokenStream {
        let rt = self.runtime(from);
        let (path, body) = match self.model.ty(id) {
            Type::Struct(path, fields) => {
                let given =
                    fields.iter().filter(|field| self.refers(field.ty)).map(|field| name(&field.name));
                (path, quote! { #(#rt::Gives::give(&mut self.#given);)* })
            }
            Type::Union { name: path, switch, branches } => {
                let arms = branches.iter().filter(|branch| self.refers(branch.field.ty)).map(|branch| {
                    let variant = name(&branch.field.name);
                    let label = self.keeps_label(from, *switch, branch).then(|| quote! { _, });
                    quote! { Self::#variant(#label _value) => #rt::Gives::give(_value), }
                });
                (path, quote! { match self { #(#arms)* _ => {} } })
            }
            _ => return TokenStream::new(),
        };
        let ident = name(&self.place(path).1);
        quote! {
            impl #rt::Gives for #ident {
                #[allow(unreachable_patterns)]
                fn give(&mut self) { #body }
            }
        }
    }

    /// The names of what brings references that a message describes in memory.
    fn bringers(message: &Message) -> impl Iterator<Item = Ident> {
        let within = message.chunks.iter().filter(|chunk| chunk.references > 0);
        let within = within.filter_map(|chunk| chunk.path.first());
        message.handed().map(|handed| &handed.param).chain(within).map(|param| name(param))
    }

    /// Statements of a handler whose reply is made: its references have left.
    pub(super) fn all_gone(&self, rt: &TokenStream, message: &Message) -> TokenStream {
        let given = Emitter::bringers(message);
        quote! {
            let mut _windows = _frame.room.windows(_w0);
            _frame.words[0] = ::rt::door::give_many(&mut _windows, &_frame.outgoing, _out[0], _w0);
            #({ let mut _given = #given; #rt::Gives::give(&mut _given); })*
        }
    }

    /// How many references are parameters, or fields of an exception.
    fn of_their_own(message: &Message) -> Literal {
        Literal::usize_unsuffixed(message.handed().count())
    }

    /// Statements of a client that open windows for what may come back.
    pub(super) fn arrivals(rt: &TokenStream, method: &Method) -> Option<TokenStream> {
        let most = method.windows_back();
        let count = Literal::u64_unsuffixed(most);
        (most > 0).then(|| {
            quote! {
                let mut _arrivals =
                    ::rt::door::Arrivals::open(_inbox.windows(), #count).map_err(#rt::Failure::Kernel)?;
            }
        })
    }

    /// Statements of a client that know what has come with a reply, before it is read, and take references that are no part of anything, behind it.
    pub(super) fn arrived(&self, reply: &Message) -> (Option<TokenStream>, TokenStream) {
        if !reply.hands_from_memory() {
            return Default::default();
        }
        let own = Emitter::of_their_own(reply);
        let taken = reply.handed().enumerate().map(|(number, handed)| {
            let (given, number) = (name(&handed.param), Literal::usize_unsuffixed(number));
            quote! { let #given = _arrivals.take(#number)?; }
        });
        (Some(quote! { _arrivals.came(_in[0], #own); }), quote! { #(#taken)* })
    }

    /// The parameter of what reads a request with references in it, and its argument.
    pub(super) fn reading_arrivals(request: &Message) -> (Option<TokenStream>, Option<TokenStream>) {
        if request.references_within() == 0 {
            return Default::default();
        }
        let own = Emitter::of_their_own(request);
        (
            Some(quote! { , mut _arrivals: ::rt::door::Taken<'_> }),
            Some(quote! { , ::rt::door::Taken::from(&mut _items, #own) }),
        )
    }

    /// Statements that begin to write what is written piece by piece, from one word of the block to another.
    pub(super) fn begin_stream(
        rt: &TokenStream,
        block: Block,
        (begin, end): (&Literal, &Literal),
        lies: Lies,
    ) -> TokenStream {
        match block.within {
            0 => quote! { let mut _stream = #rt::Out::new(&mut _block[#begin..#end]); },
            most => {
                let (most, is_reply) = (Literal::u64_unsuffixed(most), lies != Lies::WithCaller);
                quote! {
                    let mut _handing = #rt::Handing::new(#most, #is_reply);
                    let mut _stream = #rt::Out::handing(&mut _block[#begin..#end], &mut _handing);
                }
            }
        }
    }

    /// Statements that hand over references behind the strings.
    pub(super) fn pack_items(plan: &Plan, block: Block, lies: Lies) -> TokenStream {
        let items = plan.items.iter().map(|Item { handed, at }| {
            let granted = lies != Lies::WithCaller || handed.grant == Some(true);
            let (reference, at) = (name(&handed.param), pack::word(*at));
            quote! {
                let _item = #reference.item(#granted);
                (_block[#at], _block[#at + 1]) = (_item.0.0, _item.1);
            }
        });
        let within = (block.within > 0).then(|| {
            let at = pack::word(block.within_at());
            quote! { _handing.describe(&mut _block[#at..]); }
        });
        quote! { #(#items)* #within }
    }
}

//! Lists that a client may offer instead of sending them: a word of the request is the offer's number, or 0 if the bytes are sent (decision 0114).

use super::super::tree::{Expr, Stmt, name};
use super::{ARRIVED, place};
use crate::layout::{Leaf, Message};

/// Words of a request that are numbers of offers.
fn numbers(request: &Message) -> impl Iterator<Item = Expr> {
    let offers = request.slots.iter().filter(|slot| matches!(slot.leaf, Leaf::Offer(_)));
    offers.map(|slot| {
        let (words, word, _) = place(slot, ARRIVED);
        words.index(Expr::Int(word.into()))
    })
}

/// Statements of a server that takes no offer: its method does not begin, and the client sends the bytes. They stand behind all checks, so that a
/// request that is no message is never declined.
pub fn declined(request: &Message) -> Vec<Stmt> {
    let declines = |number: Expr| {
        let is_offer = number.with("!=", Expr::Int(0));
        Stmt::If(is_offer, vec![Stmt::Return(Some(name("QUILL_DECLINED")))])
    };
    numbers(request).map(declines).collect()
}

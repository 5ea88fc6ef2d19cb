//! Rules of a file for values besides their types: that lists are as long as numbers beside them say, and the like.

/// A whole number that a message says, computed from fields or parameters beside the value that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Size {
    /// A constant.
    Number(i64),
    /// The field or parameter with this place among its siblings.
    Of(usize),
    /// An operator with one operand: `-`, `~` or `!`.
    One(&'static str, Box<Size>),
    /// An operator with two operands, as in C.
    Two(&'static str, Box<[Size; 2]>),
    /// The second if the first is not zero, else the third.
    Choice(Box<[Size; 3]>),
}

impl Size {
    /// The fields or parameters that it is computed from.
    pub fn names(&self) -> Vec<usize> {
        match self {
            Size::Number(_) => Vec::new(),
            Size::Of(index) => vec![*index],
            Size::One(_, of) => of.names(),
            Size::Two(_, both) => both.iter().flat_map(Size::names).collect(),
            Size::Choice(three) => three.iter().flat_map(Size::names).collect(),
        }
    }
}

/// How a list, a text or a union has to agree with a number beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rule {
    /// So many elements.
    Exactly(Size),
    /// So many elements or fewer.
    AtMost(Size),
    /// Fewer characters: behind them there is a zero.
    Below(Size),
    /// This discriminator.
    Label(Size),
}

impl Rule {
    /// The number.
    pub fn size(&self) -> &Size {
        let (Rule::Exactly(size) | Rule::AtMost(size) | Rule::Below(size) | Rule::Label(size)) = self;
        size
    }
}

impl Size {
    /// With other places of the fields or parameters, where all of them have one.
    pub(crate) fn placed(&self, place: &dyn Fn(usize) -> Option<usize>) -> Option<Size> {
        Some(match self {
            Size::Number(number) => Size::Number(*number),
            Size::Of(name) => Size::Of(place(*name)?),
            Size::One(operator, of) => Size::One(operator, Box::new(of.placed(place)?)),
            Size::Two(operator, both) => {
                Size::Two(operator, Box::new([both[0].placed(place)?, both[1].placed(place)?]))
            }
            Size::Choice(of) => {
                let [condition, yes, no] = &**of;
                Size::Choice(Box::new([condition.placed(place)?, yes.placed(place)?, no.placed(place)?]))
            }
        })
    }
}

impl Rule {
    /// With other places of the fields or parameters, where all of them have one.
    pub fn placed(&self, place: &dyn Fn(usize) -> Option<usize>) -> Option<Rule> {
        let size = self.size().placed(place)?;
        Some(match self {
            Rule::Exactly(_) => Rule::Exactly(size),
            Rule::AtMost(_) => Rule::AtMost(size),
            Rule::Below(_) => Rule::Below(size),
            Rule::Label(_) => Rule::Label(size),
        })
    }
}

/// How a field or parameter has to agree with those beside it. Whoever reads a message checks it, and whoever writes one does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreement {
    /// The place of the field or parameter among its siblings.
    pub of: usize,
    /// Rules for the list, text or union that it is, then for the lists that are elements of it, and so on.
    pub rules: Vec<Vec<Rule>>,
}

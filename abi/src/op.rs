//! The operation word: the low half of `rax` when a program calls the kernel.
//!
//! Native words have bit 31 set. The *short* forms are words near the top of the range, which the entry code tells apart by a few
//! compares; in them each flag is a bit that is *clear*, so that the plain form of each is a small negative number. The
//! general form of ipc has the number [`Call::Ipc`] and flags that are *set*. A flag has one place and one meaning in both:
//!
//! | bit | flag | meaning | in |
//! |--:|---|---|---|
//! | 8 | [`ITEM`] | w6 and w7 are a map item | general form, doors |
//! | 9 | [`TAKES_BLOCK`] | the received message may bring a block | all |
//! | 10 | [`BLOCK`] | w0 and w1 are dope and address of a block | all |
//! | 11 | [`TAKES_ITEM`] | the received message may bring an item into the standing window | calls |
//! | 12 | [`ALERTABLE`] | an alert ends the operation | general form, calls through doors |
//! | 13 | [`SHOWN`] | w5 is the thread that the message is shown to come from | general form |
//! | 14 | [`TAKES_FOREIGN`] | the received message may be a foreign call, in all registers | general form |
//! | 15 | [`ABSOLUTE`] | `r15` is a point in time | general form |
//!
//! The kernel, its tracer, the model and the SDK decode and compose such words here, and nowhere else. The constants of the
//! assembly and of `tern.h` are this module's, or compared with them.

use crate::call::Call;

/// Flag: w6 and w7 are a map item.
pub const ITEM: u32 = 1 << 8;
/// Flag: the received message may bring a block.
pub const TAKES_BLOCK: u32 = 1 << 9;
/// Flag: w0 and w1 are dope and address of a block.
pub const BLOCK: u32 = 1 << 10;
/// Flag: the received message may bring an item into the standing window. The general form names a window instead.
pub const TAKES_ITEM: u32 = 1 << 11;
/// Flag: an alert ends the operation, which does not begin if the thread is alerted already.
pub const ALERTABLE: u32 = 1 << 12;
/// Flag: w5 is the thread that the message is shown to come from.
pub const SHOWN: u32 = 1 << 13;
/// Flag: a wait for anybody takes foreign calls in all registers; see [`FOREIGN_RETURN`](crate::call::FOREIGN_RETURN).
pub const TAKES_FOREIGN: u32 = 1 << 14;
/// Flag: `r15` is one point in time, in nanoseconds on the kernel's clock; both phases end with their timeout's error when it
/// comes (row P8). A point from [`ABSOLUTE_END`](crate::call::ABSOLUTE_END) on never comes.
pub const ABSOLUTE: u32 = 1 << 15;

/// All flags about the received message.
pub const TAKES: u32 = TAKES_BLOCK | TAKES_ITEM;
/// All flags of the general form. Other bits are kept for propagation and other stations, and must be zero.
pub const GENERAL_FLAGS: u32 = BLOCK | ITEM | TAKES_BLOCK | ALERTABLE | SHOWN | TAKES_FOREIGN | ABSOLUTE;

/// Bits that flags have in some form.
const FLAGS: u32 = 0xff00;

/// Bits that tell the form of a word, whatever its flags.
const NUMBER: u32 = 1 << 31 | 0xff;
/// Bits that no form has.
const RESERVED: u32 = 0x7fff_0000;

/// Form of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Send, and wait for the answer of that thread alone.
    Call,
    /// Send without blocking, and wait for anybody.
    ReplyWait,
    /// Call through a door.
    DoorCall,
    /// Return from a call through a door, and wait for the next.
    DoorReturn,
    /// Send and receive with all options.
    General,
}

/// Things that a message carries beside its words.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Carries {
    /// Nothing.
    Words,
    /// A block in memory.
    Block,
    /// A map item.
    Item,
}

/// Flags of an operation, each of them *set* if it applies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flags(u32);

impl Flags {
    /// Whether one of these flags applies.
    #[inline(always)]
    pub const fn has(self, flags: u32) -> bool {
        self.0 & flags != 0
    }

    /// Things that the message carries. A block and an item exclude each other; if both flags are there, it is the block.
    #[inline(always)]
    pub const fn carries(self) -> Carries {
        match (self.has(BLOCK), self.has(ITEM)) {
            (true, _) => Carries::Block,
            (false, true) => Carries::Item,
            (false, false) => Carries::Words,
        }
    }

    /// Things that the received message may bring, of [`TAKES_BLOCK`] and [`TAKES_ITEM`].
    #[inline(always)]
    pub const fn takes(self) -> u32 {
        self.0 & TAKES
    }
}

/// An operation word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub struct Op(pub u32);

impl Op {
    /// *Call*: words there, words back.
    pub const CALL: Op = Op(0xffff_fffe);
    /// *Reply and wait*.
    pub const REPLY_WAIT: Op = Op(0xffff_ffff);
    /// *Door call*.
    pub const DOOR_CALL: Op = Op(0xffff_fff8);
    /// *Door return*.
    pub const DOOR_RETURN: Op = Op(0xffff_fff9);
    /// The general form, without flags.
    pub const GENERAL: Op = Op(Call::Ipc as u32);

    /// The word in the low half of `rax`.
    #[inline(always)]
    pub const fn of(rax: u64) -> Op {
        Op(rax as u32)
    }

    /// Adds flags.
    #[inline(always)]
    pub const fn with(self, flags: u32) -> Op {
        if self.is_general() { Op(self.0 | flags) } else { Op(self.0 & !flags) }
    }

    /// Takes flags away.
    #[inline(always)]
    pub const fn without(self, flags: u32) -> Op {
        if self.is_general() { Op(self.0 & !flags) } else { Op(self.0 | flags) }
    }

    /// Whether its number is that of the general form, whatever else it says.
    #[inline(always)]
    pub const fn is_general(self) -> bool {
        self.0 & NUMBER == Op::GENERAL.0
    }

    /// Its flags. They mean nothing in a word that is no ipc.
    #[inline(always)]
    pub const fn flags(self) -> Flags {
        if self.is_general() { self.general_flags() } else { self.short_flags() }
    }

    /// Flags of a word that is known to be the general form.
    #[inline(always)]
    pub const fn general_flags(self) -> Flags {
        Flags(self.0)
    }

    /// Flags of a word that is known to be another form.
    #[inline(always)]
    pub const fn short_flags(self) -> Flags {
        Flags(!self.0)
    }

    /// Whether the general form has flags that it does not know, or bits that no form has.
    #[inline(always)]
    pub const fn has_unknown(self) -> bool {
        !self.has_only(GENERAL_FLAGS)
    }

    /// The form that its number names, whatever its flags.
    #[inline(always)]
    pub const fn number(self) -> Option<Form> {
        Some(match self.0 & NUMBER | RESERVED | FLAGS {
            0xffff_fffe => Form::Call,
            0xffff_ffff => Form::ReplyWait,
            0xffff_fff8 => Form::DoorCall,
            0xffff_fff9 => Form::DoorReturn,
            0xffff_ff01 => Form::General,
            _ => return None,
        })
    }

    /// Its form. `None` if it is no ipc, has flags that its form does not have, or carries two things.
    pub const fn form(self) -> Option<Form> {
        let Some(form) = self.number() else { return None };
        let (flags, reserved) = match form {
            Form::General => (self.0, self.0 & RESERVED),
            _ => (!self.0, !self.0 & RESERVED),
        };
        let both = flags & (BLOCK | ITEM) == BLOCK | ITEM;
        if reserved == 0 && flags & FLAGS & !form.flags() == 0 && !both { Some(form) } else { None }
    }

    /// Whether a word that is known to be the general form has no bits but those of some of these flags.
    #[inline(always)]
    pub const fn has_only(self, flags: u32) -> bool {
        self.0 & !(Op::GENERAL.0 | flags) == 0
    }

    /// Whether its number is a door's, whatever its flags: a call (true) or a return (false).
    #[inline(always)]
    pub const fn is_door(self) -> Option<bool> {
        const CALL: u8 = Op::DOOR_CALL.0 as u8;
        const RETURN: u8 = Op::DOOR_RETURN.0 as u8;
        match self.0 as u8 {
            CALL => Some(true),
            RETURN => Some(false),
            _ => None,
        }
    }

    /// Whether it is a call through a door, of whatever kind.
    #[inline(always)]
    pub const fn is_door_call(self) -> bool {
        let op = self.0 | ALERTABLE | TAKES;
        op == Op::DOOR_CALL.0 || op == Op::DOOR_CALL.with(BLOCK).0 || op == Op::DOOR_CALL.with(ITEM).0
    }

    /// Whether it is a return from a call through a door, of whatever kind.
    #[inline(always)]
    pub const fn is_door_return(self) -> bool {
        let op = self.0;
        op == Op::DOOR_RETURN.0 || op == Op::DOOR_RETURN.with(BLOCK).0 || op == Op::DOOR_RETURN.with(ITEM).0
    }

    /// Whether it is a call, or a reply and wait, of whatever kind.
    #[inline(always)]
    pub const fn is_ordinary(self) -> bool {
        let op = self.0 | TAKES;
        op == Op::CALL.0
            || op == Op::CALL.with(BLOCK).0
            || self.0 == Op::REPLY_WAIT.0
            || self.0 == Op::REPLY_WAIT.with(BLOCK).0
    }

    /// Whether it is a call, or a reply and wait, whose message is eleven words.
    #[inline(always)]
    pub const fn is_short(self) -> bool {
        self.0 | TAKES >= Op::CALL.0
    }

    /// Whether it is an ipc, not a door's, whose message has a block.
    #[inline(always)]
    pub const fn is_long(self) -> bool {
        let op = self.0 | TAKES;
        op == Op::CALL.with(BLOCK).0
            || op == Op::REPLY_WAIT.with(BLOCK).0
            || self.0 & (NUMBER | BLOCK) == Op::GENERAL.0 | BLOCK
    }

    /// Whether it is the general form with an item.
    #[inline(always)]
    pub const fn is_item(self) -> bool {
        self.0 & (NUMBER | ITEM) == Op::GENERAL.0 | ITEM
    }

    /// Whether it returns from a foreign call. Three numbers do: the entry code does not tell them apart.
    #[inline(always)]
    pub const fn is_foreign_return(self) -> bool {
        self.0 > Op::DOOR_RETURN.0 && self.0 < crate::call::NULL
    }

    /// Whether it is a call of another system: its number has bit 31 clear.
    #[inline(always)]
    pub const fn is_foreign(self) -> bool {
        self.0 >> 31 == 0
    }

    /// Whether it is the general form with a point in time.
    #[inline(always)]
    pub const fn is_absolute(self) -> bool {
        self.0 & (NUMBER | ABSOLUTE) == Op::GENERAL.0 | ABSOLUTE
    }
}

impl Form {
    /// Flags that the form may have.
    pub const fn flags(self) -> u32 {
        match self {
            Form::Call => BLOCK | TAKES,
            Form::ReplyWait => BLOCK,
            Form::DoorCall => BLOCK | ITEM | TAKES | ALERTABLE,
            Form::DoorReturn => BLOCK | ITEM,
            Form::General => GENERAL_FLAGS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All words whose number is an ipc's, with each set of flags.
    fn words() -> impl Iterator<Item = Op> {
        let bases = [Op::CALL, Op::REPLY_WAIT, Op::DOOR_CALL, Op::DOOR_RETURN, Op::GENERAL];
        bases.into_iter().flat_map(|base| (0..0x100).map(move |bits| base.with(bits << 8)))
    }

    #[test]
    fn flags_come_back_and_go() {
        for base in [Op::CALL, Op::DOOR_RETURN, Op::GENERAL] {
            for flags in (0..0x100).map(|bits| bits << 8) {
                assert_eq!(base.with(flags).flags().0 & FLAGS, flags);
                assert_eq!(base.with(flags).without(flags), base);
            }
        }
    }

    #[test]
    fn forms_have_their_flags_alone() {
        let count = |form| words().filter(|op| op.form() == Some(form)).count();
        assert_eq!(count(Form::Call), 8);
        assert_eq!(count(Form::ReplyWait), 2);
        // Nothing, a block or an item; and three flags.
        assert_eq!(count(Form::DoorCall), 3 * 8);
        assert_eq!(count(Form::DoorReturn), 3);
        assert_eq!(count(Form::General), 3 * 32);
    }

    #[test]
    fn only_ipc_has_a_form() {
        for number in 0..=0xff {
            let is_one = [0xfe, 0xff, 0xf8, 0xf9].contains(&number);
            assert_eq!(Op(0xffff_ff00 | number).form().is_some(), is_one);
            assert_eq!(Op(0x8000_0000 | number).form().is_some(), number == 1);
            assert_eq!(Op(0x7fff_ff00 | number).form(), None);
            assert_eq!(Op(number).form(), None);
        }
        for bit in 16..31 {
            assert!(words().all(|op| Op(op.0 ^ 1 << bit).form().is_none()));
        }
    }

    #[test]
    fn questions_agree_with_forms() {
        for op in words().filter(|op| op.form().is_some()) {
            let (form, carries) = (op.form(), op.flags().carries());
            let is_ipc = matches!(form, Some(Form::Call | Form::ReplyWait | Form::General));
            let is_general = form == Some(Form::General);
            assert_eq!(op.is_short(), is_ipc && !is_general && carries == Carries::Words);
            assert_eq!(op.is_long(), is_ipc && carries == Carries::Block);
            assert_eq!(op.is_item(), is_general && carries == Carries::Item);
            assert_eq!(op.is_absolute(), is_general && op.flags().has(ABSOLUTE));
        }
        for op in words() {
            let is_door = match op.number() {
                Some(Form::DoorCall) => Some(true),
                Some(Form::DoorReturn) => Some(false),
                _ => None,
            };
            assert_eq!(op.is_door(), is_door);
            let is_plain =
                op.form() == Some(Form::General) && !op.flags().has(GENERAL_FLAGS & !(ITEM | ABSOLUTE));
            assert_eq!(op.is_general() && op.has_only(ITEM | ABSOLUTE), is_plain);
            assert_eq!(op.is_ordinary(), matches!(op.form(), Some(Form::Call | Form::ReplyWait)));
            assert_eq!(op.is_door_call(), op.form() == Some(Form::DoorCall));
            assert_eq!(op.is_door_return(), op.form() == Some(Form::DoorReturn));
        }
    }
}

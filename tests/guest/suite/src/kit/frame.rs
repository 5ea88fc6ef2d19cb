//! A system call as the processor sees it: all registers in, all registers out.

use sys::abi::call::{Call, DOOR_CALL, DOOR_RETURN, IPC_CALL, IPC_REPLY_WAIT, timeouts};
use sys::abi::op::{self, Op};
use sys::{Error, Fpage, Kind, Timeout, Uid};

/// All user registers but `rsp` and `rip`, in the order that `kit.s` knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Frame {
    /// Operation and label; kind and label, or error.
    pub rax: u64,
    pub rbx: u64,
    pub rcx: u64,
    /// Destination; sender.
    pub rdx: u64,
    pub rsi: u64,
    pub rdi: u64,
    pub rbp: u64,
    pub r8: u64,
    pub r9: u64,
    pub r10: u64,
    pub r11: u64,
    pub r12: u64,
    pub r13: u64,
    pub r14: u64,
    pub r15: u64,
    /// RFLAGS.
    pub flags: u64,
}

/// RFLAGS of a thread that has done nothing to them.
pub const PLAIN_FLAGS: u64 = 0x202;

/// Any of eleven words that no kernel would make up.
pub const WORDS: [u64; 11] = [
    0x1111_0000_0000_a001,
    0x2222_0000_0000_a002,
    0x3333_0000_0000_a003,
    0x4444_0000_0000_a004,
    0x5555_0000_0000_a005,
    0x6666_0000_0000_a006,
    0x7777_0000_0000_a007,
    0x0888_0000_0000_a008,
    0x0999_0000_0000_a009,
    0x0aaa_0000_0000_a00a,
    0x0bbb_0000_0000_a00b,
];

impl Frame {
    /// All registers zero.
    pub const ZERO: Frame = Frame {
        rax: 0,
        rbx: 0,
        rcx: 0,
        rdx: 0,
        rsi: 0,
        rdi: 0,
        rbp: 0,
        r8: 0,
        r9: 0,
        r10: 0,
        r11: 0,
        r12: 0,
        r13: 0,
        r14: 0,
        r15: 0,
        flags: 0,
    };

    fn with_words(eax: u32, label: u32, rdx: u64, w: [u64; 11]) -> Frame {
        let [rdi, rsi, r8, r9, r10, r12, r13, r14, rbx, rbp, r15] = w;
        let rax = (label as u64) << 32 | eax as u64;
        let flags = PLAIN_FLAGS;
        Frame { rax, rdx, rdi, rsi, r8, r9, r10, r12, r13, r14, rbx, rbp, r15, rcx: 0, r11: 0, flags }
    }

    /// The short form *call*.
    pub fn call(to: Uid, label: u32, words: [u64; 11]) -> Frame {
        Frame::with_words(IPC_CALL, label, to.0, words)
    }

    /// The short form *reply and wait*.
    pub fn reply_wait(to: Uid, label: u32, words: [u64; 11]) -> Frame {
        Frame::with_words(IPC_REPLY_WAIT, label, to.0, words)
    }

    /// A call through a door.
    pub fn door_call(identifier: u32, label: u32, words: [u64; 11]) -> Frame {
        Frame::with_words(DOOR_CALL, label, identifier as u64, words)
    }

    /// The return from one.
    pub fn door_return(label: u32, words: [u64; 11]) -> Frame {
        Frame::with_words(DOOR_RETURN, label, 0, words)
    }

    /// The general form.
    pub fn ipc(to: Uid, from: Uid, send: Timeout, receive: Timeout) -> Frame {
        let mut frame = Frame::with_words(Call::Ipc as u32, 0, to.0, WORDS);
        (frame.rbx, frame.rbp, frame.r15) = (from.0, 0, timeouts(send, receive));
        frame
    }

    /// A send that is not followed by a receive.
    pub fn send(to: Uid, timeout: Timeout) -> Frame {
        Frame::ipc(to, Uid::NIL, timeout, Timeout::NEVER)
    }

    /// A receive that follows no send.
    pub fn receive(from: Uid, timeout: Timeout) -> Frame {
        Frame::ipc(Uid::NIL, from, Timeout::NEVER, timeout)
    }

    /// This frame with a map item.
    pub fn item(mut self, fpage: Fpage, hot_spot: u64) -> Frame {
        self = self.flags(op::ITEM);
        (self.r13, self.r14) = (fpage.0, hot_spot);
        self
    }

    /// This frame with a point in time in the place of both timeouts.
    pub fn until(mut self, ns: u64) -> Frame {
        self = self.flags(op::ABSOLUTE);
        self.r15 = ns;
        self
    }

    /// This frame, ended by an alert.
    pub fn alertable(self) -> Frame {
        self.flags(op::ALERTABLE)
    }

    /// This frame with whatever comes in answer: a block, and for short forms an item into the standing window.
    pub fn taking(self) -> Frame {
        self.flags(if self.op().is_general() { op::TAKES_BLOCK } else { op::TAKES })
    }

    /// A call with whatever comes in answer but this: [`op::TAKES_BLOCK`] or its like.
    pub fn taking_not(self, what: u32) -> Frame {
        self.taking().operation(|op| op.without(what))
    }

    /// The operation.
    pub fn op(&self) -> Op {
        Op::of(self.rax)
    }

    /// This frame with flags of [`op`].
    pub fn flags(self, flags: u32) -> Frame {
        self.operation(|op| op.with(flags))
    }

    fn operation(mut self, change: impl FnOnce(Op) -> Op) -> Frame {
        self.rax = self.rax >> 32 << 32 | change(self.op()).0 as u64;
        self
    }

    /// This frame with a window.
    pub fn window(mut self, window: Fpage) -> Frame {
        self.rbp = window.0;
        self
    }

    /// This frame with another label.
    pub fn label(mut self, label: u32) -> Frame {
        self.rax = self.rax & 0xffff_ffff | (label as u64) << 32;
        self
    }

    /// Any other call, with its six arguments.
    pub fn control(eax: u32, [rdi, rsi, rdx, r10, r8, r9]: [u64; 6]) -> Frame {
        let (rax, flags) = (eax as u64, PLAIN_FLAGS);
        let other = Frame { rbx: 0xb, rbp: 0xbb, r12: 0xc, r13: 0xd, r14: 0xe, r15: 0xf, ..Frame::ZERO };
        Frame { rax, rdi, rsi, rdx, r10, r8, r9, flags, ..other }
    }

    /// The words w0 … w10.
    pub fn words(&self) -> [u64; 11] {
        [
            self.rdi, self.rsi, self.r8, self.r9, self.r10, self.r12, self.r13, self.r14, self.rbx, self.rbp,
            self.r15,
        ]
    }

    /// Every register that comes back, named.
    pub fn registers(&self) -> [(&'static str, u64); 15] {
        [
            ("rax", self.rax),
            ("rbx", self.rbx),
            ("rcx", self.rcx),
            ("rdx", self.rdx),
            ("rsi", self.rsi),
            ("rdi", self.rdi),
            ("rbp", self.rbp),
            ("r8", self.r8),
            ("r9", self.r9),
            ("r10", self.r10),
            ("r11", self.r11),
            ("r12", self.r12),
            ("r13", self.r13),
            ("r14", self.r14),
            ("r15", self.r15),
        ]
    }

    /// The received label.
    pub fn received_label(&self) -> u32 {
        (self.rax >> 32) as u32
    }

    /// The kind of the message received, if one was.
    pub fn kind(&self) -> Option<Kind> {
        Kind::from_eax(self.rax as u32)
    }

    /// The sender.
    pub fn sender(&self) -> Uid {
        Uid(self.rdx)
    }

    /// The error, if the call failed.
    pub fn error(&self) -> Option<Error> {
        if self.rax as u32 >> 31 == 0 { Error::from_code(self.rax as u32) } else { None }
    }
}

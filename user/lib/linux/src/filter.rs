//! Filters of calls: programs of classic BPF, as Linux's `seccomp` has them. One that was checked ends, since it only jumps forwards, and reads nothing but the call.

use crate::errno::{EINVAL, Result};
use alloc::vec;
use alloc::vec::Vec;
use linux_raw_sys::ptrace::{
    BPF_A, BPF_ABS, BPF_ADD, BPF_ALU, BPF_AND, BPF_DIV, BPF_IMM, BPF_JA, BPF_JEQ, BPF_JGE, BPF_JGT, BPF_JMP,
    BPF_JSET, BPF_K, BPF_LD, BPF_LDX, BPF_LEN, BPF_LSH, BPF_MEM, BPF_MEMWORDS, BPF_MISC, BPF_MUL, BPF_NEG,
    BPF_OR, BPF_RET, BPF_RSH, BPF_ST, BPF_STX, BPF_SUB, BPF_TAX, BPF_TXA, BPF_W, BPF_X, BPF_XOR,
};

/// Longest program.
pub const INSTRUCTIONS_MAX: usize = 4096;

/// Bytes of an instruction: `struct sock_filter`.
pub const INSTRUCTION_BYTES: usize = 8;

/// Words of 32 bits of what a program reads: `struct seccomp_data`.
pub const DATA_WORDS: usize = 16;

/// Number of the architecture in it: `AUDIT_ARCH_X86_64`, as `linux/audit.h` has it.
pub const ARCHITECTURE: u32 = 0xc000_003e;

/// Where the address of the call is in it, in words.
const ADDRESS_AT: u32 = 2;

/// Words of memory that a program has.
const MEMORY: usize = BPF_MEMWORDS as usize;

/// A call, as a program reads it.
pub type Data = [u32; DATA_WORDS];

/// A call as a program reads it: its number, the address behind it, and its arguments.
pub fn data(number: u32, address: u64, arguments: [u64; 6]) -> Data {
    let mut data = [0; DATA_WORDS];
    (data[0], data[1]) = (number, ARCHITECTURE);
    for (place, word) in data[2..].chunks_exact_mut(2).zip([address].into_iter().chain(arguments)) {
        place.copy_from_slice(&[word as u32, (word >> 32) as u32]);
    }
    data
}

/// An operation with two numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Operation {
    Add,
    Subtract,
    Multiply,
    Divide,
    And,
    Or,
    Xor,
    Left,
    Right,
}

/// A condition of two numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Condition {
    Equal,
    Greater,
    NotLess,
    HasBits,
}

/// The second number of an operation: a constant, or the other register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Second {
    Constant(u32),
    Index,
}

/// A register: the accumulator, or the index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Register {
    Accumulator,
    Index,
}

/// An instruction that was checked. Jumps are numbers of instructions that are left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Instruction {
    /// The accumulator becomes a word of the call.
    Read(u8),
    /// A register becomes a constant.
    Set(Register, u32),
    /// A register becomes a word of memory, or the other way round.
    Load(Register, u8),
    Store(Register, u8),
    /// A register becomes the other one.
    Copy(Register),
    Operate(Operation, Second),
    Negate,
    Jump(u32),
    Branch(Condition, Second, [u8; 2]),
    /// The program ends with a constant, or with the accumulator.
    Return(Option<u32>),
}

/// A program that was checked.
#[derive(Debug)]
pub struct Program {
    instructions: Vec<Instruction>,
    /// Whether it looks at the address of the call.
    pub needs_address: bool,
}

/// Bytes that an instruction takes.
pub const CHECKED_BYTES: usize = size_of::<Instruction>();

fn place_in_memory(at: u32) -> Result<u8> {
    if (at as usize) < MEMORY { Ok(at as u8) } else { Err(EINVAL) }
}

fn operation(code: u32) -> Option<Operation> {
    Some(match code {
        BPF_ADD => Operation::Add,
        BPF_SUB => Operation::Subtract,
        BPF_MUL => Operation::Multiply,
        BPF_DIV => Operation::Divide,
        BPF_AND => Operation::And,
        BPF_OR => Operation::Or,
        BPF_XOR => Operation::Xor,
        BPF_LSH => Operation::Left,
        BPF_RSH => Operation::Right,
        _ => return None,
    })
}

fn condition(code: u32) -> Option<Condition> {
    Some(match code {
        BPF_JEQ => Condition::Equal,
        BPF_JGT => Condition::Greater,
        BPF_JGE => Condition::NotLess,
        BPF_JSET => Condition::HasBits,
        _ => return None,
    })
}

impl Instruction {
    /// An instruction of Linux: `left` come behind it. `EINVAL`: there is none such, or it leads out of the program, the call or the memory.
    fn read(bytes: &[u8; INSTRUCTION_BYTES], left: usize) -> Result<Instruction> {
        let [low, high, yes, no, first, second, third, fourth] = *bytes;
        let code = u32::from(u16::from_le_bytes([low, high]));
        let constant = u32::from_le_bytes([first, second, third, fourth]);
        let word = |register| if register == Register::Index { BPF_LDX | BPF_W } else { BPF_LD | BPF_W };
        for register in [Register::Accumulator, Register::Index] {
            match code.wrapping_sub(word(register)) {
                BPF_IMM => return Ok(Instruction::Set(register, constant)),
                BPF_LEN => return Ok(Instruction::Set(register, 4 * DATA_WORDS as u32)),
                BPF_MEM => return Ok(Instruction::Load(register, place_in_memory(constant)?)),
                _ => {}
            }
        }
        let second = if code & BPF_X != 0 { Second::Index } else { Second::Constant(constant) };
        const READ: u32 = BPF_LD | BPF_W | BPF_ABS;
        const NEGATE: u32 = BPF_ALU | BPF_NEG;
        const JUMP: u32 = BPF_JMP | BPF_JA;
        const FROM_INDEX: u32 = BPF_MISC | BPF_TXA;
        const TO_INDEX: u32 = BPF_MISC | BPF_TAX;
        const RETURN_CONSTANT: u32 = BPF_RET | BPF_K;
        const RETURN: u32 = BPF_RET | BPF_A;
        match code {
            READ if constant.is_multiple_of(4) && constant < 4 * DATA_WORDS as u32 => {
                Ok(Instruction::Read((constant / 4) as u8))
            }
            BPF_ST => place_in_memory(constant).map(|at| Instruction::Store(Register::Accumulator, at)),
            BPF_STX => place_in_memory(constant).map(|at| Instruction::Store(Register::Index, at)),
            TO_INDEX => Ok(Instruction::Copy(Register::Index)),
            FROM_INDEX => Ok(Instruction::Copy(Register::Accumulator)),
            NEGATE => Ok(Instruction::Negate),
            JUMP if (constant as usize) < left => Ok(Instruction::Jump(constant)),
            RETURN_CONSTANT => Ok(Instruction::Return(Some(constant))),
            RETURN => Ok(Instruction::Return(None)),
            _ if code & !(BPF_X | 0xf0) == BPF_ALU => {
                let operation = operation(code & 0xf0).ok_or(EINVAL)?;
                let is_wrong = match (operation, second) {
                    (Operation::Divide, Second::Constant(by)) => by == 0,
                    (Operation::Left | Operation::Right, Second::Constant(by)) => by >= u32::BITS,
                    _ => false,
                };
                if is_wrong { Err(EINVAL) } else { Ok(Instruction::Operate(operation, second)) }
            }
            _ if code & !(BPF_X | 0xf0) == BPF_JMP && usize::from(yes.max(no)) < left => {
                let condition = condition(code & 0xf0).ok_or(EINVAL)?;
                Ok(Instruction::Branch(condition, second, [yes, no]))
            }
            _ => Err(EINVAL),
        }
    }
}

impl Program {
    /// A program of these instructions. `EINVAL`: it is none that Linux would take.
    pub fn new(bytes: &[u8]) -> Result<Program> {
        let (all, rest) = bytes.as_chunks();
        if all.is_empty() || all.len() > INSTRUCTIONS_MAX || !rest.is_empty() {
            return Err(EINVAL);
        }
        let left = (0..all.len()).rev();
        let instructions = all.iter().zip(left).map(|(bytes, left)| Instruction::read(bytes, left));
        let instructions = instructions.collect::<Result<Vec<Instruction>>>()?;
        if !matches!(instructions.last(), Some(Instruction::Return(_))) {
            return Err(EINVAL);
        }
        check_memory(&instructions)?;
        let is_address = |at: u32| (ADDRESS_AT..ADDRESS_AT + 2).contains(&at);
        let needs_address = instructions
            .iter()
            .any(|instruction| matches!(instruction, Instruction::Read(at) if is_address((*at).into())));
        Ok(Program { instructions, needs_address })
    }

    /// Instructions that it has.
    pub fn count(&self) -> usize {
        self.instructions.len()
    }

    /// Its verdict on a call: an action, and a number of 16 bits.
    pub fn run(&self, data: &Data) -> u32 {
        let (mut accumulator, mut index, mut memory, mut at) = (0u32, 0u32, [0u32; MEMORY], 0);
        while let Some(instruction) = self.instructions.get(at) {
            at += 1;
            let value = |second| match second {
                Second::Constant(constant) => constant,
                Second::Index => index,
            };
            match *instruction {
                Instruction::Read(word) => accumulator = data[usize::from(word)],
                Instruction::Set(Register::Accumulator, constant) => accumulator = constant,
                Instruction::Set(Register::Index, constant) => index = constant,
                Instruction::Load(Register::Accumulator, at) => accumulator = memory[usize::from(at)],
                Instruction::Load(Register::Index, at) => index = memory[usize::from(at)],
                Instruction::Store(Register::Accumulator, at) => memory[usize::from(at)] = accumulator,
                Instruction::Store(Register::Index, at) => memory[usize::from(at)] = index,
                Instruction::Copy(Register::Accumulator) => accumulator = index,
                Instruction::Copy(Register::Index) => index = accumulator,
                Instruction::Negate => accumulator = accumulator.wrapping_neg(),
                Instruction::Operate(operation, second) => {
                    let Some(result) = operate(operation, accumulator, value(second)) else { return 0 };
                    accumulator = result;
                }
                Instruction::Jump(by) => at += by as usize,
                Instruction::Branch(condition, second, [yes, no]) => {
                    let is_so = holds(condition, accumulator, value(second));
                    at += usize::from(if is_so { yes } else { no });
                }
                Instruction::Return(constant) => return constant.unwrap_or(accumulator),
            }
        }
        0
    }
}

/// Result of an operation. None: it divides by 0, by which a program ends with 0.
fn operate(operation: Operation, first: u32, second: u32) -> Option<u32> {
    Some(match operation {
        Operation::Add => first.wrapping_add(second),
        Operation::Subtract => first.wrapping_sub(second),
        Operation::Multiply => first.wrapping_mul(second),
        Operation::Divide => return first.checked_div(second),
        Operation::And => first & second,
        Operation::Or => first | second,
        Operation::Xor => first ^ second,
        Operation::Left => first.wrapping_shl(second),
        Operation::Right => first.wrapping_shr(second),
    })
}

fn holds(condition: Condition, first: u32, second: u32) -> bool {
    match condition {
        Condition::Equal => first == second,
        Condition::Greater => first > second,
        Condition::NotLess => first >= second,
        Condition::HasBits => first & second != 0,
    }
}

/// Fails if a program may load a word of memory that it has not stored before, on some way to it.
fn check_memory(instructions: &[Instruction]) -> Result<()> {
    // Words that are stored on all ways that jump there. Jumps lead forwards, so one look is enough.
    let mut stored = vec![u16::MAX; instructions.len()];
    let mut now = 0u16;
    for (at, instruction) in instructions.iter().enumerate() {
        now &= stored[at];
        let mut jump = |by: usize| {
            if let Some(there) = stored.get_mut(at + 1 + by) {
                *there &= now;
            }
        };
        match *instruction {
            Instruction::Store(_, word) => now |= 1 << word,
            Instruction::Load(_, word) if now & 1 << word == 0 => return Err(EINVAL),
            Instruction::Jump(by) => {
                jump(by as usize);
                now = u16::MAX;
            }
            Instruction::Branch(_, _, [yes, no]) => {
                jump(yes.into());
                jump(no.into());
                now = u16::MAX;
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{DATA_WORDS, INSTRUCTIONS_MAX, Program, data};
    use crate::errno::EINVAL;
    use linux_raw_sys::ptrace::*;
    use std::vec;
    use std::vec::Vec;

    const RETURN: u32 = BPF_RET | BPF_K;
    const READ: u32 = BPF_LD | BPF_W | BPF_ABS;
    const EQUAL: u32 = BPF_JMP | BPF_JEQ | BPF_K;

    /// Bytes of a program: code, both jumps, constant.
    pub fn bytes(instructions: &[(u32, u8, u8, u32)]) -> Vec<u8> {
        let one = |&(code, yes, no, constant): &(u32, u8, u8, u32)| {
            [&(code as u16).to_le_bytes()[..], &[yes, no], &constant.to_le_bytes()].concat()
        };
        instructions.iter().flat_map(one).collect()
    }

    fn run(instructions: &[(u32, u8, u8, u32)]) -> u32 {
        let call = data(39, 0x1234_5678_9abc, [1, 2, 3 << 32 | 4, 5, 6, 7]);
        Program::new(&bytes(instructions)).unwrap().run(&call)
    }

    fn is_refused(instructions: &[(u32, u8, u8, u32)]) -> bool {
        matches!(Program::new(&bytes(instructions)), Err(EINVAL))
    }

    #[test]
    fn programs_read_calls() {
        for (at, expected) in
            [(0, 39), (4, 0xc000_003e), (8, 0x5678_9abc), (12, 0x1234), (16, 1), (32, 4), (36, 3)]
        {
            assert_eq!(run(&[(READ, 0, 0, at), (BPF_RET | BPF_A, 0, 0, 0)]), expected, "{at}");
        }
        for at in [64, 1, 62, u32::MAX] {
            assert!(is_refused(&[(READ, 0, 0, at), (RETURN, 0, 0, 0)]), "{at}");
        }
        let wants = |at| Program::new(&bytes(&[(READ, 0, 0, at), (RETURN, 0, 0, 0)])).unwrap().needs_address;
        assert_eq!([4, 8, 12, 16].map(wants), [false, true, true, false]);
    }

    #[test]
    fn programs_compute() {
        let cases = [
            (BPF_ADD, 7, 5, 12),
            (BPF_SUB, 5, 7, u32::MAX - 1),
            (BPF_MUL, 1 << 31, 3, 1 << 31),
            (BPF_DIV, 17, 5, 3),
            (BPF_AND, 12, 10, 8),
            (BPF_OR, 12, 10, 14),
            (BPF_XOR, 12, 10, 6),
            (BPF_LSH, 3, 31, 1 << 31),
            (BPF_RSH, 1 << 31, 31, 1),
        ];
        for (code, first, second, expected) in cases {
            let end = (BPF_RET | BPF_A, 0, 0, 0);
            let set = (BPF_LD | BPF_W | BPF_IMM, 0, 0, first);
            assert_eq!(run(&[set, (BPF_ALU | code | BPF_K, 0, 0, second), end]), expected, "{code:#x}");
            let index = (BPF_LDX | BPF_W | BPF_IMM, 0, 0, second);
            assert_eq!(run(&[set, index, (BPF_ALU | code | BPF_X, 0, 0, 9), end]), expected, "{code:#x}");
        }
        let end = (RETURN, 0, 0, 5);
        assert_eq!(run(&[(BPF_ALU | BPF_DIV | BPF_X, 0, 0, 0), end]), 0, "a division by 0 ends it");
        for (code, by) in [(BPF_DIV, 0), (BPF_LSH, 32), (BPF_RSH, 32), (BPF_MOD, 3)] {
            assert!(is_refused(&[(BPF_ALU | code | BPF_K, 0, 0, by), end]), "{code:#x}");
        }
        let negated =
            [(BPF_LD | BPF_W | BPF_LEN, 0, 0, 0), (BPF_ALU | BPF_NEG, 0, 0, 0), (BPF_RET | BPF_A, 0, 0, 0)];
        assert_eq!(run(&negated), (4 * DATA_WORDS as u32).wrapping_neg());
    }

    #[test]
    fn programs_jump_forwards() {
        let program = [(READ, 0, 0, 0), (EQUAL, 1, 0, 39), (RETURN, 0, 0, 1), (RETURN, 0, 0, 2)];
        assert_eq!(run(&program), 2);
        let program = [(BPF_JMP | BPF_JA, 0, 0, 1), (RETURN, 0, 0, 1), (RETURN, 0, 0, 2)];
        assert_eq!(run(&program), 2);
        for (code, constant, expected) in [
            (BPF_JGT, 38, 2),
            (BPF_JGT, 39, 1),
            (BPF_JGE, 39, 2),
            (BPF_JGE, 40, 1),
            (BPF_JSET, 1, 2),
            (BPF_JSET, 8, 1),
        ] {
            let program =
                [(READ, 0, 0, 0), (BPF_JMP | code, 1, 0, constant), (RETURN, 0, 0, 1), (RETURN, 0, 0, 2)];
            assert_eq!(run(&program), expected, "{code:#x}, {constant}");
        }
        for (yes, no) in [(1, 0), (0, 1), (255, 255)] {
            assert!(is_refused(&[(EQUAL, yes, no, 0), (RETURN, 0, 0, 0)]));
        }
        assert!(is_refused(&[(BPF_JMP | BPF_JA, 0, 0, 1), (RETURN, 0, 0, 0)]));
        assert!(is_refused(&[(BPF_JMP | BPF_JA, 0, 0, u32::MAX), (RETURN, 0, 0, 0)]));
    }

    #[test]
    fn memory_is_stored_before_it_is_loaded() {
        let (store, load) = ((BPF_ST, 0, 0, 15), (BPF_LD | BPF_W | BPF_MEM, 0, 0, 15));
        let end = (BPF_RET | BPF_A, 0, 0, 0);
        let set = (BPF_LD | BPF_W | BPF_IMM, 0, 0, 7);
        assert_eq!(run(&[set, store, (BPF_LD | BPF_W | BPF_IMM, 0, 0, 0), load, end]), 7);
        assert!(is_refused(&[load, end]));
        assert!(is_refused(&[(EQUAL, 1, 0, 5), store, load, end]), "one way leads past it");
        assert_eq!(run(&[(EQUAL, 0, 1, 0), (BPF_JMP | BPF_JA, 0, 0, 0), store, load, end]), 0);
        assert!(is_refused(&[(BPF_ST, 0, 0, 16), end]));
        let index = [
            (BPF_LDX | BPF_W | BPF_IMM, 0, 0, 9),
            (BPF_STX, 0, 0, 0),
            (BPF_MISC | BPF_TXA, 0, 0, 0),
            (BPF_MISC | BPF_TAX, 0, 0, 0),
            (BPF_LDX | BPF_W | BPF_MEM, 0, 0, 0),
            (BPF_MISC | BPF_TXA, 0, 0, 0),
            end,
        ];
        assert_eq!(run(&index), 9);
    }

    #[test]
    fn no_other_programs_are_taken() {
        assert!(is_refused(&[]));
        assert!(is_refused(&[(BPF_LD | BPF_W | BPF_IMM, 0, 0, 0)]), "it does not end");
        for code in [
            BPF_LD | BPF_B | BPF_ABS,
            BPF_LD | BPF_H | BPF_ABS,
            BPF_LD | BPF_W | BPF_IND,
            BPF_LDX | BPF_B | BPF_MSH,
            BPF_RET | BPF_X,
            0xffff,
            0x100 | RETURN,
        ] {
            assert!(is_refused(&[(code, 0, 0, 0), (RETURN, 0, 0, 0)]), "{code:#x}");
        }
        let long = vec![(RETURN, 0, 0, 0); INSTRUCTIONS_MAX];
        assert_eq!(run(&long), 0);
        assert!(is_refused(&[long, vec![(RETURN, 0, 0, 0)]].concat()));
        assert!(Program::new(&[0x06, 0, 0, 0, 0, 0, 0]).is_err());
    }

    /// Programs of any instructions end.
    #[test]
    fn random_programs_end() {
        let mut random = crate::tests::random::Random(3);
        let mut taken = 0;
        for _ in 0..20_000 {
            let codes = [
                READ,
                RETURN,
                EQUAL,
                BPF_ST,
                BPF_ALU | BPF_DIV | BPF_X,
                BPF_LD | BPF_W | BPF_MEM,
                BPF_JMP,
                BPF_STX,
                0x87,
                7,
            ];
            let count = 1 + random.below(8);
            let mut program: Vec<_> = (0..count)
                .map(|_| {
                    let code = if random.below(16) == 0 {
                        random.below(1 << 16)
                    } else {
                        u64::from(random.of(&codes.map(u64::from)) as u32)
                    };
                    (code as u32, random.below(4) as u8, random.below(4) as u8, 4 * random.below(5) as u32)
                })
                .collect();
            program.push((RETURN, 0, 0, 7));
            if let Ok(program) = Program::new(&bytes(&program)) {
                taken += 1;
                program.run(&data(1, 2, [3; 6]));
            }
        }
        assert!(taken > 500, "{taken}");
    }
}

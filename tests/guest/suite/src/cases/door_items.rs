//! Identifiers that are handed over in calls and given up again, at random, against a table of who should have which (rows D1, D4,
//! D12).
//!
//! The fast path takes the simple ones: of the first page of numbers, into a window of one. Here they meet all others, and both of
//! the kernel's paths must come to the same.

use super::door::{self, DATUM, Pair, exchange, hand, make, serve, unreferenced};
use crate::kit::{Agent, Child, Frame, Outcome, Random, WORDS};
use crate::{check, check_eq};
use sys::abi::call::{Call, DOOR_ITEM_CALL, FLUSH_SELF, NO_ITEM};
use sys::{Error, Fpage, Kind, Rights};

/// Numbers that are used: some on the first page, at its end, and beyond it.
const NUMBERS: [u32; 6] = [2, 40, 41, 511, 512, 700];

/// Doors of a third task; of the last nobody keeps an identifier for good.
const DOORS: [u32; 3] = [1, 2, 3];

/// Where the third task gets what the others hand on.
const SPARE: u32 = 60;

/// Where the client has those that are kept.
const KEPT: u32 = 100;

/// An identifier: which door, and whether it may be handed on.
type Known = Option<(u32, bool)>;

/// What a task should have at [`NUMBERS`].
type Table = [Known; NUMBERS.len()];

struct Scene {
    pair: Pair,
    maker: Agent,
    end: Agent,
    client: Table,
    server: Table,
    window: Fpage,
    random: Random,
}

const fn one(number: u32, rights: Rights) -> Fpage {
    Fpage::doors(number, 0, rights)
}

fn count(scene: &Scene, door: u32) -> usize {
    let of = |table: &Table| table.iter().flatten().filter(|known| known.0 == door).count();
    of(&scene.client) + of(&scene.server)
}

impl Scene {
    /// Somebody has lost this; if it was the last of the last door, that says so.
    fn tell(&mut self, lost: Known) -> Outcome {
        let last = DOORS[2];
        let is_last = lost.is_some_and(|(door, _)| door == last) && count(self, last) == 0;
        if is_last { unreferenced(&mut self.end, last as u64) } else { Ok(()) }
    }

    /// Does something, and looks at a number.
    fn step(&mut self) -> Outcome {
        match self.random.below(8) {
            0..2 => self.give()?,
            2 => self.set_window()?,
            3..6 => self.call()?,
            6 => self.release(true)?,
            _ => self.release(false)?,
        }
        let (index, of_client) =
            (self.random.below(NUMBERS.len() as u64) as usize, self.random.below(2) == 0);
        self.look(index, of_client)
    }

    /// The third task hands one of its own to the client.
    fn give(&mut self) -> Outcome {
        let door = self.random.pick(&DOORS);
        let rights = self.random.pick(&[Rights::R, Rights::RW, Rights::RW]);
        let index = self.random.below(NUMBERS.len() as u64) as usize;
        hand(&mut self.maker, door, rights, &mut self.pair.client, NUMBERS[index])?;
        // What was there goes first, also if it is of the same door.
        let lost = self.client[index].take();
        self.tell(lost)?;
        self.client[index] = Some((door, rights.has(Rights::W)));
        Ok(())
    }

    fn set_window(&mut self) -> Outcome {
        let number = self.random.pick(&NUMBERS);
        self.window = match self.random.below(8) {
            0 => Fpage::NIL,
            1 => Fpage::memory(0x6000_0000, 12, Rights::RW),
            2 => Fpage::doors(40, 1, Rights::RW),
            _ => one(number, Rights::RW),
        };
        sys::thread_set_window(self.pair.server.uid, self.window)?;
        Ok(())
    }

    /// The client calls, with one of its identifiers.
    fn call(&mut self) -> Outcome {
        let from = self.random.below(NUMBERS.len() as u64) as usize;
        let rights = self.random.pick(&[
            Rights::RW,
            Rights::RW,
            Rights::R,
            Rights::W,
            Rights::RW.or(Rights::GRANT),
            Rights::R.or(Rights::X),
        ]);
        let hot_spot = self.random.below(4);
        let mut frame = Frame::door_call(9, 0x66, WORDS);
        frame.rax = 0x66 << 32 | DOOR_ITEM_CALL as u64;
        (frame.r13, frame.r14) = (one(NUMBERS[from], rights).0, hot_spot);
        let fits = self.window.log2() <= 1 && !self.window.is_nil();
        if !fits {
            check_eq!(self.pair.client.run(frame)?.error(), Some(Error::NoWindow));
            check!(self.pair.server.settle()?);
            return Ok(());
        }
        self.pair.client.block(frame)?;
        let got = self.pair.server.wait()?;
        let base = (self.window.base() >> 12) as u32;
        let target = base + (hot_spot as u32 & ((1 << self.window.log2()) - 1));
        let place = one(target, rights.and(Rights::RWX));
        check_eq!((got.rax, got.rdx), (0x66 << 32 | (Kind::DoorCall as u32 & !NO_ITEM) as u64, DATUM));
        check_eq!((got.words()[..6].to_vec(), got.r13, got.r14), (WORDS[..6].to_vec(), place.0, hot_spot));
        check_eq!(got.words()[8..], [0; 3]);
        door::answer(&mut self.pair.server, &mut self.pair.client, 4)?;
        if let Some((door, true)) = self.client[from]
            && rights.has(Rights::R)
            && let Some(to) = NUMBERS.iter().position(|&number| number == target)
        {
            let lost = self.server[to].replace((door, rights.has(Rights::W)));
            if rights.has(Rights::GRANT) {
                self.client[from] = None;
            }
            self.tell(lost)?;
        }
        Ok(())
    }

    /// One of the two tasks gives one of its identifiers up, or the right to hand it on.
    fn release(&mut self, of_client: bool) -> Outcome {
        let index = self.random.below(NUMBERS.len() as u64) as usize;
        let rights = self.random.pick(&[Rights::R, Rights::RW, Rights::RWX, Rights::W]);
        let (agent, table) = if of_client {
            (&mut self.pair.client, &mut self.client)
        } else {
            (&mut self.pair.maker, &mut self.server)
        };
        let page = one(NUMBERS[index], rights);
        let (error, results) = agent.control(Call::Flush as u32, [page.0, FLUSH_SELF, 11, 12, 13, 14])?;
        check_eq!((error, results), (0, [0, FLUSH_SELF, 11, 12, 13, 14]));
        let lost = table[index].take();
        if rights.has(Rights::R) {
            return self.tell(lost);
        }
        table[index] = lost.map(|(door, _)| (door, false));
        Ok(())
    }

    /// Whether a task has at a number what it should, and may hand it on.
    fn look(&mut self, index: usize, of_client: bool) -> Outcome {
        let (agent, known) = if of_client {
            (&mut self.pair.client, self.client[index])
        } else {
            (&mut self.pair.maker, self.server[index])
        };
        match known {
            Some((door, may)) => {
                exchange(agent, NUMBERS[index], &mut self.end, door as u64)?;
                // Handed on, it works if that was allowed.
                hand(agent, NUMBERS[index], Rights::RW, &mut self.maker, SPARE)?;
                if may {
                    exchange(&mut self.maker, SPARE, &mut self.end, door as u64)?;
                    return door::flush(&mut self.maker, SPARE, FLUSH_SELF);
                }
                let got = self.maker.run(Frame::door_call(SPARE, 0, WORDS))?;
                check_eq!(got.error(), Some(Error::NoSuch));
                Ok(())
            }
            None => {
                let got = agent.run(Frame::door_call(NUMBERS[index], 0, WORDS))?;
                check_eq!(got.error(), Some(Error::NoSuch));
                Ok(())
            }
        }
    }

    /// Everything is looked at, and given up.
    fn clear(&mut self) -> Outcome {
        for index in 0..NUMBERS.len() {
            for of_client in [true, false] {
                self.look(index, of_client)?;
                let (agent, table) = if of_client {
                    (&mut self.pair.client, &mut self.client)
                } else {
                    (&mut self.pair.maker, &mut self.server)
                };
                door::flush(agent, NUMBERS[index], FLUSH_SELF)?;
                let lost = table[index].take();
                self.tell(lost)?;
            }
        }
        Ok(())
    }
}

pub fn identifiers_come_and_go() -> Outcome {
    const STEPS: usize = 400;
    let third = Child::new()?;
    let (mut pair, mut maker, mut end) = (Pair::new()?, third.agent()?, third.agent()?);
    for door in DOORS {
        check_eq!(make(&mut maker, door, door as u64)?, None);
    }
    for door in &DOORS[..2] {
        hand(&mut maker, *door, Rights::RW, &mut pair.client, KEPT + door)?;
    }
    serve(&mut end)?;
    let nothing = [None; NUMBERS.len()];
    let mut scene = Scene {
        pair,
        maker,
        end,
        client: nothing,
        server: nothing,
        window: Fpage::NIL,
        random: Random::new(0),
    };
    let mut frames = [None; 2];
    // The first round makes tables; the others find all as it was.
    for round in 0..3 {
        scene.random = Random::new(round);
        for _ in 0..STEPS {
            scene.step()?;
        }
        scene.clear()?;
        let used =
            [scene.pair.near.0, scene.pair.far.0].map(|task| sys::task_info(task).map(|info| info.used));
        for (before, now) in frames.iter_mut().zip(used) {
            let now = now?;
            check_eq!(before.replace(now).unwrap_or(now), now);
        }
    }
    scene.pair.exchange()
}

//! Registers of programs in C across messages: `hostile` leaves nothing in them as a compiler wants it, and looks what it can see; `registers-c` is its
//! partner.

use crate::world::{LIMIT, Verdict, World, boot, failed};
use libtest_mimic::Trial;
use xtask::guest::End;

/// Processors, each with another way in `user/lib/c/lib/ipc.S`: with AVX and instructions for the bases, with either alone, with neither.
const PROCESSORS: [&str; 4] = ["max", "SandyBridge", "max,-avx", "qemu64"];

/// The trials of this module: on each processor, with the fast path on and off.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let trial = |cpu: &'static str, variant: &'static str| {
        let name = format!("registers::of_c_on_{}_fastpath_{variant}", cpu.replace(",-", "_without_"));
        world.trial("c", name, move |world| of_c(world, cpu, variant))
    };
    PROCESSORS.iter().flat_map(|cpu| ["on", "off"].map(|variant| trial(cpu, variant))).collect()
}

fn of_c(world: &World, cpu: &str, variant: &str) -> Verdict {
    let mut machine = world.machine().with(&format!("init=hostile fastpath={variant} pti=off"));
    machine.cpu = cpu.into();
    let (end, text) = boot(&machine, LIMIT)?;
    let is_said = |line: &str| text.lines().any(|said| said.trim_end() == line);
    if end == End::Orderly(0) && is_said("HOSTILE ok") && is_said("REGISTERS-C ok") {
        return Ok(());
    }
    Err(failed("expected HOSTILE ok and REGISTERS-C ok", &end, &text))
}

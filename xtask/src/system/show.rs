//! Shows what a description says: as text, and as a drawing of the programs and the servers that they may ask for.

use super::check::servers_of;
use crate::{Error, Result};
use description::{CLASSES, Device, Program, System};
use layout::backends::svg::SVGWriter;
use layout::gv::{DotParser, GraphBuilder};
use std::fmt::Write;

/// Columns of the text.
const COLUMNS: [&str; 7] = ["PROGRAM", "SERVES", "MAY ASK FOR", "PRIORITY", "KERNEL", "MEMORY", "DEVICES"];

/// The line of programs that have no entry.
const OTHERS: &str = "(all others)";

/// The description as a table, with a line for each program and one for all others.
pub fn text(system: &System) -> String {
    let others = Program { name: OTHERS.into(), ..system.usual.clone() };
    let rows: Vec<[String; COLUMNS.len()]> = [COLUMNS.map(String::from)]
        .into_iter()
        .chain(system.programs.iter().chain([&others]).map(|program| row(system, program)))
        .collect();
    let widths: Vec<usize> = (0..COLUMNS.len())
        .map(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
        .collect();
    let mut text = format!("{}\n\n", system.source);
    for row in rows {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:width$}")).collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

fn row(system: &System, program: &Program) -> [String; COLUMNS.len()] {
    let or_none = |text: String| if text.is_empty() { "-".into() } else { text };
    let priority = match program.priority == program.priority_max {
        true => program.priority.to_string(),
        false => format!("{} to {}", program.priority, program.priority_max),
    };
    [
        program.name.clone(),
        or_none(serves(program)),
        asks(system, program),
        priority,
        format!("{}/{}", program.kernel_share, description::KERNEL_SHARES),
        memory(program),
        or_none(devices(program).join(" ")),
    ]
}

/// The names that a program serves, and who does if it does not.
fn serves(program: &Program) -> String {
    let names = program.serves.join(" ");
    match &program.otherwise {
        Some(other) => format!("{names} (or {other})"),
        None => names,
    }
}

/// The names that a program may ask for; those for which it finds others with these.
fn asks(system: &System, program: &Program) -> String {
    let monitored = |name: &String| match program.finds(name) {
        Some(found) if found != name => format!("{name} (finds {found})"),
        _ => name.clone(),
    };
    match &program.uses {
        Some(uses) if uses.is_empty() => "-".into(),
        Some(uses) => uses.iter().map(monitored).collect::<Vec<_>>().join(" "),
        None => {
            let others = program.instead.iter().map(|(name, _)| monitored(name));
            let name = if program.name == OTHERS { "" } else { &program.name };
            let servers = system.programs.iter().filter(|server| !server.has_client(name));
            let mut refused: Vec<&str> =
                servers.flat_map(|server| &server.serves).map(|name| &**name).collect();
            refused.dedup();
            let all =
                if refused.is_empty() { "all".into() } else { format!("all but {}", refused.join(" ")) };
            [all].into_iter().chain(others).collect::<Vec<_>>().join(", ")
        }
    }
}

fn memory(program: &Program) -> String {
    let own = bytes(program.pages_max * 4096);
    let own = match program.colours {
        0 => own,
        colours => format!("{own} in {colours} colours"),
    };
    match program.contiguous_max {
        0 => own,
        contiguous => format!("{own} + {}", bytes(contiguous)),
    }
}

fn bytes(bytes: u64) -> String {
    match bytes {
        _ if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ => format!("{} KiB", bytes >> 10),
    }
}

/// Devices of a program, and classes of those that the bus server gives it; and the boot archive, if it may read that.
fn devices(program: &Program) -> Vec<String> {
    let classes = CLASSES.into_iter().filter(|(_, class)| program.classes >> class & 1 != 0);
    let classes = classes.map(|(name, _)| format!("{name} devices"));
    let bus = program.is_bus.then(|| "bus".into());
    let archive = program.reads_archive.then(|| "boot archive".into());
    program.devices.iter().map(device).chain(classes).chain(bus).chain(archive).collect()
}

fn device(device: &Device) -> String {
    match *device {
        Device::Ports { first, log2 } => format!("ports {first:#x}+{}", 1 << log2),
        Device::Interrupt(line) => format!("interrupt {line}"),
    }
}

/// The description as an SVG drawing: an arrow leads from a program to each server that it may ask for by name; one with the name of a server
/// leads to the monitor that is found in its place. Programs that may ask for all have no arrows but those.
pub fn drawing(system: &System) -> Result<String> {
    let dot = dot(system);
    let wrong = |why: String| Error::new(format!("cannot draw {}: {why}\n{dot}", system.source));
    let graph = DotParser::new(&dot).process().map_err(wrong)?;
    let mut builder = GraphBuilder::new();
    builder.visit_graph(&graph);
    let mut svg = SVGWriter::new();
    builder.get().do_it(false, false, false, &mut svg);
    Ok(svg.finalize())
}

/// The drawing in the language of Graphviz. Names have no quotation marks and no backslashes in it.
fn dot(system: &System) -> String {
    let mut dot = String::from("digraph system {\n  rankdir=LR;\n  node [shape=box];\n");
    for (index, program) in system.programs.iter().enumerate() {
        let mut lines = vec![program.name.clone()];
        if program.serves.iter().any(|name| *name != program.name) {
            lines.push(program.serves.join(", "));
        }
        if program.uses.is_none() {
            lines.push("may ask for all".into());
        }
        lines.extend(devices(program));
        let _ = writeln!(
            dot,
            "  p{index} [label=\"{}\"];",
            lines.iter().map(|line| plain(line)).collect::<Vec<_>>().join("\\n")
        );
    }
    for (index, program) in system.programs.iter().enumerate() {
        let monitored = program.instead.iter().map(|(name, _)| name);
        for name in program.uses.as_ref().map_or(monitored.collect(), |uses| uses.iter().collect::<Vec<_>>())
        {
            let Some(found) = program.finds(name) else { continue };
            let label = if found == name { String::new() } else { format!(" [label=\"{}\"]", plain(name)) };
            for server in servers_of(&system.programs, found) {
                let _ = writeln!(dot, "  p{index} -> p{server}{label};");
            }
        }
    }
    dot + "}\n"
}

fn plain(text: &str) -> String {
    text.chars().map(|c| if matches!(c, '"' | '\\') { '\'' } else { c }).collect()
}

//! The verb `bench`: counts what operations of the kernel cost.
//!
//! The benchmark program runs each operation a few hundred times between marker instructions; QEMU counts
//! instead of timing, and the plugin `ipcscope` notes what happens between markers. So the figures are facts:
//! the same on every host and in every run, compared exactly with the committed table by [`difference`].

mod cells;
mod compare;
mod devices;
mod limits;
mod linux;
mod memory;
mod page;
mod rows;

use crate::build::{self, System, run_builder};
use crate::cli::BenchOptions;
use crate::guest::{End, Guest};
use crate::l4v4::{self, Counted};
use crate::machine::{MEMORY_MIB, Machine};
use crate::paths::{self, Scratch};
use crate::{Context, Error, Result, colours, peers, tlb};
pub use cells::is_comment;
use compare::{compare, is_of_same_program, with_rows_of_other_hosts};
use devices::Wanted;
pub use page::{Figures, PAGES_WITH_CELLS, committed_figures};
use rows::{Row, rows, suites};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// Iterations of an operation that are left out first.
const WARM_UP: u64 = 4;

/// Fewest iterations that a row needs.
const ITERATIONS_MIN: u64 = 100;

/// Fewest iterations that a row about a program of Debian's needs.
const STARTS_MIN: u64 = 20;

/// Longest time for one boot of the benchmark.
const LIMIT: Duration = Duration::from_secs(300);

/// Figures of a row: name in the table, and the metrics of ipcscope that are added up for it.
const FIGURES: [(&str, &[&str]); 11] = [
    ("insns", &["insns_raw"]),
    ("user", &["insns_raw_user"]),
    ("kernel", &["insns_raw_kernel"]),
    ("ilines", &["ilines_kernel"]),
    ("dlines", &["dlines_kernel"]),
    ("ipages", &["ipages_kernel"]),
    ("dpages", &["dpages_kernel"]),
    ("cr3", &["mov_to_cr3"]),
    ("swapgs", &["swapgs"]),
    ("msr", &["rdmsr", "wrmsr"]),
    ("locked", &["lock_rmw"]),
];

/// Bytes that one repetition of the copy instruction moves.
const COPY_UNIT: u64 = 8;

/// The region of a row that is counted on the host, and what such rows' names begin with.
const HOST: (&str, &str) = ("host", "idl.l4v4.");

/// Where the table says which compiler the rows of the host were counted with.
const COMPILER: &str = "l4v4_compiler";

/// Medians by region and metric.
pub type Medians = HashMap<(String, String), u64>;

/// A measured row.
#[derive(Debug)]
struct Measured {
    row: Row,
    figures: Vec<u64>,
    /// For a row that copies: how often the copy instruction went over its bytes.
    passes: Option<u64>,
    /// For a row that measures a program of Debian's: which one, with its version.
    program: Option<String>,
}

/// A measured suite.
#[derive(Debug)]
struct Measurement {
    rows: Vec<Measured>,
    /// The compiler of the rows of the host, if there are any.
    compiler: Option<String>,
}

/// Measures, prints, and renews the committed table if asked to.
pub fn perform(options: BenchOptions) -> Result<u8> {
    if options.suite.as_deref() == Some(peers::SUITE) {
        return peers::perform(&options);
    }
    let rows = rows()?;
    let suites = suites(&rows);
    let chosen: Vec<&String> = match &options.suite {
        Some(name) => suites.iter().filter(|suite| *suite == name).collect(),
        None => suites.iter().collect(),
    };
    if chosen.is_empty() {
        let name = options.suite.unwrap_or_default();
        let all = suites.join(", ");
        return Err(Error::usage(format!("there is no suite {name}; there are: {all}, {}", peers::SUITE)));
    }
    if options.json && chosen.len() > 1 {
        return Err(Error::usage("--json prints one suite; name it"));
    }
    if options.peer {
        if chosen.iter().any(|suite| *suite != linux::SUITE) {
            return Err(Error::usage(format!("--peer is for the suite {}", linux::SUITE)));
        }
        linux::measure_peer(&plugin()?, rows.iter().filter(|row| row.suite == linux::SUITE))?;
        page::renew()?;
    }
    let system = build::system()?;
    let mut over = Vec::new();
    for suite in chosen {
        let (table, text) = tables(&system, &rows, suite)?;
        if options.json {
            println!("{table}");
        } else {
            print!("{text}");
        }
        let over_here = limits::over(&rows, &table, &committed(suite)?);
        if options.bless && over_here.is_empty() {
            if suite == tlb::SUITE {
                tlb::draw(&table)?;
            }
            let table = with_rows_of_other_hosts(table, &committed(suite)?);
            paths::write(&committed_path(suite), for_git(&table).as_bytes())?;
            eprintln!("tern: renewed {}", committed_path(suite).display());
            page::renew()?;
        }
        over.extend(over_here);
    }
    match over.is_empty() {
        true => Ok(0),
        false => Err(Error::new(format!(
            "rows are over their limits, and a table with such a row is not renewed:\n{}",
            over.join("\n")
        ))),
    }
}

/// Measures a suite: the table for programs, and that for people.
fn tables(system: &System, rows: &[Row], suite: &str) -> Result<(Value, String)> {
    let (table, text): (Value, fn(&Value) -> String) = match suite {
        tlb::SUITE => (tlb::table(system)?, tlb::for_people),
        colours::SUITE => (colours::table(system)?, colours::for_people),
        memory::SUITE => (memory::table(system)?, memory::for_people),
        _ => {
            let measured = measure(system, rows, suite)?;
            return Ok((table(suite, &measured), for_people(suite, &measured)));
        }
    };
    let text = text(&table);
    Ok((table, text))
}

/// Measures every suite and says how it differs from the committed table, and which row is over its limit; `None` if all is well.
pub fn difference(system: &System, suite: &str) -> Result<Option<String>> {
    let committed = committed(suite)?;
    let rows = rows()?;
    let (measured, _) = tables(system, &rows, suite)?;
    if committed[COMPILER] != measured[COMPILER] {
        let (old, new) = (&committed[COMPILER], &measured[COMPILER]);
        eprintln!(
            "tern: rows of the host in suite {suite} are not compared: counted with {old}, here is {new}"
        );
    }
    for row in rows_of(&committed).iter().filter(|row| !is_of_same_program(row, &measured)) {
        let (name, program) = (row["name"].as_str().unwrap_or("?"), &row[linux::MEASURED]);
        eprintln!("tern: {name} is not compared: it was counted with {program}");
    }
    let mut lines = limits::over(&rows, &measured, &committed);
    let rough_part =
        |name: &str| rows.iter().find(|row| row.suite == suite && row.name == name)?.rough_part();
    lines.extend(match suite {
        memory::SUITE => memory::compare(&committed, &measured),
        _ => compare(&committed, &measured, rough_part),
    });
    Ok((!lines.is_empty()).then(|| lines.join("\n")))
}

/// The committed table of a suite; one without rows if there is none yet.
pub fn committed(suite: &str) -> Result<Value> {
    let path = committed_path(suite);
    if !path.exists() {
        return Ok(json!({ "suite": suite, "rows": [] }));
    }
    let text = fs::read_to_string(&path).context(|| format!("read {}", path.display()))?;
    serde_json::from_str(&text).context(|| format!("read {}", path.display()))
}

/// Linux's instructions for the operations of rows that have such a figure beside them, by the rows' names.
pub fn figures_of_linux() -> Result<HashMap<String, u64>> {
    let peer = linux::peer();
    let figure = |row: &Row| Some((row.name.clone(), linux::figure(&peer, row)?));
    Ok(rows()?.iter().filter(|row| row.linux.is_some()).filter_map(figure).collect())
}

/// Names of the suites, in the order of the table.
pub fn suite_names() -> Result<Vec<String>> {
    Ok(suites(&rows()?))
}

fn committed_path(suite: &str) -> PathBuf {
    paths::root().join("bench/results").join(format!("{suite}.json"))
}

/// Measures the rows of a suite: one boot for each set of boot options, and what the host counts.
fn measure(system: &System, rows: &[Row], suite: &str) -> Result<Measurement> {
    let plugin = plugin()?;
    let mut boots: HashMap<&str, Medians> = HashMap::new();
    let mut measured = Vec::new();
    let rows = || rows.iter().filter(|row| row.suite == suite && !row.is_of_linux_alone());
    let counted = if rows().any(|row| row.region == HOST.0) { counted()? } else { None };
    for row in rows() {
        let program = match linux::measured_program(row, false) {
            Ok(program) => program,
            Err(why) => {
                eprintln!("tern: {} is left out: {}", row.name, why.message);
                continue;
            }
        };
        let (figures, passes) = if row.region == HOST.0 {
            let Some(counted) = &counted else { continue };
            (host_figures(row, counted)?, None)
        } else {
            if !boots.contains_key(row.boot.as_str()) {
                boots.insert(&row.boot, boot(system, &plugin.display().to_string(), suite, &row.boot)?);
            }
            let medians = &boots[row.boot.as_str()];
            (figures(row, medians)?, passes(row, medians)?)
        };
        measured.push(Measured { figures, passes, program, row: row.clone() });
    }
    Ok(Measurement { rows: measured, compiler: counted.map(|counted| counted.compiler) })
}

/// Figures that the host counts; nothing and a message if it cannot.
fn counted() -> Result<Option<Counted>> {
    match l4v4::count()? {
        Ok(counted) => Ok(Some(counted)),
        Err(why) => {
            eprintln!("tern: the rows {}* are left out: {}", HOST.1, why.trim_end());
            Ok(None)
        }
    }
}

/// All instructions are the user's.
fn host_figures(row: &Row, counted: &Counted) -> Result<Vec<u64>> {
    let figure = row.name.strip_prefix(HOST.1).and_then(|name| counted.figures.get(name));
    let figure =
        figure.ok_or_else(|| Error::new(format!("{}: bench/l4v4 has no figure for it", row.name)))?;
    Ok(FIGURES.iter().map(|(name, _)| if matches!(*name, "insns" | "user") { *figure } else { 0 }).collect())
}

/// Builds the plugin, a workspace and a licence of its own.
pub fn plugin() -> Result<PathBuf> {
    let directory = paths::target().join("ipcscope");
    let mut builder = Command::new("cargo");
    builder
        .args(["build", "--quiet", "--release", "--locked", "--package", "ipcscope", "--manifest-path"])
        .arg(paths::root().join("tools/ipcscope/Cargo.toml"))
        .arg("--target-dir")
        .arg(&directory)
        .env_remove("RUSTFLAGS");
    run_builder(&mut builder, "ipcscope")?;
    Ok(directory.join("release/libipcscope.so"))
}

/// Boots the benchmark once, with a plugin and its arguments.
pub fn boot(system: &System, plugin: &str, suite: &str, options: &str) -> Result<Medians> {
    let scratch = Scratch::create("bench")?;
    let report = scratch.0.join("report.csv").display().to_string();
    let wanted = Wanted::read(options)?;
    let system = &wanted.system(system, &scratch.0)?;
    let machine = match suite {
        linux::SUITE => linux::machine(system, wanted.program.as_deref())?.with(&wanted.options),
        _ => Machine::new(system).with(&format!("init=bench args={suite} {}", wanted.options)),
    };
    let mut machine = machine.counting();
    if wanted.program.is_some() {
        machine = machine.waiting();
    }
    machine.memory_mib = memory_mib(&wanted.options);
    wanted.plug_into(&mut machine)?;
    let plugin = format!("{plugin},csv={report},out=/dev/null,warmup={WARM_UP}");
    machine.extra.extend(["-plugin".into(), plugin]);
    let mut guest = Guest::start(&machine)?;
    guest.limit(Some(LIMIT));
    let end = guest.finish();
    if end != End::Orderly(0) {
        eprint!("{}", guest.text());
        return Err(Error::machine(match end.code() {
            Ok(code) => format!("the benchmark program ended with status {code}"),
            Err(error) => error.message,
        }));
    }
    let csv = fs::read_to_string(&report).context(|| format!("read {report}"))?;
    Ok(medians(&csv))
}

/// The kernel takes at most half of a machine for itself: one for a row that asks for much has twice that more.
fn memory_mib(options: &str) -> u32 {
    let words = options.split_whitespace();
    let wanted = words.filter_map(|word| word.strip_prefix("kmem=")?.strip_suffix('M')?.parse::<u32>().ok());
    MEMORY_MIB + 2 * wanted.max().unwrap_or(0)
}

/// Reads ipcscope's report: label, region, name, iterations, metric, smallest, median, …
fn medians(csv: &str) -> Medians {
    let mut medians = HashMap::new();
    for line in csv.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        if let [_, region, _, iterations, metric, _, median, _, largest, ..] = fields[..]
            && let (Ok(median), Ok(largest)) = (median.parse::<f64>(), largest.parse::<f64>())
            && let Ok(iterations) = iterations.parse()
        {
            for (region, value) in [(region.to_string(), median), (format!("{region}^"), largest)] {
                medians.insert((region.clone(), metric.to_string()), value as u64);
                medians.insert((region, "iterations".to_string()), iterations);
            }
        }
    }
    medians
}

fn figures(row: &Row, medians: &Medians) -> Result<Vec<u64>> {
    let of_region = |region: &str, name: &str| medians.get(&(region.to_string(), name.to_string())).copied();
    let (region, parts) = row.region.split_once('/').unwrap_or((&row.region, "1"));
    let parts: u64 = parts
        .parse()
        .ok()
        .filter(|&parts| parts > 0)
        .ok_or_else(|| Error::new(format!("{}: {parts} is no number of parts", row.name)))?;
    let metric = |name: &str| match region.split_once('-') {
        Some((whole, _)) if name == "iterations" => of_region(whole, name),
        Some((whole, part)) => {
            Some(of_region(whole, name)?.saturating_sub(of_region(part, name)?).div_ceil(parts))
        }
        None => of_region(region, name),
    };
    let iterations = metric("iterations").unwrap_or(0);
    let wanted = row.iterations_min();
    if iterations < wanted {
        return Err(Error::new(format!(
            "{}: {iterations} warm iterations were measured, {wanted} are needed",
            row.name
        )));
    }
    let sum = |(_, metrics): &(&str, &[&str])| {
        metrics.iter().map(|name| metric(name)).sum::<Option<u64>>().ok_or_else(|| {
            Error::new(format!("{}: ipcscope has no figure for {}", row.name, metrics.join(" + ")))
        })
    };
    let figures = FIGURES.iter().map(sum).collect::<Result<Vec<u64>>>()?;
    let Some(partner) = row.partner else { return Ok(figures) };
    let user = figures[1].checked_sub(partner).ok_or_else(|| {
        Error::new(format!("{}: {} user instructions are fewer than the partner's", row.name, figures[1]))
    })?;
    Ok(FIGURES.iter().map(|(name, _)| if matches!(*name, "insns" | "user") { user } else { 0 }).collect())
}

/// How often one operation went over its bytes, from what the copy instructions repeated.
fn passes(row: &Row, medians: &Medians) -> Result<Option<u64>> {
    let Some(bytes) = row.bytes else { return Ok(None) };
    let repetitions = medians.get(&(row.region.clone(), "rep_iters".into()));
    let copied =
        COPY_UNIT * repetitions.ok_or_else(|| Error::new(format!("{}: no repetitions", row.name)))?;
    Ok(Some((copied + bytes / 2) / bytes))
}

/// A figure of a region that was measured often enough.
pub fn metric(medians: &Medians, region: &str, name: &str) -> Result<u64> {
    let of = |name: &str| medians.get(&(region.to_string(), name.to_string())).copied();
    let iterations = of("iterations").unwrap_or(0);
    of(name).filter(|_| iterations >= ITERATIONS_MIN).ok_or_else(|| {
        Error::new(format!(
            "region {region}: {iterations} warm iterations, {ITERATIONS_MIN} are needed for {name}"
        ))
    })
}

/// The rows of a table.
pub fn rows_of(table: &Value) -> &[Value] {
    table["rows"].as_array().map_or(&[], Vec::as_slice)
}

/// The table for programs.
fn table(suite: &str, measured: &Measurement) -> Value {
    let rows = measured.rows.iter().map(|measured| {
        let mut object = Map::new();
        object.insert("name".into(), measured.row.name.clone().into());
        for ((name, _), value) in FIGURES.iter().zip(&measured.figures) {
            object.insert((*name).into(), (*value).into());
        }
        if let (Some(bytes), Some(passes)) = (measured.row.bytes, measured.passes) {
            object.insert("bytes".into(), bytes.into());
            object.insert("passes".into(), passes.into());
        }
        if let Some(program) = &measured.program {
            object.insert(linux::MEASURED.into(), program.clone().into());
        }
        Value::Object(object)
    });
    let mut table = json!({ "suite": suite });
    if let Some(compiler) = &measured.compiler {
        table[COMPILER] = compiler.clone().into();
    }
    table["rows"] = rows.collect::<Vec<Value>>().into();
    table
}

/// The table with a row on each line, so that a difference in git is a row.
fn for_git(table: &Value) -> String {
    let lines: Vec<String> = rows_of(table).iter().map(Value::to_string).collect();
    let compiler = match &table[COMPILER] {
        Value::Null => String::new(),
        compiler => format!("\"{COMPILER}\":{compiler},"),
    };
    format!("{{\"suite\":{},{compiler}\"rows\":[\n{}\n]}}\n", table["suite"], lines.join(",\n"))
}

fn for_people(suite: &str, measurement: &Measurement) -> String {
    let measured = &measurement.rows;
    let width = measured.iter().map(|measured| measured.row.name.len()).max().unwrap_or(0).max(suite.len());
    let peer = linux::peer();
    let mut out = format!("{suite:<width$}");
    for (name, _) in FIGURES {
        out += &format!(" {name:>7}");
    }
    out += &format!(" {:>7}\n", "limit");
    for Measured { row, figures, passes, .. } in measured {
        out += &format!("{:<width$}", row.name);
        for value in figures {
            out += &format!(" {value:>7}");
        }
        out += &match row.limit {
            Some(limit) if figures[0] > limit => format!(" {limit:>7}  over"),
            Some(limit) => format!(" {limit:>7}"),
            None => format!(" {:>7}", "-"),
        };
        if let (Some(bytes), Some(passes)) = (row.bytes, passes) {
            let times = if *passes == 1 { "once".into() } else { format!("{passes} times") };
            out += &format!("  {bytes} bytes, copied {times}");
        }
        if let Some(insns) = linux::figure(&peer, row) {
            out += &format!("  Linux {insns:>6}, so {:>3} %", (figures[0] * 100).div_ceil(insns));
        }
        out.push('\n');
    }
    if let Some(compiler) = &measurement.compiler {
        out += &format!("{}* are counted on this host, compiled with {compiler}.\n", HOST.1);
    }
    out += "Counted, not timed: medians of warm iterations; lines and pages are the kernel's, by virtual address.\n";
    out
}

#[cfg(test)]
mod tests {
    use super::rows::read_row;
    use super::*;

    #[test]
    fn the_partner_is_taken_off() {
        let row = read_row("idl\tx\t0\t-\t-\t3\tnote").unwrap();
        let of = |user: u64| {
            let names = FIGURES.iter().flat_map(|(_, metrics)| metrics.iter());
            let mut all: HashMap<_, _> = names.map(|n| (("0".to_string(), n.to_string()), 50)).collect();
            all.insert(("0".into(), "insns_raw_user".into()), user);
            all.insert(("0".into(), "iterations".into()), 200);
            all
        };
        let found = figures(&row, &of(20)).unwrap();
        assert_eq!((found[0], found[1], found[2]), (17, 17, 0));
        assert!(figures(&row, &of(2)).is_err());
    }

    #[test]
    fn figures_come_from_medians() {
        let csv = "label,region,name,iterations,metric,min,median,mean,max\nguest,3,r3,200,wrmsr,1,2,2.5,4\n";
        let medians = medians(csv);
        assert_eq!(medians[&("3".into(), "wrmsr".into())], 2);
        assert_eq!(medians[&("3".into(), "iterations".into())], 200);
    }
}

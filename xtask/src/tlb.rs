//! The suite `tlb` of the verb `bench`: figure 2 of the 1995 paper, counted.
//!
//! An application calls a server and then looks at all its pages again. How many walks through page tables that takes, more than
//! without the call, depends on what a load of CR3 drops: ipcscope's TLB model counts them, once for each processor of
//! `bench/tlb/` and for each answer to that question. Neither emulator has a TLB of its own that could be asked.

use crate::bench::{self, Medians};
use crate::build::System;
use crate::{Context, Result, paths};
use serde_json::{Value, json};
use std::fs;

/// The suite's name.
pub const SUITE: &str = "tlb";

/// Files of `bench/tlb/`, oldest first.
const PROCESSORS: [&str; 4] = ["pentium", "skylake", "zen-2", "golden-cove"];

/// Of them, those that the book has a figure of.
const DRAWN: [&str; 2] = ["pentium", "skylake"];

/// Pages that the application looks at, in the order of the regions.
const PAGES: [u64; 7] = [2, 4, 8, 16, 32, 48, 64];

/// First region of the loops with the call, and of those without.
const REGIONS: [usize; 2] = [64, 80];

/// Entries that a load of CR3 drops: name in the table, the word of ipcscope's model, and what to call it.
const SWITCHES: [(&str, &str, &str); 3] =
    [("all", "all", "everything"), ("users", "user", "users' pages"), ("tagged", "none", "nothing (tags)")];

/// Counts all rows.
pub fn table(system: &System) -> Result<Value> {
    let plugin = bench::plugin()?;
    let mut rows = Vec::new();
    for processor in PROCESSORS {
        let mut counted = Vec::new();
        for (_, drops, _) in SWITCHES {
            let model = paths::out()?.join(format!("tlb-{processor}-{drops}-{}.ini", std::process::id()));
            let given = paths::root().join(format!("bench/tlb/{processor}.ini"));
            let given = fs::read_to_string(&given).context(|| format!("read {}", given.display()))?;
            paths::write(&model, format!("{given}\n[tlb]\ncr3_flush = {drops}\n").as_bytes())?;
            let plugin = format!("{},model={}", plugin.display(), model.display());
            let medians = bench::boot(system, &plugin, SUITE, "");
            let _ = fs::remove_file(&model);
            counted.push(walks(&medians?)?);
        }
        for (i, pages) in PAGES.iter().enumerate() {
            let mut row = json!({ "name": format!("tlb.{processor}.{pages}") });
            for ((name, _, _), walks) in SWITCHES.iter().zip(&counted) {
                row[*name] = walks[i].into();
            }
            rows.push(row);
        }
    }
    Ok(json!({ "suite": SUITE, "rows": rows }))
}

/// Walks because of the call, for each number of pages.
fn walks(medians: &Medians) -> Result<Vec<u64>> {
    let of = |region: usize| bench::metric(medians, &region.to_string(), "warm_walks");
    let because_of_the_call = |i| Ok(of(REGIONS[0] + i)?.saturating_sub(of(REGIONS[1] + i)?));
    (0..PAGES.len()).map(because_of_the_call).collect()
}

/// The table for people.
pub fn for_people(table: &Value) -> String {
    let mut out = format!("{:<22}", "walks for each call");
    for (_, _, called) in SWITCHES {
        out += &format!(" {called:>15}");
    }
    out.push('\n');
    for row in bench::rows_of(table) {
        out += &format!("{:<22}", row["name"].as_str().unwrap_or("?"));
        for (name, _, _) in SWITCHES {
            out += &format!(" {:>15}", walks_in(row, name));
        }
        out.push('\n');
    }
    out += "Columns: what a load of CR3 drops. Rows: pages that the application looks at after each call.\n";
    out
}

/// Renews the figures of the book.
pub fn draw(table: &Value) -> Result<()> {
    for processor in DRAWN {
        let path = paths::root().join(format!("docs/guide/address-space-switch-{processor}.svg"));
        paths::write(&path, picture(table, processor).as_bytes())?;
    }
    Ok(())
}

/// Names of the figures of a row.
pub fn figures() -> impl Iterator<Item = &'static str> {
    SWITCHES.iter().map(|(name, _, _)| *name)
}

/// Size of a picture, and in it the corners of the plot, in pixels: lower left, upper right.
const SIZE: (u32, u32) = (680, 390);
const CORNERS: [(f64, f64); 2] = [(60.0, 340.0), (520.0, 40.0)];

/// Lines across the plot.
const STEPS: u32 = 5;

/// The figure of the paper for one processor: pages to the right, walks upwards, a curve for each kind of switch.
fn picture(table: &Value, processor: &str) -> String {
    let row = |pages: &u64| {
        let name = format!("tlb.{processor}.{pages}");
        bench::rows_of(table).iter().find(|row| row["name"] == name)
    };
    let rows: Vec<(u64, &Value)> = PAGES.iter().filter_map(|pages| Some((*pages, row(pages)?))).collect();
    let most = figures().flat_map(|name| rows.iter().map(move |(_, row)| walks_in(row, name))).max();
    let top = most.unwrap_or(0).max(1).next_multiple_of(10 * u64::from(STEPS));
    let right = PAGES[PAGES.len() - 1];
    let at = |pages: u64, walks: u64| {
        let [(left, bottom), (end, upper)] = CORNERS;
        let (x, y) = (pages as f64 / right as f64, walks as f64 / top as f64);
        (left + x * (end - left), bottom + y * (upper - bottom))
    };
    let (width, height) = SIZE;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
         font-size=\"13\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    for step in 0..=u64::from(STEPS) {
        let walks = top / u64::from(STEPS) * step;
        let colour = if step == 0 { "black" } else { "#dddddd" };
        svg += &curve(&[at(0, walks), at(right, walks)], colour);
        let (x, y) = at(0, walks);
        svg += &label((x - 6.0, y + 4.0), "end", "black", &walks.to_string());
    }
    svg += &curve(&[at(0, 0), at(0, top)], "black");
    for pages in PAGES {
        let (x, y) = at(pages, 0);
        svg += &label((x, y + 18.0), "middle", "black", &pages.to_string());
    }
    let (x, y) = at(right / 2, 0);
    svg += &label((x, y + 40.0), "middle", "black", "pages that the application looks at after each call");
    let (x, y) = at(0, top);
    svg += &label((x, y - 16.0), "start", "black", &format!("page walks because of a call ({processor})"));
    for ((name, _, called), colour) in SWITCHES.iter().zip(["#b30000", "#b36b00", "#0060b0"]) {
        let points: Vec<_> = rows.iter().map(|(pages, row)| at(*pages, walks_in(row, name))).collect();
        svg += &curve(&points, colour);
        if let Some((x, y)) = points.last() {
            svg += &label((x + 8.0, y + 4.0), "start", colour, &format!("drops {called}"));
        }
    }
    svg + "</svg>\n"
}

fn walks_in(row: &Value, name: &str) -> u64 {
    row[name].as_u64().unwrap_or(0)
}

fn curve(points: &[(f64, f64)], colour: &str) -> String {
    let points: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
    format!("<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\"/>\n", points.join(" "))
}

fn label((x, y): (f64, f64), anchor: &str, colour: &str, words: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{colour}\">{words}</text>\n")
}

//! The suite `colours` of the verb `bench`: what page colours save in a second-level cache (row C14), counted.
//!
//! A program reads all its pages, pass after pass. How many of its lines are not in the second-level cache depends on the frames of its pages: those of
//! their colours, any that come, or all of one colour. ipcscope's model of a cache, indexed by physical address, counts them, once for each processor of
//! `bench/cache/`. Neither emulator has a cache of its own that could be asked.

use crate::bench::{self, Medians};
use crate::build::System;
use crate::{Context, Result, paths};
use serde_json::{Value, json};
use std::fs;

/// The suite's name.
pub const SUITE: &str = "colours";

/// Beginning of the rows' names.
pub const PREFIX: &str = "colours.";

/// Files of `bench/cache/`, oldest first.
const PROCESSORS: [&str; 3] = ["pentium", "skylake", "zen-2"];

/// Pages that the program reads, in the order of the regions.
const PAGES: [usize; 5] = [32, 48, 64, 96, 128];

/// Lines of a page.
pub const LINES: u64 = 64;

/// Figures of a row, which are layouts of the pages, in the order of the regions. Each has so many, whose mean is the figure.
const LAYOUTS: [(&str, usize); 3] = [("coloured", 1), ("used", 4), ("worst", 1)];

/// Counts all rows.
pub fn table(system: &System) -> Result<Value> {
    let plugin = bench::plugin()?;
    let mut rows = Vec::new();
    for processor in PROCESSORS {
        let model = paths::root().join(format!("bench/cache/{processor}.ini"));
        fs::metadata(&model).context(|| format!("read {}", model.display()))?;
        let plugin = format!("{},model={}", plugin.display(), model.display());
        let medians = bench::boot(system, &plugin, SUITE, "")?;
        for (size, pages) in PAGES.iter().enumerate() {
            let mut row = json!({ "name": format!("{PREFIX}{processor}.{pages}") });
            let mut first = size;
            for (layout, count) in LAYOUTS {
                row[layout] = mean(&medians, first, count)?.into();
                first += count * PAGES.len();
            }
            rows.push(row);
        }
    }
    Ok(json!({ "suite": SUITE, "rows": rows }))
}

/// Misses of a pass, as the mean of so many regions.
fn mean(medians: &Medians, first: usize, count: usize) -> Result<u64> {
    let regions = (0..count).map(|number| first + number * PAGES.len());
    let misses = regions.map(|region| bench::metric(medians, &region.to_string(), "warm_l2_miss"));
    let sum: u64 = misses.sum::<Result<u64>>()?;
    Ok((sum + count as u64 / 2) / count as u64)
}

/// The table for people.
pub fn for_people(table: &Value) -> String {
    let mut out = format!("{:<22}", "misses for each pass");
    for name in figures() {
        out += &format!(" {name:>9}");
    }
    out.push('\n');
    for row in bench::rows_of(table) {
        out += &format!("{:<22}", row["name"].as_str().unwrap_or("?"));
        for name in figures() {
            out += &format!(" {:>9}", figure(row, name));
        }
        out.push('\n');
    }
    out += "Rows: processor, and pages of 64 lines that a program reads again and again. Columns: their frames have the pages' colours; \
            they come as they were given back, in an order of no order; all have one colour.\n";
    out
}

/// Names of the figures of a row.
pub fn figures() -> impl Iterator<Item = &'static str> {
    LAYOUTS.iter().map(|(name, _)| *name)
}

/// A figure of a row.
pub fn figure(row: &Value, name: &str) -> u64 {
    row[name].as_u64().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// Ways and colours of the processors' caches.
    const CACHES: [(u64, u64); 3] = [(1, 64), (4, 16), (8, 16)];

    #[test]
    fn figures_are_those_of_their_regions() {
        let regions = PAGES.len() * LAYOUTS.iter().map(|(_, count)| count).sum::<usize>();
        let mut medians = HashMap::new();
        for region in 0..regions {
            medians.insert((region.to_string(), "warm_l2_miss".to_string()), 10 * region as u64);
            medians.insert((region.to_string(), "iterations".to_string()), 101);
        }
        assert_eq!((regions, mean(&medians, 7, 1).unwrap()), (30, 70));
        assert_eq!(mean(&medians, 11, 4).unwrap(), (110 + 160 + 210 + 260) / 4);
        medians.insert(("26".into(), "iterations".into()), 99);
        assert!(mean(&medians, 11, 4).is_err());
    }

    /// The model's rules, by which the committed figures can be worked out: a colour with more pages than ways keeps none of its lines, all others keep all. So coloured pages miss
    /// nothing up to the cache's size, those of one colour miss all the time, and of others as many miss as chance puts among too many.
    #[test]
    fn committed_figures_are_those_of_a_cache() {
        let table = bench::committed(SUITE).unwrap();
        let rows = bench::rows_of(&table);
        assert_eq!(rows.len(), PROCESSORS.len() * PAGES.len());
        let all = CACHES.iter().flat_map(|cache| PAGES.map(|pages| (cache, pages as u64)));
        for (row, (&(ways, colours), pages)) in rows.iter().zip(all) {
            let crowded = (0..colours).map(|colour| (pages + colours - 1 - colour) / colours);
            let crowded: u64 = crowded.filter(|pages| *pages > ways).sum();
            assert_eq!(figure(row, "coloured"), crowded * LINES, "{row}");
            assert_eq!(figure(row, "worst"), pages * LINES, "{row}");
            let expected = pages as f64 * LINES as f64 * chance(pages - 1, colours, ways);
            let used = figure(row, "used") as f64;
            assert!((used - expected).abs() < expected / 4.0 + 64.0, "{row}: expected about {expected:.0}");
        }
    }

    /// Chance that at least so many of other pages have a page's colour.
    fn chance(others: u64, colours: u64, at_least: u64) -> f64 {
        let (hit, other) = (1.0 / colours as f64, 1.0 - 1.0 / colours as f64);
        let ways =
            |few: u64| (0..few).fold(1.0, |product, at| product * (others - at) as f64 / (at + 1) as f64);
        let exactly = |few: u64| ways(few) * hit.powi(few as i32) * other.powi((others - few) as i32);
        1.0 - (0..at_least).map(exactly).sum::<f64>()
    }
}

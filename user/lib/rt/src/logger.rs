//! The back end of the `log` crate: one line per record, on the console, with the program's name in front.
//!
//! Levels that are printed are chosen from outside, by the variable [`LOG`](VARIABLE) of the [environment](crate::environment). It is
//! read when the program logs for the first time, so a program that does not log pays nothing.

use core::sync::atomic::{AtomicBool, Ordering};
use log::{LevelFilter, Log, Metadata, Record};

/// The variable with the level: `off`, `error`, `warn`, `info`, `debug` or `trace`, and behind it, after `,` or `;`, others
/// for programs or modules by name: `warn,console=debug,shell::editor=trace`. The last that fits counts.
pub const VARIABLE: &str = "LOG";

/// Level without a choice from outside.
const USUAL: LevelFilter = LevelFilter::Info;

struct Logger;

static LOGGER: Logger = Logger;

/// Whether the level is known.
static IS_SET: AtomicBool = AtomicBool::new(false);

/// Makes it the logger of the program.
pub(crate) fn install() {
    // It fails if there is one already, which is then the program's own choice. Until something is logged all levels pass.
    let _ = log::set_logger(&LOGGER).map(|()| log::set_max_level(LevelFilter::Trace));
}

impl Log for Logger {
    fn enabled(&self, metadata: &Metadata) -> bool {
        let text = crate::environment::variable(VARIABLE).unwrap_or_default();
        if !IS_SET.swap(true, Ordering::Relaxed) {
            // From now on what nobody would print does not get here.
            log::set_max_level(highest(&text));
        }
        metadata.level() <= level(&text, &[crate::start::name(), metadata.target()])
    }

    fn log(&self, record: &Record) {
        if self.enabled(record.metadata()) {
            crate::eprintln!("{}: {}: {}", crate::start::name(), record.level().as_str(), record.args());
        }
    }

    fn flush(&self) {}
}

/// The parts of the variable: a name, or nothing, and a level. What is no level is passed over.
fn parts(text: &str) -> impl Iterator<Item = (Option<&str>, LevelFilter)> {
    text.split([',', ';']).filter_map(|part| {
        let (name, level) = match part.split_once('=') {
            Some((name, level)) => (Some(name.trim()), level),
            None => (None, part),
        };
        Some((name, level.trim().parse().ok()?))
    })
}

/// Up to which level somebody with these names logs. A name stands for all modules below it.
fn level(text: &str, names: &[&str]) -> LevelFilter {
    let is_meant = |meant: &str| {
        names.iter().any(|name| {
            name.strip_prefix(meant).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
        })
    };
    let fitting = parts(text).filter(|(name, _)| name.is_none_or(is_meant));
    fitting.last().map_or(USUAL, |(_, level)| level)
}

/// Up to which level anybody logs.
fn highest(text: &str) -> LevelFilter {
    let general = level(text, &[]);
    parts(text).map(|(_, level)| level).fold(general, Ord::max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_read() {
        let shell = &["shell", "shell::editor"];
        for (text, expected) in [
            ("", LevelFilter::Info),
            ("debug", LevelFilter::Debug),
            ("OFF", LevelFilter::Off),
            ("nonsense", LevelFilter::Info),
            ("warn,console=debug", LevelFilter::Warn),
            ("warn;shell=debug", LevelFilter::Debug),
            ("warn, shell::editor = trace", LevelFilter::Trace),
            ("warn,shell::edit=trace", LevelFilter::Warn),
            ("shell=trace,error", LevelFilter::Error),
        ] {
            assert_eq!(level(text, shell), expected, "{text}");
        }
        assert_eq!(highest("warn,console=debug"), LevelFilter::Debug);
        assert_eq!(highest("console=off"), LevelFilter::Info);
        assert_eq!(highest(""), LevelFilter::Info);
    }
}

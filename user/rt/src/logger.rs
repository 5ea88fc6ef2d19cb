//! The back end of the `log` crate: one line per record, on the console, with the program's name in front.

use log::{LevelFilter, Log, Metadata, Record};

struct Logger;

static LOGGER: Logger = Logger;

/// Makes it the logger of the program.
pub(crate) fn install() {
    // It fails if there is one already, which is then the program's own choice.
    let _ = log::set_logger(&LOGGER).map(|()| log::set_max_level(LevelFilter::Info));
}

impl Log for Logger {
    fn enabled(&self, _: &Metadata) -> bool {
        true
    }

    fn log(&self, record: &Record) {
        crate::println!("{}: {}", crate::start::name(), record.args());
    }

    fn flush(&self) {}
}

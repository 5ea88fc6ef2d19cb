//! The command line: verbs, options, and errors of one line.

use crate::machine::{DiskAs, Forward, Kind, MEMORY_MIB};
use crate::{Error, Result};
use crate::{
    bench, build, check, doctor, image, linux, mutate, nightly, peripherals, run, selftest, system, test,
};
use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Processors that a machine can have.
const CPUS_MAX: i64 = 64;

const AFTER_HELP: &str = "\
Before each verb, ./tern checks the toolchain and the Debian packages that the verb needs. It installs what is
missing when it runs as root or with --yes, and otherwise prints the command; --offline forbids downloads.";

/// Tern, a microkernel for x86-64: one command for everything.
#[derive(Debug, Parser)]
#[command(bin_name = "./tern", after_help = AFTER_HELP, disable_version_flag = true, max_term_width = 110)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

/// Verb of the command line.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Boot the system and sit at its shell
    Run(RunOptions),
    /// Run all tests, on the host and in emulators
    Test(TestOptions),
    /// Test the stubs of interface files in the booted system, between two tasks
    Selftest(SelftestOptions),
    /// Count what operations of the kernel cost
    Bench(BenchOptions),
    /// Check format, lints and the health figures of the source
    Check,
    /// Make a disc image that boots by BIOS and UEFI
    Image(ImageOptions),
    /// Build the kernel and the boot archive
    Build,
    /// Check a system description, or show what it says
    System(SystemOptions),
    /// Put packages of Debian onto a disk, for programs of Linux
    Linux(LinuxOptions),
    /// Say what is installed and what is missing
    Doctor,
    /// Take parts of the kernel out, one by one, and see whether a test notices
    Mutate(MutateOptions),
    /// Run the kernel's host tests under Miri
    Miri(PassedOn),
    /// Run a fuzz target, or list them
    Fuzz(PassedOn),
}

/// Options of `run`.
#[derive(Args, Debug)]
pub struct RunOptions {
    /// Feed this file (or standard input: -) to the shell and print only its answers
    #[arg(long, value_name = "FILE")]
    pub script: Option<String>,
    /// The system: a file of the folder `systems`, without its ending
    #[arg(long, value_name = "NAME", default_value = build::DEFAULT)]
    pub system: String,
    /// Number of processors
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=CPUS_MAX))]
    pub smp: u32,
    /// Kind of machine
    #[arg(long, value_enum, default_value_t = Kind::Pc)]
    pub machine: Kind,
    /// Memory in MiB
    #[arg(long, value_name = "MIB", default_value_t = MEMORY_MIB, value_parser = clap::value_parser!(u32).range(1..))]
    pub memory: u32,
    /// Wait for a debugger on the loopback interface
    #[arg(long)]
    pub gdb: bool,
    /// Use the host's virtualisation instead of emulation
    #[arg(long)]
    pub kvm: bool,
    /// Plug in a disk: this file, byte for byte
    #[arg(long, value_name = "FILE")]
    pub disk: Option<PathBuf>,
    /// Device that the disk is behind
    #[arg(long, value_enum, default_value_t = DiskAs::Virtio, requires = "disk")]
    pub disk_as: DiskAs,
    /// Plug in a network card that reaches nothing but this host, whose port HOST of 127.0.0.1 leads to its port GUEST
    #[arg(long, value_name = "HOST:GUEST", num_args = 0..=1, default_missing_value = "8080:80")]
    pub net: Option<Forward>,
    /// Plug in a source of random bytes
    #[arg(long)]
    pub entropy: bool,
    /// Plug in a virtio console, whose other side is this Unix socket of the host
    #[arg(long, value_name = "SOCKET")]
    pub console: Option<PathBuf>,
    /// Plug in nothing that was not asked for. Without it, a machine at a terminal has the disk `disk.img` of the current directory, and a
    /// network card as with `--net`
    #[arg(long)]
    pub bare: bool,
    /// Run a program of Linux instead of the shell, with all words that follow, from the disk that `./tern linux install` has made; its exit
    /// status is that of the command
    #[arg(long, value_name = "PROGRAM", num_args = 1.., allow_hyphen_values = true, conflicts_with = "script")]
    pub linux: Vec<String>,
    /// Tell of each call of the program of Linux, as strace does: on standard error, or in this file
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "", requires = "linux")]
    pub strace: Option<String>,
    /// Count the calls of the program of Linux, and show a table of them at the end
    #[arg(long, requires = "linux")]
    pub profile: bool,
    /// More boot options, such as "fastpath=off seed=7"
    #[arg(long, value_name = "OPTIONS")]
    pub boot: Vec<String>,
}

/// Options of `test`.
#[derive(Args, Debug)]
pub struct TestOptions {
    /// Run the tests with the large counts
    #[arg(long)]
    pub full: bool,
    /// Run only tests whose name contains this
    pub filter: Option<String>,
}

/// Options of `mutate`.
#[derive(Args, Debug)]
pub struct MutateOptions {
    /// Take out the security checks of tests/checks.toml, against the tests on the host and in the guest
    #[arg(long)]
    pub checks: bool,
    /// How many at a time [default: one for each processor with --checks, otherwise 1]
    #[arg(long, short, value_name = "N", value_parser = jobs)]
    pub jobs: Option<usize>,
    /// Whether the tests are run with nothing taken out first
    #[arg(long, value_name = "RUN", default_value = "run", value_parser = baseline, action = clap::ArgAction::Set)]
    pub baseline: bool,
    /// Only say what would be changed, without --checks
    #[arg(long, conflicts_with = "checks")]
    pub list: bool,
    /// Renew the rows of the committed table, with --checks
    #[arg(long, requires = "checks")]
    pub bless: bool,
    /// Take out only those that have no row in the committed table, such as after a run that was interrupted
    #[arg(long, requires = "checks")]
    pub missing: bool,
    /// A file, a directory or a part of a function's name; with --checks a part of a check's name or file
    #[arg(value_name = "WHAT")]
    pub what: Option<String>,
}

fn jobs(text: &str) -> std::result::Result<usize, String> {
    text.parse().ok().filter(|&jobs| jobs > 0).ok_or("it is a number from 1 on".into())
}

fn baseline(text: &str) -> std::result::Result<bool, String> {
    match text {
        "run" => Ok(true),
        "skip" => Ok(false),
        _ => Err("it is run or skip".into()),
    }
}

/// Options of `selftest`.
#[derive(Args, Debug)]
pub struct SelftestOptions {
    /// Add a directory to search for included and imported files
    #[arg(short = 'I', value_name = "DIR", value_parser = selftest::absolute)]
    pub include: Vec<PathBuf>,
    /// Define a macro
    #[arg(short = 'D', value_name = "NAME[=VALUE]")]
    pub define: Vec<String>,
    /// Carrier of the messages: tern-ipc, tern-door or tern-door-plain
    #[arg(long, value_name = "NAME", default_value = "tern-ipc")]
    pub kernel: String,
    /// How often each method is called
    #[arg(long, value_name = "NUMBER", default_value_t = 100)]
    pub rounds: u64,
    /// Where the random values begin
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub seed: u64,
    /// The interface files
    #[arg(required = true, value_name = "FILE", value_parser = selftest::absolute)]
    pub files: Vec<PathBuf>,
}

/// Options of `bench`.
#[derive(Args, Debug)]
pub struct BenchOptions {
    /// The suite; without it all that are counted, which is all but peers
    pub suite: Option<String>,
    /// Print one JSON object and nothing else
    #[arg(long)]
    pub json: bool,
    /// Renew the committed table
    #[arg(long)]
    pub bless: bool,
    /// Measure Linux too, with the kernel that Debian has now, and keep its figures; suite linux only
    #[arg(long)]
    pub peer: bool,
}

/// Options of `system`.
#[derive(Args, Debug)]
pub struct SystemOptions {
    /// The verb behind `system`.
    #[command(subcommand)]
    pub verb: SystemVerb,
}

/// Verb of `system`.
#[derive(Debug, Subcommand)]
pub enum SystemVerb {
    /// Look for mistakes, and tell each with its line
    Check {
        /// A file of the folder `systems`, without its ending; without it all
        name: Option<String>,
    },
    /// Show who runs, with which rights, and who may ask for whom
    Show {
        /// A file of the folder `systems`, without its ending
        #[arg(default_value = build::DEFAULT)]
        name: String,
        /// Draw it into this file, too
        #[arg(long, value_name = "FILE")]
        svg: Option<PathBuf>,
    },
}

/// Options of `linux`.
#[derive(Args, Debug)]
pub struct LinuxOptions {
    /// The disk
    #[arg(long, value_name = "FILE", global = true, help = format!("The disk [default: {}]", peripherals::USUAL_DISK))]
    pub disk: Option<PathBuf>,
    /// Directory of the disk that is the root of Linux
    #[arg(long, value_name = "DIR", global = true, default_value = linux::ROOT)]
    pub root: String,
    /// The verb behind `linux`.
    #[command(subcommand)]
    pub verb: LinuxVerb,
}

/// Verb of `linux`.
#[derive(Debug, Subcommand)]
pub enum LinuxVerb {
    /// Install packages, and all that they need; a disk that is not there is made
    Install {
        /// Names of packages of Debian
        #[arg(required = true, value_name = "PACKAGE")]
        packages: Vec<String>,
    },
    /// Show the packages that are installed, with their versions
    List,
}

/// Options of `image`.
#[derive(Args, Debug)]
pub struct ImageOptions {
    /// Where to put the image
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Boot options of the image's system
    #[arg(long, value_name = "OPTIONS", default_value = "")]
    pub boot: String,
}

/// Arguments for another tool.
#[derive(Args, Debug)]
pub struct PassedOn {
    /// Passed on
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<String>,
}

impl Verb {
    /// Does it.
    pub fn perform(self) -> Result<u8> {
        match self {
            Verb::Run(options) => run::perform(options),
            Verb::Test(options) => test::perform(options),
            Verb::Selftest(options) => selftest::perform(options),
            Verb::Bench(options) => bench::perform(options),
            Verb::Check => check::perform(),
            Verb::Image(options) => image::perform(options),
            Verb::Build => build::perform(),
            Verb::System(options) => system::perform(options),
            Verb::Linux(options) => linux::perform(options),
            Verb::Doctor => doctor::perform(),
            Verb::Mutate(options) => mutate::perform(options),
            Verb::Miri(passed) => nightly::miri(&passed.arguments),
            Verb::Fuzz(passed) => nightly::fuzz(&passed.arguments),
        }
    }
}

/// Reads the command line. Help goes out at once.
pub fn parse() -> Result<Verb> {
    match Cli::try_parse() {
        Ok(cli) => Ok(cli.verb),
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp => {
                let _ = error.print();
                std::process::exit(0);
            }
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
                Err(Error::usage(
                    "which verb? run, test, selftest, bench, check, image, build, system, linux, doctor, mutate, miri, fuzz, help",
                ))
            }
            _ => Err(Error::usage(one_line(&error.to_string()))),
        },
    }
}

/// Makes one line of an error message, without the usage that follows it.
fn one_line(message: &str) -> String {
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let lines = message.lines().map(str::trim);
    let useful = lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let parts: Vec<&str> = useful.filter(|line| !line.is_empty()).collect();
    format!("{} (./tern help)", parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(arguments: &[&str]) -> String {
        let arguments = ["tern"].iter().chain(arguments);
        one_line(&Cli::try_parse_from(arguments).expect_err("a wrong command line").to_string())
    }

    #[test]
    fn errors_are_one_line() {
        for arguments in [
            &["fly"][..],
            &["run", "--smp", "0"],
            &["run", "--machine", "vax"],
            &["run", "--fast"],
            &["run", "--net", "80"],
            &["run", "--net", "8080:0"],
            &["run", "--net", "65536:80"],
            &["run", "--script", "-", "--linux", "ls"],
            &["run", "--linux"],
            &["linux", "install", "--fast", "bash"],
            &["linux", "remove"],
            &["bench", "ipc", "more"],
        ] {
            let line = complaint(arguments);
            assert!(!line.contains('\n') && !line.contains("Usage"), "{line}");
            assert!(arguments.iter().any(|argument| line.contains(argument)), "{line}");
        }
    }

    /// Words behind `--linux` are the program's, also those that look like options of this tool.
    #[test]
    fn words_behind_linux_are_the_programs() {
        let words = [
            "tern", "run", "--disk", "d", "--linux", "ls", "-l", "--disk", "--script", "--help", "-x=1",
            "--", "/",
        ];
        match Cli::try_parse_from(words).map(|cli| cli.verb) {
            Ok(Verb::Run(options)) => {
                assert_eq!(options.linux, ["ls", "-l", "--disk", "--script", "--help", "-x=1", "--", "/"]);
                assert_eq!(options.disk.as_deref(), Some(std::path::Path::new("d")));
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn calls_are_told_of_where_it_is_said() {
        for option in ["--strace", "--profile"] {
            assert!(complaint(&["run", option]).contains("--linux"), "{option}");
        }
        for (option, wanted) in [("--strace", ""), ("--strace=calls", "calls")] {
            let words = ["tern", "run", option, "--profile", "--linux", "ls", "--strace=no"];
            match Cli::try_parse_from(words).map(|cli| cli.verb) {
                Ok(Verb::Run(options)) => {
                    assert_eq!((options.strace.as_deref(), options.profile), (Some(wanted), true));
                    assert_eq!(options.linux, ["ls", "--strace=no"]);
                }
                other => panic!("{other:?}"),
            }
        }
    }

    /// The pages that `./tern help` shows without building anything. `TERN_BLESS=1` renews them.
    #[test]
    fn help_pages_are_what_the_command_line_says() {
        use clap::CommandFactory;
        let directory = crate::paths::root().join("xtask/help");
        let bless = std::env::var_os("TERN_BLESS").is_some_and(|value| value == "1");
        let help = |arguments: &[&str]| {
            let arguments = ["tern"].iter().chain(arguments);
            Cli::try_parse_from(arguments).expect_err("help is no verb to perform").to_string()
        };
        let verbs: Vec<String> =
            Cli::command().get_subcommands().map(|verb| verb.get_name().to_string()).collect();
        let mut pages = vec![("tern".to_string(), help(&["help"]))];
        pages.extend(verbs.iter().map(|verb| (verb.clone(), help(&["help", verb]))));
        for (name, page) in &pages {
            let file = directory.join(format!("{name}.txt"));
            if bless {
                std::fs::create_dir_all(&directory).and_then(|()| std::fs::write(&file, page)).unwrap();
            }
            let kept = std::fs::read_to_string(&file).unwrap_or_default();
            assert_eq!(&kept, page, "{} is old: TERN_BLESS=1 cargo test -p xtask help_pages", file.display());
        }
        for word in ["-h", "--help"] {
            assert_eq!(help(&[word]), help(&["help"]), "two pages of all verbs");
        }
        for verb in &verbs {
            assert_eq!(help(&[verb, "--help"]), help(&["help", verb]), "two pages for {verb}");
        }
        assert_eq!(std::fs::read_dir(&directory).unwrap().count(), pages.len(), "a page of no verb");
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Cli::command().debug_assert();
    }
}

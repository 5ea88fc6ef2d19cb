//! Databases of Linux on Tern, as Debian has them: what they have committed is there when power is lost, and they answer this machine through a forwarded port.
//!
//! In the booted system a script of `tests/linux` commits one transaction after the other, and writes down the number of each in a file when it has heard that it is safe. QEMU records all
//! writes to the disk, so there is the disk of any moment. Tern's file system brings its journal to its end, and the same database on this machine reads what is there then.

use crate::debian::bring;
use crate::files::{check_disk, root_disk};
use crate::power_cuts::{apply, cuts, recorded};
use crate::world::{LIMIT, Named, Reply, Scratch, Verdict, World, failed, run, run_within};
use libtest_mimic::{Failed, Trial};
use power::log;
use power::replay::files_by_tern;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use xtask::guest::{End, Guest};
use xtask::machine::DiskAs;
use xtask::{paths, peripherals};

/// The trials of this module.
pub fn trials(world: &'static World) -> Vec<Trial> {
    let trials: [Named; 4] = [
        ("sqlite_keeps_what_it_committed", |world| keeps(world, &SQLITE)),
        ("sqlite_with_a_log_keeps_what_it_committed", |world| keeps(world, &SQLITE_WAL)),
        ("redis_keeps_what_it_committed", |world| keeps(world, &REDIS)),
        ("redis_answers_this_machine", redis_answers_this_machine),
    ];
    Vec::from(trials.map(|(name, verdict)| world.trial("linux", format!("databases::{name}"), verdict)))
}

/// Size of the disk.
const DISK: &str = "40M";

/// Where databases have their files, and the script its numbers.
const PLACE: &str = "linux/data";

/// The file with the numbers of transactions that are safe.
const NUMBERS: &str = "numbers";

/// A database under test.
struct Database {
    /// Programs that it needs, and their names there.
    programs: &'static [(&'static str, &'static str)],
    /// The script of `tests/linux` that commits, and an argument of it.
    script: &'static str,
    argument: &'static str,
    /// Directories below [`PLACE`] in which it has files. The first is that directory itself.
    folders: &'static [&'static str],
    /// The number of the last transaction that is there, and an error if something is there of others, or if anything else is wrong.
    last: fn(&Path) -> Result<u64, Failed>,
    plain: Counts,
    full: Counts,
}

/// Counts of a campaign.
struct Counts {
    transactions: u64,
    /// Moments at which power is lost, at least.
    cuts: usize,
}

const SQLITE: Database = Database {
    programs: &[("/usr/bin/sqlite3", "sqlite3")],
    script: "sqlite.sh",
    argument: "delete",
    folders: &[""],
    last: last_of_sqlite,
    plain: Counts { transactions: 10, cuts: 40 },
    full: Counts { transactions: 150, cuts: 1000 },
};

const SQLITE_WAL: Database = Database { argument: "wal", ..SQLITE };

/// Debian's programs of redis are one, which looks at its name.
const REDIS: Database = Database {
    programs: &[("/usr/bin/redis-check-rdb", "redis-server"), ("/usr/bin/redis-cli", "redis-cli")],
    script: "redis.sh",
    argument: "",
    folders: &["", "appendonlydir"],
    last: last_of_redis,
    plain: Counts { transactions: 10, cuts: 20 },
    full: Counts { transactions: 100, cuts: 300 },
};

/// A root of Linux with a shell, a script and these programs.
pub fn make_root(scratch: &Scratch, programs: &[(&str, &str)], script: Option<&str>) -> Result<(), Failed> {
    let root = scratch.0.join("disk/linux");
    let mut known = BTreeSet::new();
    for folder in ["bin", "tmp", "data", "lists", "usr/bin"] {
        fs::create_dir_all(root.join(folder))?;
    }
    for (program, name) in programs.iter().chain(&[("/usr/bin/dash", "dash"), ("/usr/bin/sleep", "sleep")]) {
        bring(&root, Path::new(program), &mut known)?;
        let named = root.join("usr/bin").join(name);
        if !named.exists() {
            fs::rename(root.join(&program[1..]), named)?;
        }
    }
    symlink("/usr/bin/dash", root.join("bin/sh"))?;
    if let Some(script) = script {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../linux");
        fs::copy(scripts.join(script), root.join("lists").join(script))?;
    }
    Ok(())
}

/// Runs the script of a database. The record of what is written goes to `log`.
fn work(world: &World, database: &Database, transactions: u64, disk: &Path, log: &Path) -> Verdict {
    paths::write(log, &[])?;
    let mut machine = world.machine().with("init=shell args=script");
    recorded(disk, log, DiskAs::Virtio, &mut machine);
    let mut guest = Guest::start(&machine)?;
    guest.limit(Some(LIMIT * (1 + transactions as u32 / 10)));
    guest.expect_begin();
    let Database { script, argument, .. } = database;
    // Keys are nobody's there: the line behind it is for the shell, whoever reads first.
    let line = format!(
        "linux --no-keys --root /disk/linux dash /lists/{script} {transactions} {argument}\nexit 0\n"
    );
    guest.send(line.as_bytes());
    let end = guest.finish();
    let said = guest.text();
    if end == End::Orderly(0) && said.contains("all are safe") {
        return Ok(());
    }
    Err(failed("the script failed", &end, &said))
}

/// Files of a database, as they are on a disk whose power was lost.
type Files = BTreeMap<String, Vec<u8>>;

fn files_of(database: &Database, image: &[u8]) -> Result<Files, Failed> {
    let mut all = Files::new();
    for folder in database.folders {
        let below = |name: String| Path::new(folder).join(name).display().to_string();
        // Before it is made, a folder has no files.
        let is_first = folder.is_empty();
        let path = Path::new(PLACE).join(folder).display().to_string();
        match files_by_tern(image, path.trim_end_matches('/')) {
            Ok(files) => all.extend(files.into_iter().map(|(name, content)| (below(name), content))),
            Err(why) if is_first => return Err(why.into()),
            Err(_) => {}
        }
    }
    Ok(all)
}

/// The number of the last transaction of which the script has heard that it is safe.
fn heard(files: &Files) -> u64 {
    let text =
        files.get(NUMBERS).map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default();
    // A line may be there in part.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().last().and_then(|line| line.trim().parse().ok()).unwrap_or(0)
}

/// Loses power after each flush and at other places, and asks the database what is there.
fn keeps(world: &World, database: &Database) -> Verdict {
    let counts = if world.full { &database.full } else { &database.plain };
    let scratch = Scratch::create()?;
    make_root(&scratch, database.programs, Some(database.script))?;
    let (disk, log) = (PathBuf::from(root_disk(&scratch, DISK)?), scratch.0.join("log"));
    let mut image = fs::read(&disk)?;
    work(world, database, counts.transactions, &disk, &log)?;
    let log = fs::read(&log)?;
    let entries = log::parse(&log).map_err(|damage| damage.to_string())?;
    let all = cuts(&entries, 1, counts.cuts);
    let (mut applied, mut seen) = (0, BTreeSet::new());
    for &cut in &all {
        for entry in &entries[applied..cut] {
            apply(entry, &mut image)?;
        }
        applied = cut;
        let files = files_of(database, &image)?;
        let heard = heard(&files);
        // A database that nobody was told of need not be there.
        if heard == 0 {
            continue;
        }
        let place = scratch.0.join("lost");
        restore(&files, &place)?;
        let last = (database.last)(&place).map_err(|why| {
            format!("entry {cut} of {}: {}", entries.len(), why.message().unwrap_or_default())
        })?;
        // One more may be safe whose number is not written down yet.
        if !(heard..=heard + 1).contains(&last) {
            return Err(
                format!("entry {cut} of {}: {heard} are safe, {last} are there", entries.len()).into()
            );
        }
        seen.insert(last);
    }
    eprintln!("databases: power was lost {} times, with {} different numbers", all.len(), seen.len());
    let is_enough = seen.len() as u64 >= counts.transactions / 2 && seen.last() == Some(&counts.transactions);
    if is_enough { Ok(()) } else { Err(format!("numbers that were there: {seen:?}").into()) }
}

/// Puts files into a folder that has nothing else.
fn restore(files: &Files, folder: &Path) -> Verdict {
    let _ = fs::remove_dir_all(folder);
    fs::create_dir_all(folder)?;
    for (name, content) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap_or(folder))?;
        fs::write(path, content)?;
    }
    Ok(())
}

/// Sums up a database of `sqlite.sh`: its own check, its last number, and how many rows are not as the transactions up to that one leave them.
const QUESTION: &str = "pragma integrity_check; \
    select max(n), count(*) - max(n), total((length(b) <> 1500) <> (2 * n <= (select max(n) from t))) from t;";

fn last_of_sqlite(folder: &Path) -> Result<u64, Failed> {
    let output = Command::new("/usr/bin/sqlite3").arg(folder.join("db")).arg(QUESTION).output()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut lines = said.lines();
    let (check, sum) = (lines.next(), lines.next().and_then(|line| line.strip_suffix("|0|0.0")));
    match sum.and_then(|number| number.parse().ok()) {
        Some(last) if check == Some("ok") => Ok(last),
        _ => Err(format!("{said}{}", String::from_utf8_lossy(&output.stderr)).into()),
    }
}

/// A server of this machine that ends with its owner.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Answer of redis to a client of it, reached as these words tell.
fn ask(how: &[&str], words: &[&str]) -> Result<String, Failed> {
    let output = Command::new("/usr/bin/redis-cli").args(how).args(words).output()?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
}

/// Asks until a server answers.
fn wait_for(how: &[&str]) -> Verdict {
    let begin = Instant::now();
    while ask(how, &["ping"])? != "PONG" {
        if begin.elapsed() > LIMIT {
            return Err("redis does not answer".into());
        }
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

fn last_of_redis(folder: &Path) -> Result<u64, Failed> {
    let socket = folder.join("socket").display().to_string();
    // The guest's own is a file by now.
    let _ = fs::remove_file(&socket);
    let mut command = Command::new("/usr/bin/redis-check-rdb");
    std::os::unix::process::CommandExt::arg0(&mut command, "redis-server");
    command.args(["--port", "0", "--unixsocket", &socket, "--save", "", "--appendonly", "yes"]);
    command.arg("--dir").arg(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let server = Server(xtask::interrupt::spawn(&mut command)?);
    let how = ["-s", &socket];
    wait_for(&how)?;
    let number = |words: &[&str]| -> Result<u64, Failed> {
        let said = ask(&how, words)?;
        said.parse().map_err(|_| format!("{words:?}: {said}").into())
    };
    let (last, keys) = (number(&["get", "n"])?, number(&["dbsize"])?);
    drop(server);
    if keys == last + 1 { Ok(last) } else { Err(format!("{keys} keys of {last} transactions").into()) }
}

/// Commands with which this machine asks, each by several clients.
const ASKED: &str = "ping,set,get,incr,lpush,rpop,sadd,hset,zadd,lrange_100,mset";

/// Redis on Tern, which this machine reaches by a port.
pub struct Elsewhere {
    /// The port, as words of a command have it.
    pub port: String,
    disk: String,
    machine: thread::JoinHandle<xtask::Result<Reply>>,
}

impl Elsewhere {
    /// Boots a machine that has redis with these settings, and nothing else. It is ended when the limit is reached.
    pub fn start(
        world: &'static World,
        scratch: &Scratch,
        limit: Duration,
        settings: &[&str],
    ) -> Result<Elsewhere, Failed> {
        make_root(scratch, REDIS.programs, None)?;
        let disk = root_disk(scratch, DISK)?;
        let port = peripherals::free_port()?;
        let forward = format!("{port}:6379");
        let mut command = world.tern_command();
        command.args([
            "run",
            "--disk",
            &disk,
            "--net",
            &forward,
            "--linux",
            "redis-server",
            "--bind",
            "0.0.0.0",
        ]);
        command.args(["--protected-mode", "no", "--save", ""]).args(settings);
        let machine = thread::spawn(move || run_within(limit, command, b""));
        let server = Elsewhere { port: port.to_string(), disk, machine };
        match wait_for(&["-p", &server.port]) {
            Ok(()) => Ok(server),
            Err(why) => Err(server.end()?.failed(why.message().unwrap_or_default())),
        }
    }

    /// Ends redis, and gives back what the machine said.
    pub fn end(self) -> Result<Reply, Failed> {
        let _ = ask(&["-p", &self.port], &["shutdown", "nosave"]);
        let reply = self.machine.join().map_err(|_| "whoever ran the machine has panicked")??;
        check_disk(&self.disk)?;
        Ok(reply)
    }
}

fn redis_answers_this_machine(world: &'static World) -> Verdict {
    let scratch = Scratch::create()?;
    let requests = if world.full { 5000 } else { 200 };
    // Some thirty kinds of these, of which a machine that has another one beside it answers some hundred in a second.
    let limit = LIMIT * (1 + requests / 200);
    let server = Elsewhere::start(world, &scratch, limit, &[])?;
    let asked = asks(&server.port, requests);
    let reply = server.end()?;
    asked.map_err(|why| reply.failed(why.message().unwrap_or_default()))?;
    reply.check_code(0)
}

/// Asks redis at a port: so many requests of each kind, one at a time, and then eight.
fn asks(port: &str, requests: u32) -> Verdict {
    for pipelined in ["1", "8"] {
        let requests = requests.to_string();
        let how = ["-p", port, "-c", "8", "-d", "100", "-r", "50", "-n", &requests, "-P", pipelined];
        let mut command = Command::new("/usr/bin/redis-benchmark");
        command.args(how).args(["--csv", "-t", ASKED]);
        let reply = run(command, b"")?;
        reply.check_code(0)?;
        for name in ["\"SET\"", "\"GET\"", "\"INCR\"", "\"ZADD\"", "\"MSET (10 keys)\""] {
            reply.check_contains(name)?;
        }
    }
    let big = "x".repeat(60_000);
    for (words, said) in [
        (&["set", "big", &big][..], "OK"),
        (&["get", "big"], &big),
        (&["eval", "return redis.call('strlen', KEYS[1])", "1", "big"], "60000"),
        (&["get", "nosuch"], ""),
    ] {
        let found = ask(&["-p", port], words)?;
        if found != said {
            return Err(format!("{}: {found:?}", words[0]).into());
        }
    }
    Ok(())
}

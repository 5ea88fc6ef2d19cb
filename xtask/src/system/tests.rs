//! The committed descriptions, and mistakes with their lines.

use super::*;
use description::{Device, MODULES};

const FILES: [&str; 32] = [
    "mm",
    "console",
    "bus",
    "virtio-block",
    "ahci",
    "virtio-net",
    "virtio-entropy",
    "virtio-console",
    "network",
    "ramfs",
    "ext4",
    "bootfs",
    "mounts",
    "merge",
    "crypt",
    "httpd",
    "modules",
    "shell",
    "mount",
    "umount",
    "suite",
    "bench",
    "bench-c",
    "bench-files",
    "stub-test",
    "door-test",
    "hostile",
    "counter",
    "linux",
    "disk",
    "disk-test",
    "net-test",
];

const SMALL: &str = r#"[usual]
priority = 32
priority-max = 36
kernel-share = 16
memory = "64 MiB"
restarts = 5

[[program]]
name = "mm"

[[program]]
name = "console"
serves = ["console"]
ports = ["0x3f8+8"]
"#;

fn read_text(text: &str) -> std::result::Result<System, Vec<Mistake>> {
    let (sources, file) = base::read("systems/test.toml", text, &|name| Err(format!("no {name}")));
    check::check(&sources, &file.map_err(|mistake| vec![mistake])?, &FILES)
}

#[test]
fn committed_descriptions_are_fine() {
    let names = names().expect("the folder is there");
    assert!(names.contains(&"default".into()), "{names:?}");
    for name in names {
        read(&name, &FILES).unwrap_or_else(|error| panic!("{}", error.message));
    }
}

#[test]
fn an_entry_is_what_it_says_and_what_is_usual() {
    let system = read("default", &FILES).unwrap_or_else(|error| panic!("{}", error.message));
    let services = system.program("services");
    assert_eq!((services.file.as_str(), services.arguments.as_str()), (MODULES, "clock calendar"));
    assert_eq!(services.serves, ["clock", "calendar"]);
    assert_eq!((services.uses.as_deref(), services.restarts), (Some(&["console".to_string()][..]), 5));
    assert_eq!((services.kernel_share, services.pages_max, services.priority), (8, 2048, 54));
    assert_eq!(services.devices, [Device::Ports { first: 0x70, log2: 1 }]);
    let suite = system.program("suite");
    assert_eq!((suite.priority, suite.priority_max, suite.contiguous_max), (32, 50, 1032 << 20));
    assert_eq!(system.program("hello").pages_max, 16384);
    let (bus, disk) = (system.program("bus"), system.program("virtio-block"));
    assert_eq!((bus.is_bus, bus.classes, disk.is_bus, disk.classes), (true, 0, false, 1 << 1));
    assert!(system.program("bootfs").reads_archive && !system.program("ramfs").reads_archive);
    assert!(["shell", "mount", "umount"].iter().all(|name| system.program(name).may_mount));
    assert!(!system.program("bench").may_mount);
    let other = system.program("ahci");
    assert_eq!(
        (disk.otherwise.as_deref(), &other.serves, other.classes),
        (Some("ahci"), &disk.serves, 1 << 1)
    );
    assert_eq!((system.program("virtio-net").classes, system.program("network").classes), (1 << 2, 0));
    assert_eq!(System::unpack(&system.pack()), Some(system));
}

/// Mistakes: text that is added to [`SMALL`], the line that is told, and a part of the message.
const MISTAKES: [(&str, u32, &str); 51] = [
    (
        "[[program]]\nname = \"counter\"\ndevices = [\"disk\"]",
        16,
        "no class \"disk\"; there are: block, network",
    ),
    (
        "[[program]]\nname = \"counter\"\ndevices = [\"block\"]",
        16,
        "counter has devices, and no program has \"bus = true\"",
    ),
    (
        "[[program]]\nname = \"suite\"\nbus = true\n[[program]]\nname = \"counter\"\nbus = true",
        19,
        "suite is the bus server already, in line 16",
    ),
    (
        "[[program]]\nname = \"suite\"\nserves = [\"s\"]\nbus = true\ndevices = [\"block\"]\n[[program]]\nname = \"counter\"\nserves = [\"c\"]\ndevices = [\"network\", \"block\"]",
        21,
        "counter has the block devices of suite, in line 16",
    ),
    ("[[program]]\nname = \"counter\"\narchive = \"yes\"", 18, "expected a boolean"),
    ("[[module]]\nname = \"counter\"\nserves = [\"c\"]\narchiv = true", 19, "unknown field `archiv`"),
    ("[[program]]\nname = \"mm\"\narchive = true", 16, "mm has the boot archive without \"archive = true\""),
    (
        "[[program]]\nname = \"counter\"\nkernel-share = 99999",
        16,
        "kernel-share 99999: expected 1 to 256, which is all",
    ),
    ("[[program]]\nname = \"counter\"\npriority = 99", 16, "priority 99: expected 1 to 36, its priority-max"),
    (
        "[[program]]\nname = \"counter\"\npriority-max = 99",
        16,
        "priority-max 99: expected 1 to 60, the highest",
    ),
    ("[[program]]\nname = \"counter\"\nkernel-share = 0", 16, "kernel-share 0: expected 1 to 256"),
    ("[[program]]\nname = \"counter\"\nkernel-share = -1", 16, "kernel-share -1: expected 1 to 256"),
    ("[[program]]\nname = \"counter\"\nmemory = \"0 MiB\"", 16, "memory \"0 MiB\": expected whole pages"),
    ("[[program]]\nname = \"counter\"\nmemory = \"64M\"", 16, "memory \"64M\": expected a number and KiB"),
    ("[[program]]\nname = \"counter\"\nmemory = 64", 18, "expected a string"),
    (
        "[[program]]\nname = \"counter\"\ncolours = 12",
        16,
        "colours 12: expected a power of two from 2 to 256",
    ),
    ("[[program]]\nname = \"counter\"\ncolours = 1", 16, "colours 1: expected a power of two"),
    ("[[program]]\nname = \"counter\"\ncolours = 512", 16, "colours 512: expected a power of two"),
    ("[[program]]\nname = \"counter\"\nserves = [\"a server\"]", 16, "\"a server\" is no name"),
    ("[[program]]\nname = \"counter\"\nserves = [\"console\"]", 16, "served by console already, in line 11"),
    ("[[program]]\nname = \"missing\"", 16, "missing: there is no program missing in the boot archive"),
    ("[[program]]\nname = \"mm\"", 16, "mm has an entry already, in line 8"),
    ("[[program]]\nname = \"counter\"\npriorty = 3", 18, "unknown field `priorty`"),
    ("[[program]]\nserves = [\"counter\"]", 16, "missing field `name`"),
    ("[[program]]\nname = \"counter\"\nports = [\"0x3f9+8\"]", 16, "a power of two"),
    ("[[program]]\nname = \"counter\"\nports = [\"65536+1\"]", 16, "there are 65,536"),
    ("[[program]]\nname = \"counter\"\nports = [\"8\"]", 16, "expected the first one and their number"),
    ("[[program]]\nname = \"counter\"\ninterrupts = [192]", 16, "expected lines from 0 to 191"),
    (
        "[[program]]\nname = \"counter\"\nserves = [\"c\"]\nports = [\"0x3fc+1\"]",
        16,
        "counter has a device of console, in line 11",
    ),
    (
        "[[program]]\nname = \"counter\"\nserves = [\"c\"]\nkernel-share = 240",
        16,
        "a kernel-share of 272 together",
    ),
    (
        "[[program]]\nname = \"counter\"\notherwise = \"bench\"",
        16,
        "otherwise \"bench\", which has no entry behind it",
    ),
    (
        "[[program]]\nname = \"bench\"\nserves = [\"c\"]\n[[program]]\nname = \"counter\"\nserves = [\"c\"]\notherwise = \"bench\"",
        19,
        "otherwise \"bench\", which has no entry behind it",
    ),
    (
        "[[program]]\nname = \"counter\"\notherwise = \"bench\"\n[[program]]\nname = \"bench\"",
        16,
        "otherwise \"bench\", which is for programs that serve names",
    ),
    (
        "[[program]]\nname = \"counter\"\nserves = [\"c\"]\notherwise = \"bench\"\n[[program]]\nname = \"bench\"\nserves = [\"d\"]",
        16,
        "otherwise \"bench\", which does not serve the same names",
    ),
    (
        "[[program]]\nname = \"counter\"\nserves = [\"c\"]\notherwise = \"bench\"\n[[program]]\nname = \"suite\"\nserves = [\"c\"]\n\
             otherwise = \"bench\"\n[[program]]\nname = \"bench\"\nserves = [\"c\"]",
        20,
        "otherwise \"bench\", which is there for another program",
    ),
    (
        "[[program]]\nname = \"counter\"\nserves = [\"c\"]\notherwise = \"bench\"\n[[program]]\nname = \"bench\"\nserves = [\"c\"]\n\
             kernel-share = 240",
        20,
        "a kernel-share of 272 together",
    ),
    (
        "[[program]]\nname = \"counter\"\nserves = [\"c\"]\notherwise = \"bench\"\n[[program]]\nname = \"bench\"\nserves = [\"c\"]\nuses = [\"d\"]\n\
             [[program]]\nname = \"suite\"\nserves = [\"d\"]\nuses = [\"c\"]",
        20,
        "use each other in a ring: bench, suite, bench",
    ),
    ("[[module]]\nname = \"clock\"", 16, "module clock is in no task"),
    ("[[task]]\nname = \"services\"\nmodules = [\"clock\"]", 16, "there is no module \"clock\""),
    ("[[task]]\nname = \"shell\"\nmodules = []", 16, "shell is the name of a file"),
    ("[[program]\nname = \"counter\"", 16, ""),
    ("[[program]]\nname = \"counter\"\nrestarts = 256", 16, "restarts 256: expected 0 to 255"),
    ("[[program]]\nname = \"counter\"\nuses = [\"clock\"]", 16, "the name \"clock\" is served by nobody"),
    (
        "[[program]]\nname = \"counter\"\ninstead = { console = \"log\" }",
        16,
        "the name \"log\" is served by nobody",
    ),
    (
        "[[program]]\nname = \"counter\"\ninstead = { log = \"console\" }",
        16,
        "the name \"log\" is served by nobody",
    ),
    (
        "[[program]]\nname = \"counter\"\nserves = [\"c\"]\nuses = [\"d\"]\n[[program]]\nname = \"bench\"\nserves = [\"d\"]\nuses = [\"c\"]",
        16,
        "use each other in a ring: counter, bench, counter",
    ),
    (
        "[[program]]\nname = \"counter\"\nserves = [\"c\"]\nuses = [\"console\"]\ninstead = { console = \"d\" }\n\
             [[program]]\nname = \"bench\"\nserves = [\"d\"]\nuses = [\"c\", \"console\"]",
        16,
        "use each other in a ring: counter, bench, counter",
    ),
    ("[[program]]\nname = \"counter\"\nclients = [\"mm\"]", 16, "counter has clients, and serves no name"),
    (
        "[[program]]\nname = \"counter\"\nserves = [\"c\"]\nclients = [\"nobody\"]",
        16,
        "counter: there is no entry for its client \"nobody\"",
    ),
    (
        "[[program]]\nname = \"counter\"\nserves = [\"c\"]\nclients = [\"mm\"]\n[[program]]\nname = \"bench\"\nuses = [\"c\"]",
        20,
        "bench uses counter, and is not among its clients",
    ),
    (
        "[[module]]\nname = \"clock\"\nserves = [\"clock\"]\nclients = [\"mm\"]\n[[module]]\nname = \"calendar\"\n\
             [[task]]\nname = \"services\"\nmodules = [\"clock\", \"calendar\"]",
        22,
        "services: modules of one task have the same clients",
    ),
];

#[test]
fn mistakes_are_told_with_their_lines() {
    for (more, line, reason) in MISTAKES {
        let mistakes = read_text(&format!("{SMALL}\n{more}\n")).expect_err(more);
        let is_told = |it: &Mistake| it.line == line && it.reason.contains(reason);
        assert!(mistakes.iter().any(is_told), "{more}\n{mistakes:?}");
    }
}

/// Of those that start in place of one another one runs: they may have the same devices, and kernel memory for one.
#[test]
fn alternatives_share_what_one_of_them_needs() {
    let more = "[[program]]
name = \"bus\"
serves = [\"bus\"]
kernel-share = 4
bus = true
";
    let entry = |name: &str, more: &str| {
        format!(
            "[[program]]\nname = \"{name}\"\nserves = [\"c\"]\nkernel-share = 200\nports = [\"8+8\"]\ndevices = [\"block\"]\n{more}\n"
        )
    };
    let all = [
        SMALL.into(),
        more.into(),
        entry("counter", "otherwise = \"bench\""),
        entry("bench", "otherwise = \"suite\""),
        entry("suite", ""),
    ];
    let system = read_text(&all.concat()).expect("it is fine");
    assert!(show::text(&system).contains("c (or bench)"));
    // Without the last link two of them run.
    let text = all.concat().replace("otherwise = \"suite\"", "");
    let mistakes = read_text(&text).expect_err("two serve the name");
    let told = |part: &str| mistakes.iter().any(|mistake| mistake.reason.contains(part));
    assert!(told("served by counter already") && told("block devices of counter") && told("436 together"));
}

#[test]
fn what_every_system_needs() {
    let mistakes = read_text(&SMALL.replace("\"mm\"", "\"shell\"")).expect_err("there is no memory manager");
    assert_eq!(mistakes.len(), 1);
    assert!(mistakes[0].reason.contains("\"mm\""), "{mistakes:?}");
    assert!(read_text("").is_err());
    assert!(
        read("nosuch", &FILES).is_err_and(|error| error.message.contains("there are: consoles, default"))
    );
}

/// A description with a sandbox that has this root and this name, with lines for its entry and for the sandbox.
fn sandbox(name: &str, root: &str, entry: &str, sandbox: &str) -> String {
    format!(
        "\n[[program]]\nname = \"{name}\"\nfile = \"linux\"\n{entry}\n[program.sandbox]\nroot = \"{root}\"\n\
         program = [\"/bin/sh\", \"-c\", \"echo 'a b'\"]\nmemory = \"8 MiB\"\n{sandbox}\n"
    )
}

/// Servers of files and of the network.
const SERVED: &str = "
[[program]]
name = \"mounts\"
serves = [\"files\"]
uses = []

[[program]]
name = \"network\"
serves = [\"network\"]
uses = []
";

const ENTRY: &str = "serves = [\"a\"]\nuses = [\"console\", \"files\"]";

#[test]
fn a_sandbox_becomes_arguments() {
    let one = sandbox("one", "/disk//one/", ENTRY, "processes = 8");
    let entry = "serves = [\"b\"]\nuses = [\"console\", \"files\", \"network\"]";
    let two = sandbox(
        "two",
        "/disk/two",
        entry,
        "processes = 9\nnetwork = true\nkeys = true\nmonitor = \"console\"\ndisk = \"1 GiB\"\nfiles = 5000",
    );
    let system = read_text(&[SMALL, SERVED, &one, &two].concat()).expect("it is fine");
    let one = system.program("one");
    assert_eq!(
        one.arguments,
        "--root /disk/one --memory 8 --own-memory 64 --processes 8 --no-keys --encoded /bin/sh -c echo%20%27a%20b%27"
    );
    assert_eq!((one.file.as_str(), one.contiguous_max), ("linux", 8 << 20));
    assert_eq!(
        system.program("two").arguments,
        "--root /disk/two --memory 8 --own-memory 64 --processes 9 --disk 1024 --files 5000 \
         --monitor console --encoded /bin/sh -c echo%20%27a%20b%27"
    );
}

#[test]
fn mistakes_of_sandboxes() {
    let fine = "processes = 8";
    for (root, entry, more, told) in [
        ("disk", ENTRY, fine, "root \"disk\": expected a directory"),
        ("/", ENTRY, fine, "root \"/\": expected a directory"),
        ("/disk/../one", ENTRY, fine, "root \"/disk/../one\""),
        ("/disk/one", ENTRY, "processes = 0", "processes 0: expected 1 to 256"),
        ("/disk/one", ENTRY, "processes = 257", "processes 257"),
        ("/disk/one", ENTRY, "processes = 8\ndisk = \"1.5 MiB\"", "disk \"1.5 MiB\": expected a number"),
        ("/disk/one", ENTRY, "processes = 8\ndisk = \"1028 KiB\"", "expected whole MiB"),
        ("/disk/one", ENTRY, "processes = 8\nfiles = 0", "files 0: expected 1 to"),
        ("/disk/one", "uses = [\"files\"]", fine, "it starts at boot, so it serves a name"),
        ("/disk/one", "serves = [\"a\"]", fine, "its entry says what it uses"),
        ("/disk/one", "serves = [\"a\"]\nuses = [\"console\"]", fine, "it uses \"files\""),
        (
            "/disk/one",
            ENTRY,
            "processes = 8\nnetwork = true",
            "it has the network, and does not use \"network\"",
        ),
        (
            "/disk/one",
            "serves = [\"a\"]\nuses = [\"files\", \"network\"]",
            fine,
            "it uses \"network\", and does not have \"network = true\"",
        ),
        (
            "/disk/one",
            ENTRY,
            "processes = 8\nmonitor = \"log\"",
            "its monitor is \"log\", which it does not use",
        ),
        ("/disk/one", &[ENTRY, "\narguments = \"ls\""].concat(), fine, "its entry has no arguments"),
        ("/disk/one", &[ENTRY, "\noperator = true"].concat(), fine, "its entry has no operator"),
        ("/disk/one", &[ENTRY, "\nmount = true"].concat(), fine, "its entry has no mount"),
        ("/disk/one", &[ENTRY, "\ncolours = 16"].concat(), fine, "its entry has no colours"),
    ] {
        let text = [SMALL, SERVED, &sandbox("one", root, entry, more)].concat();
        let mistakes = read_text(&text).expect_err(told);
        assert!(mistakes.iter().any(|mistake| mistake.reason.contains(told)), "{told}: {mistakes:?}");
    }
    let other = sandbox("one", "/disk/one", ENTRY, fine).replace("file = \"linux\"", "file = \"counter\"");
    let mistakes = read_text(&[SMALL, SERVED, &other].concat()).expect_err("it is no program of Linux");
    assert!(mistakes[0].reason.contains("the file of its program is \"linux\""), "{mistakes:?}");
}

/// Sandboxes share nothing that is not named: no root lies in another one, and keys are those of one.
#[test]
fn sandboxes_are_apart() {
    let keys = "processes = 8\nkeys = true";
    let other = ENTRY.replace("\"a\"", "\"b\"");
    let both = |one: &str, two: &str| {
        let (one, two) = (sandbox("one", one, ENTRY, keys), sandbox("two", two, &other, keys));
        read_text(&[SMALL, SERVED, &one, &two].concat()).expect_err("both have the keys")
    };
    for (one, two) in [("/disk/a", "/disk/a"), ("/disk/a", "/disk/a/b"), ("/disk/a/b", "/disk/a")] {
        let mistakes = both(one, two);
        assert_eq!(mistakes.len(), 2, "{mistakes:?}");
        assert!(
            mistakes[0].reason.contains("two: sandbox: its root and that of one, in line"),
            "{mistakes:?}"
        );
    }
    let mistakes = both("/disk/a", "/disk/ab");
    assert!(mistakes.len() == 1 && mistakes[0].reason.contains("has the keys already"), "{mistakes:?}");
}

/// A program with a monitor between it and the console.
const MONITORED: &str = "
[[program]]
name = \"counter\"
serves = [\"log\"]
uses = [\"console\"]

[[program]]
name = \"shell\"
uses = [\"console\"]
instead = { console = \"log\" }
";

#[test]
fn descriptions_are_shown() {
    let system = read_text(&format!("{SMALL}{MONITORED}")).expect("it is fine");
    let text = show::text(&system);
    let line = |name: &str| {
        text.lines()
            .find(|line| line.starts_with(name))
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    assert_eq!(line("counter").as_deref(), Some("counter log console 32 to 36 16/256 64 MiB -"));
    assert_eq!(line("console").as_deref(), Some("console console all 32 to 36 16/256 64 MiB ports 0x3f8+8"));
    assert_eq!(line("shell").as_deref(), Some("shell - console (finds log) 32 to 36 16/256 64 MiB -"));
    let drawing = show::drawing(&system).unwrap_or_else(|error| panic!("{}", error.message));
    assert!(drawing.starts_with("<?xml") && drawing.trim_end().ends_with("</svg>"), "{drawing}");
    // From the shell to the monitor, and from that to the console.
    assert_eq!(drawing.matches("<path").count(), 2);
    for name in ["mm", "console", "counter", "shell"] {
        assert!(drawing.contains(&format!(">{name}</tspan>")), "{drawing}");
    }
}

/// A program, a module and so its task, and an entry over that of a base have colours; the memory manager, which gives them, has none.
#[test]
fn programs_have_colours() {
    let entry = |name: &str, colours: u16| format!("[[program]]\nname = \"{name}\"\ncolours = {colours}\n");
    let module =
        |name: &str, more: &str| format!("[[module]]\nname = \"{name}\"\nserves = [\"{name}\"]\n{more}\n");
    let task = "[[task]]\nname = \"two\"\nmodules = [\"one\", \"other\"]\n";
    let text =
        [SMALL, &entry("counter", 16), &module("one", "colours = 4"), &module("other", ""), task].concat();
    let system = read_text(&text).expect("it is fine");
    assert_eq!(
        ["counter", "two", "console", "suite"].map(|name| system.program(name).colours),
        [16, 4, 0, 0]
    );
    assert!(show::text(&system).contains("16/256  64 MiB in 16 colours"), "{}", show::text(&system));
    let system = read_over(&format!("base = \"counting\"\n{}", entry("counter", 64))).expect("it is fine");
    assert_eq!((system.program("counter").colours, system.program("counter").pages_max), (64, 256));
    let text = SMALL.replace("name = \"mm\"", "name = \"mm\"\ncolours = 4");
    let mistakes = read_text(&text).expect_err("nobody gives it pages of a colour");
    assert_eq!((mistakes[0].line, &*mistakes[0].reason), (8, "mm gives pages their colours, and has none"));
}

/// Descriptions that begin with one another, and with [`SMALL`].
fn read_over(text: &str) -> std::result::Result<System, String> {
    let fetch = |name: &str| {
        let text = match name {
            "small" => SMALL,
            "counting" => {
                "base = \"small\"\n\n[[program]]\nname = \"counter\"\nserves = [\"c\"]\nmemory = \"1 MiB\"\n"
            }
            "broken" => "base = \"small\"\n[[program]\n",
            "one" => "base = \"other\"\n",
            "other" => "base = \"one\"\n",
            _ => return Err(format!("there is no system {name:?}")),
        };
        Ok((format!("systems/{name}.toml"), text.into()))
    };
    system_of("systems/test.toml", text, &FILES, &fetch)
}

/// An entry changes that of the base key by key, where it stands; what is left out is gone, and what is new comes behind.
#[test]
fn a_description_begins_with_another() {
    let names = |system: &System| system.programs.iter().map(|it| it.name.clone()).collect::<Vec<_>>();
    let same = read_over("base = \"small\"\n").expect("it is fine");
    let alone = read_text(SMALL).expect("it is fine");
    assert_eq!((names(&same), same.source.as_str()), (names(&alone), "systems/test.toml"));
    assert!(same.programs.iter().chain([&same.usual]).all(|it| it.line == 1), "where the base is named");

    let more = "# Its base has a base.\nbase = \"counting\"\n\n[[program]]\nname = \"suite\"\n\n[[program]]\nname = \"console\"\ninterrupts = [4]\n\n\
                [[program]]\nname = \"counter\"\nserves = [\"count\"]\n";
    let system = read_over(more).expect("it is fine");
    assert_eq!(names(&system), ["mm", "console", "counter", "suite"]);
    let (console, counter) = (system.program("console"), system.program("counter"));
    assert_eq!(console.devices, [Device::Ports { first: 0x3f8, log2: 3 }, Device::Interrupt(4)]);
    assert_eq!((counter.serves.as_slice(), counter.pages_max), (&["count".to_string()][..], 256));
    assert_eq!([console.line, counter.line, system.program("mm").line], [7, 11, 2]);
    assert_eq!(System::unpack(&system.pack()), Some(system));

    let fewer = "base = \"counting\"\nwithout = [\"counter\"]\n[usual]\npriority = 9\npriority-max = 9\nkernel-share = 1\nmemory = \"1 MiB\"\nrestarts = 1\n";
    let system = read_over(fewer).expect("it is fine");
    assert_eq!(names(&system), ["mm", "console"]);
    assert_eq!((system.usual.priority, system.program("mm").priority, system.usual.line), (9, 9, 3));
    // An entry of that name is a new one.
    let anew = read_over("base = \"counting\"\nwithout = [\"counter\"]\n[[program]]\nname = \"counter\"\n");
    assert!(anew.is_ok_and(|system| system.program("counter").serves.is_empty()));
}

#[test]
fn mistakes_are_told_where_they_are() {
    for (text, told) in [
        ("base = \"nosuch\"", "systems/test.toml, line 1: base: there is no system \"nosuch\""),
        ("\nbase = \"broken\"", "systems/broken.toml, line 2: "),
        (
            "base = \"one\"",
            "systems/other.toml, line 1: descriptions that begin with each other: systems/test.toml, systems/one.toml, systems/other.toml, systems/one.toml",
        ),
        ("base = 3", "systems/test.toml, line 1: invalid type"),
        ("base = \"small\"\nbases = 1", "systems/test.toml, line 2: unknown field `bases`"),
        (
            "base = \"small\"\n\nwithout = [\"mm\",\n  \"counter\"]",
            "systems/test.toml, line 4: without \"counter\", of which the base has no entry",
        ),
        ("without = [\"mm\"]", "systems/test.toml, line 1: without is for descriptions that have a base"),
        (
            "base = \"small\"\nwithout = [\"console\"]",
            "systems/small.toml, line 1: there is no program \"console\"",
        ),
        (
            "base = \"counting\"\n[[program]]\nname = \"suite\"\nserves = [\"c\"]",
            "systems/test.toml, line 2: the name \"c\" is served by counter already, in systems/counting.toml, line 3",
        ),
        (
            "base = \"small\"\n[[program]]\nname = \"mm\"\n[[program]]\nname = \"mm\"",
            "systems/test.toml, line 4: mm has an entry already, in line 2",
        ),
        // The entry of the base is fine, and what is usual here is not.
        (
            "base = \"counting\"\n[usual]\npriority = 9\npriority-max = 9\nkernel-share = 120\nmemory = \"1 MiB\"\nrestarts = 1",
            "systems/counting.toml, line 3: counter: programs that start at boot have a kernel-share of 360 together",
        ),
    ] {
        let mistakes = read_over(text).expect_err(text);
        assert!(mistakes.lines().any(|line| line.starts_with(told)), "{text}\n{mistakes}");
    }
}

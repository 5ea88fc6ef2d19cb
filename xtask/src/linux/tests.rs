//! Tests of packages on disks, with packages that are made here, and an apt that knows nothing else. Nothing is asked of a network.

use super::apt::{Apt, Package, output, package, reason};
use super::{COMMAND_LINE_MAX, Root, boot_options, directory, encoded, memory_options, status};
use crate::paths::{self, Scratch};
use crate::peripherals::ext4_tool;
use crate::{Result, interrupt, machine, peripherals};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Size of disks here, in MiB.
const MIB: u32 = 16;

/// A folder of packages, an apt that knows them, and a disk that is not there yet.
struct World {
    folder: Scratch,
    apt: Apt,
    root: Root,
}

impl World {
    /// With packages that [`World::add`] has made.
    fn new(packages: impl Fn(&World)) -> World {
        let folder = Scratch::create("linux-test").unwrap();
        let path = |name: &str| folder.0.join(name);
        for name in ["lists/partial", "cache/archives/partial", "packages", "unpacked", "host"] {
            paths::create(&path(name)).unwrap();
        }
        paths::write(
            &path("sources"),
            format!("deb [trusted=yes] file:{} ./\n", path("packages").display()).as_bytes(),
        )
        .unwrap();
        paths::write(&path("host/status"), b"").unwrap();
        // Nothing of the host's own configuration: neither sources, nor what is done after an update.
        let settings = [
            ("Dir::Etc::main", "/dev/null".into()),
            ("Dir::Etc::parts", "/dev/null".into()),
            ("Dir::Etc::sourceparts", "/dev/null".into()),
            ("Dir::Etc::preferencesparts", "/dev/null".into()),
            ("Dir::Etc::sourcelist", path("sources")),
            ("Dir::Cache", path("cache")),
            ("Dir::State::lists", path("lists")),
            ("Dir::State::status", path("host/status")),
            ("APT::Sandbox::User", "root".into()),
        ];
        let settings =
            settings.map(|(name, value): (&str, PathBuf)| format!("{name} \"{}\";\n", value.display()));
        paths::write(&path("apt.conf"), settings.concat().as_bytes()).unwrap();
        let apt = Apt::configured(path("store"), path("apt.conf"));
        let root = Root { image: path("disk.img"), directory: directory("/linux").unwrap() };
        let world = World { folder, apt, root };
        packages(&world);
        world.update();
        world
    }

    /// Renews what apt knows.
    fn update(&self) {
        let mut packages = String::new();
        for entry in fs::read_dir(self.folder.0.join("packages")).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "deb") {
                continue;
            }
            let control = super::apt::control(&path).unwrap();
            let sum = output(Command::new("sha256sum").arg(&path)).unwrap();
            let sum = String::from_utf8(sum.stdout).unwrap();
            let name = path.file_name().unwrap().to_string_lossy();
            let (sum, size) = (sum.split(' ').next().unwrap(), fs::metadata(&path).unwrap().len());
            packages += &format!("{}\nFilename: ./{name}\nSize: {size}\nSHA256: {sum}\n\n", control.trim());
        }
        paths::write(&self.folder.0.join("packages/Packages"), packages.as_bytes()).unwrap();
        let mut update = Command::new("apt-get");
        let done = output(update.env("APT_CONFIG", self.folder.0.join("apt.conf")).arg("update")).unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    /// Makes a package. `fill` puts files into it.
    fn add(&self, name: &str, version: &str, needs: &str, fill: impl Fn(&Path)) {
        let tree = self.folder.0.join("unpacked").join(format!("{name}-{version}"));
        let needs = if needs.is_empty() { String::new() } else { format!("Depends: {needs}\n") };
        let control = format!(
            "Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: Nobody <nobody@example.com>\n\
             {needs}Description: nothing\n Of no use.\n"
        );
        file(&tree, "DEBIAN/control", control.as_bytes(), 0o644);
        fill(&tree);
        let to = self.folder.0.join("packages").join(format!("{name}_{version}.deb"));
        let done = output(
            Command::new("dpkg-deb").args(["--root-owner-group", "-Znone", "--build"]).arg(&tree).arg(to),
        );
        let done = done.unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    fn install(&self, names: &[&str]) -> Result<()> {
        let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        self.root.install(&self.apt, MIB, &names)
    }

    /// Fails to install; the reason. The disk, if it is there, stays as it is.
    fn refusal(&self, names: &[&str]) -> String {
        let disk = || fs::read(&self.root.image).ok();
        let before = disk();
        let why = self.install(names).expect_err("it cannot be installed").message;
        assert!(before == disk(), "the disk was changed: {why}");
        assert!(!why.contains('\n'), "{why}");
        why
    }

    /// Asks `debugfs`.
    fn ask(&self, request: &str) -> String {
        let mut command = ext4_tool("debugfs");
        let said = output(command.args(["-R", request]).arg(&self.root.image)).unwrap();
        String::from_utf8_lossy(&said.stdout).into_owned()
    }

    /// Changes the disk with `debugfs`.
    fn change(&self, request: &str) {
        let mut command = ext4_tool("debugfs");
        let said = output(command.args(["-w", "-R", request]).arg(&self.root.image)).unwrap();
        assert!(said.status.success());
    }

    fn contents(&self, path: &str) -> String {
        self.ask(&format!("cat \"/linux/{path}\""))
    }

    /// Asserts what `debugfs` knows of a path.
    fn is(&self, path: &str, parts: &[&str]) {
        let said = self.ask(&format!("stat \"/linux/{path}\""));
        let said = said.split_whitespace().collect::<Vec<&str>>().join(" ");
        for part in parts {
            assert!(said.contains(part), "/linux/{path}: expected {part:?} in {said}");
        }
    }

    fn assert_sound(&self) {
        let checked = output(ext4_tool("e2fsck").arg("-fn").arg(&self.root.image)).unwrap();
        assert_eq!(checked.status.code(), Some(0), "{}", String::from_utf8_lossy(&checked.stdout));
    }
}

/// Makes a file in a folder.
fn file(tree: &Path, name: &str, contents: &[u8], mode: u32) {
    let path = tree.join(name);
    for above in Path::new(name).ancestors().skip(1) {
        paths::create(&tree.join(above)).unwrap();
        fs::set_permissions(tree.join(above), fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::write(&path, contents).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Two packages, of which one needs the other, and the one that always comes.
fn greeting(world: &World) {
    world.add("ncurses-base", "6.4", "", |tree| file(tree, "lib/terminfo/l/linux", b"a terminal", 0o644));
    world.add("libgreet", "1:2.0-1", "", |tree| {
        file(tree, "lib/libgreet.so.2.0", b"a library", 0o644);
        symlink("libgreet.so.2.0", tree.join("lib/libgreet.so.2")).unwrap();
    });
    world.add("greet", "1.0", "libgreet (>= 1:2)", |tree| {
        file(tree, "bin/greet", b"a program", 0o755);
        file(tree, "usr/bin/greet-all", b"another program", 0o4755);
        fs::hard_link(tree.join("usr/bin/greet-all"), tree.join("usr/bin/greet-each")).unwrap();
        file(tree, "usr/share/greet/a \"large\" hal\u{f6}", b"hello", 0o600);
        file(tree, "etc/greeting", b"hello", 0o644);
    });
}

#[test]
fn packages_come_with_all_that_they_need() {
    let world = World::new(greeting);
    world.install(&["greet"]).unwrap();
    world.assert_sound();
    assert_eq!(world.root.list().unwrap(), "greet         1.0\nlibgreet      1:2.0-1\nncurses-base  6.4\n");
    assert_eq!(world.contents("usr/bin/greet"), "a program");
    world.is("usr/bin/greet", &["Mode: 0755", "User: 0 Group: 0"]);
    world.is("usr/bin/greet-all", &["Mode: 04755", "Links: 2"]);
    assert_eq!(world.contents("usr/bin/greet-each"), "another program");
    world.is("usr/lib/libgreet.so.2", &["Type: symlink", "\"libgreet.so.2.0\""]);
    world.is("usr/share/greet/a \"\"large\"\" hal\u{f6}", &["Mode: 0600"]);
    for name in ["bin", "lib", "lib64", "sbin"] {
        world.is(name, &["Type: symlink", &format!("\"usr/{name}\"")]);
    }
    for (name, mode) in
        [("tmp", "01777"), ("root", "0700"), ("proc", "0755"), ("dev", "0755"), ("sys", "0755")]
    {
        world.is(name, &["Type: directory", &format!("Mode: {mode}"), "User: 0 Group: 0"]);
    }
    assert!(world.contents("etc/passwd").starts_with("root:x:0:0:"));
    assert!(world.contents("etc/group").starts_with("root:x:0:"));
}

#[test]
fn later_packages_replace_files_and_keep_accounts() {
    let world = World::new(greeting);
    world.install(&["libgreet"]).unwrap();
    let other = world.folder.0.join("other");
    fs::write(&other, b"changed").unwrap();
    for name in ["/linux/etc/passwd", "/linux/usr/lib/libgreet.so.2.0"] {
        world.change(&format!("rm {name}"));
        world.change(&format!("write {} {name}", other.display()));
    }
    // A package that is installed is left alone, unless it is named.
    world.install(&["greet"]).unwrap();
    assert_eq!(world.contents("usr/lib/libgreet.so.2.0"), "changed");
    world.add("greet", "1.1", "libgreet", |tree| file(tree, "bin/greet", b"a newer program", 0o755));
    world.update();
    world.install(&["greet", "libgreet"]).unwrap();
    assert_eq!(world.contents("usr/lib/libgreet.so.2.0"), "a library");
    assert_eq!(world.contents("usr/bin/greet"), "a newer program");
    assert_eq!(world.contents("etc/passwd"), "changed");
    assert!(world.root.list().unwrap().starts_with("greet         1.1\nlibgreet      1:2.0-1\n"));
    world.assert_sound();
}

/// Many names of one file in a directory want more than one block of it.
#[test]
fn a_directory_grows_with_names_of_one_file() {
    let world = World::new(|world| {
        greeting(world);
        world.add("many", "1", "", |tree| {
            file(tree, "usr/lib/many/first", b"one for all", 0o644);
            for number in 0..200 {
                let name = format!("usr/lib/many/{number}-{}", "x".repeat(100));
                fs::hard_link(tree.join("usr/lib/many/first"), tree.join(name)).unwrap();
            }
        });
    });
    world.install(&["many"]).unwrap();
    world.install(&["many"]).unwrap();
    world.assert_sound();
    world.is("usr/lib/many/first", &["Links: 201"]);
}

#[test]
fn wrong_input_changes_nothing() {
    let world = World::new(|world| {
        greeting(world);
        world.add("large", "1", "", |tree| file(tree, "usr/large", &vec![1; (MIB as usize) << 20], 0o644));
        world.add("odd", "1", "", |tree| file(tree, "usr/bin/greet/odd", b"", 0o644));
        world.add("lost", "1", "nowhere", |_| ());
    });
    assert!(world.root.list().unwrap_err().message.contains("there is no disk"));
    for name in ["nosuch", "no.uch", "g.eet"] {
        assert!(world.refusal(&[name]).contains(&format!("apt knows no package {name} ")));
    }
    for name in ["", "-x", "greet-", "greet=1.0", "./greet", "*", "Greet", "a b", "greet/x"] {
        assert!(world.refusal(&[name]).contains("is no name of a package"));
    }
    assert!(world.refusal(&["lost"]).starts_with("apt-get: lost : Depends: nowhere but it is not "));
    assert!(!world.root.image.exists(), "a disk was made for nothing");
    world.install(&["greet"]).unwrap();
    assert!(world.refusal(&["large"]).contains("there is no room on"));
    assert!(
        world
            .refusal(&["odd"])
            .contains("/linux/usr/bin/greet is a directory in the packages, and none on the disk")
    );
    let held = peripherals::lock(&world.root.image).unwrap();
    assert!(world.refusal(&["greet"]).contains("another machine's"));
    drop(held);
    world.assert_sound();
    // A disk without a file system, and one whose file system is damaged.
    let good = fs::read(&world.root.image).unwrap();
    fs::write(&world.root.image, vec![0; 1 << 20]).unwrap();
    assert!(world.refusal(&["greet"]).contains("there is no ext4 file system on"));
    assert!(world.root.list().unwrap_err().message.contains("there is no ext4 file system on"));
    fs::write(&world.root.image, good).unwrap();
    world.change("clri /linux/usr");
    assert!(world.refusal(&["ncurses-base"]).contains("is damaged"));
    let left = fs::read_dir(&world.folder.0).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(!left.into_iter().any(|name| name.to_string_lossy().contains(".new")), "a copy was left behind");
}

/// Emulators have locks of their own kind.
#[test]
fn a_disk_of_an_emulator_is_in_use() {
    let world = World::new(greeting);
    world.install(&["libgreet"]).unwrap();
    let mut emulator = machine::supervised(machine::QEMU);
    emulator.args([
        "-nodefaults",
        "-display",
        "none",
        "-S",
        "-qmp",
        "stdio",
        "-device",
        "virtio-blk-pci,drive=disk",
    ]);
    let drive = format!("if=none,id=disk,format=raw,file={}", world.root.image.display());
    emulator.args(["-drive", &drive]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut emulator = interrupt::spawn(&mut emulator).unwrap();
    let mut greeting = String::new();
    BufReader::new(emulator.stdout.take().unwrap()).read_line(&mut greeting).unwrap();
    assert!(greeting.contains("QMP"), "{greeting}");
    let why = world.refusal(&["greet"]);
    emulator.kill().unwrap();
    interrupt::wait(emulator).unwrap();
    assert!(why.contains("another machine's"), "{why}");
    world.install(&["greet"]).unwrap();
}

#[test]
fn a_lines_package() {
    let line = "Inst libc6 [2.35-1] (2.36-9+deb12u14 Debian:12.15/oldstable, Other:1 [amd64]) [bash:amd64 ]";
    let [name, version, architecture] = ["libc6", "2.36-9+deb12u14", "amd64"].map(str::to_string);
    assert_eq!(package(line), Some(Package { name, version, architecture }));
    for line in ["Conf libc6 (2.36-9 Debian:12 [amd64])", "Inst", "Inst libc6", "Inst libc6 (2.36)", ""] {
        assert_eq!(package(line), None, "{line}");
    }
}

#[test]
fn reasons_are_one_line() {
    let said =
        "Reading\nE: Unable to locate package nosuch\nE: Couldn't find any package by regex 'nosuch'\n";
    assert_eq!(
        reason("apt-get", "", said),
        "apt knows no package nosuch (apt-get update renews what it knows)"
    );
    assert_eq!(reason("apt-get", "", "W: it is late\nE: one\nE: two\n"), "apt-get: one; two");
    assert_eq!(reason("dpkg-deb", "", "dpkg-deb: error: it is bad\n"), "dpkg-deb: error: it is bad");
    assert_eq!(reason("dpkg-deb", "", ""), "dpkg-deb: it gave no reason");
}

#[test]
fn lists_of_packages() {
    let one = "Package: b\nVersion: 1\nDescription: x\n .\n Package: of nothing\n";
    let list = status::with("", &[one.into(), "Version: 2\nPackage: a\n".into()]);
    assert_eq!(status::installed(&list), [("a".into(), "2".into()), ("b".into(), "1".into())]);
    assert!(list.contains("Package: b\nStatus: install ok installed\nVersion: 1\n"), "{list}");
    let newer = status::with(&list, &["Package: b\nVersion: 3\n".into()]);
    assert_eq!(status::installed(&newer), [("a".into(), "2".into()), ("b".into(), "3".into())]);
    assert!(status::has(&newer, "b") && !status::has(&newer, "c"));
}

#[test]
fn directories_of_a_disk() {
    for path in ["/linux", "linux", "/linux/", "//linux"] {
        assert_eq!(directory(path).unwrap(), Path::new("linux"), "{path}");
    }
    assert_eq!(directory("/roots/one").unwrap(), Path::new("roots/one"));
    for path in ["", "/", ".", "/..", "/linux/../x", "./linux"] {
        assert_eq!(directory(path).unwrap_err().exit_code, 2, "{path}");
    }
}

#[test]
fn programs_have_what_a_machine_has() {
    assert!([0, 128, 256].into_iter().all(|machine| memory_options(machine).is_empty()));
    let options = |machine: u32| memory_options(machine).join(" ");
    assert_eq!(options(512), "--memory 300 --own-memory 48");
    assert_eq!(options(1 << 20), "--memory 4096 --own-memory 256");
    let system = fs::read_to_string(paths::root().join("systems/default.toml")).unwrap();
    assert!(system.contains("memory = \"256 MiB\"\n# Memory of its processes.\ncontiguous = \"4096 MiB\""));
    let program = fs::read_to_string(paths::root().join("user/apps/linux/src/main.rs")).unwrap();
    assert!(program.contains("const MEMORY_MIB: (u32, u32) = (60, 4096);"));
    assert!(program.contains("const OWN_MIB: (u32, u32) = (32, 640);"));
}

#[test]
fn words_of_a_program_are_boot_options() {
    let options = |words: &[&str], others: &str| {
        boot_options(&words.iter().map(|word| word.to_string()).collect::<Vec<String>>(), &[], others)
    };
    assert_eq!(
        options(&["ls", "-l", "/a=b"], "").unwrap(),
        "init=linux args=--boot,--root,/disk/linux,ls,-l,/a=b"
    );
    assert_eq!(
        options(&["sh", "-c", "ls|wc, \u{e9}", "", "100%"], "seed=7").unwrap(),
        "init=linux args=--boot,--root,/disk/linux,--encoded,sh,-c,ls|wc%2c%20%c3%a9,%,100%25"
    );
    let words: Vec<String> = vec!["ls".into()];
    assert_eq!(
        boot_options(&words, &["--strace", "--profile"], "").unwrap(),
        "init=linux args=--boot,--root,/disk/linux,--strace,--profile,ls"
    );
    for others in ["init=shell", "seed=1 args=x"] {
        assert_eq!(options(&["ls"], others).unwrap_err().exit_code, 2, "{others}");
    }
    assert!(options(&["a\0b"], "").is_err());
    let most = 512 - "init=linux args=--boot,--root,/disk/linux, ".len();
    assert!(options(&[&"x".repeat(most)], "").is_ok());
    assert!(options(&[&"x".repeat(most + 1)], "").unwrap_err().message.contains("at the shell"));
    assert!(options(&[&"x".repeat(most)], "pti=off").is_err());
    assert_eq!(encoded("\t~"), "%09~");
    let kernel = fs::read_to_string(paths::root().join("kernel/src/boot.rs")).unwrap();
    assert!(kernel.contains(&format!("pub const COMMAND_LINE_MAX: usize = {COMMAND_LINE_MAX};")));
}

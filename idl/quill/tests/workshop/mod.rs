//! A directory in which a test makes programs of generated code, and runs them.

#![allow(dead_code, reason = "each test file uses its part")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use quill::driver::{self, Compiled};
use quill::kernel::KernelPart;
use quill::session::Options;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A file of `idl/golden/accepted`.
pub fn accepted(file: &str) -> PathBuf {
    root().join("../golden/accepted").join(file)
}

/// The interface files of `idl/golden/accepted`.
pub fn all_accepted() -> Vec<String> {
    let files = std::fs::read_dir(accepted("")).unwrap().map(|entry| entry.unwrap().file_name());
    let mut files: Vec<String> = files.map(|name| name.into_string().unwrap()).collect();
    files.retain(|name| name.ends_with(".idl"));
    files.sort();
    files
}

/// The C compilers of this host.
pub fn compilers() -> Vec<String> {
    let known = ["gcc", "clang", "clang-14"];
    let has = |compiler: &&&str| Command::new(compiler).arg("--version").output().is_ok();
    let found: Vec<String> = known.iter().filter(has).map(|c| (*c).to_owned()).collect();
    println!("C compilers here: {}", found.join(", "));
    found
}

/// Options for the two files of caption.idl, of which each has its own way to see texts.
pub fn presentations(server: bool, client: bool) -> Vec<String> {
    let of = |side: &str, counted: bool| {
        let header = if counted { "counted.h" } else { "plain.h" };
        [format!("-DCOUNTED_{side}={}", u8::from(counted)), format!("-D{side}_HEADER=\"{header}\"")]
    };
    [of("SERVER", server), of("CLIENT", client)].concat()
}

/// Name in a workshop of the file with system calls.
const SYSTEM_CALLS: &str = "ipc.S";

/// Name in a workshop of the library from which a program takes what it has not of its own: compilers that leave nothing out ask for it.
const LIBRARY: &str = "libtern.a";

/// The directory goes away with it.
pub struct Workshop(PathBuf);

impl Workshop {
    /// With what all programs share.
    pub fn new(name: &str) -> Workshop {
        let dir = std::env::temp_dir().join(format!("quill-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let shop = Workshop(dir);
        ["check.h", "chance.rs", "connect.rs", "on_l4.h", "sockets.h"]
            .iter()
            .for_each(|shared| shop.bring(shared, shared));
        shop
    }

    pub fn path(&self, file: &str) -> PathBuf {
        self.0.join(file)
    }

    /// Puts a program of `programs/` there, or a file from elsewhere.
    pub fn bring(&self, from: &str, to: &str) {
        std::fs::copy(root().join("tests/programs").join(from), self.path(to)).unwrap();
    }

    /// Writes the Rust for an interface.
    pub fn emit(&self, file: &str, kernel: &dyn KernelPart) {
        self.write(file, "rs", &[], |out| out.rust(kernel));
    }

    /// Writes the C for an interface.
    pub fn emit_c(&self, file: &str, kernel: &dyn KernelPart) {
        self.emit_c_with(file, &[], kernel);
    }

    /// Writes the C for an interface if the kernel part can carry it; gives back the header.
    pub fn try_emit_c(&self, file: &str, kernel: &dyn KernelPart) -> Option<String> {
        let mut out = driver::compile(&accepted(file), Options::default()).unwrap();
        let header = out.c(kernel);
        out.accepted().then(|| std::fs::write(self.path(file).with_extension("h"), &header).unwrap())?;
        Some(header)
    }

    /// Writes the C for an interface, with macros.
    pub fn emit_c_with(&self, file: &str, defines: &[&str], kernel: &dyn KernelPart) {
        self.write(file, "h", defines, |out| out.c(kernel));
    }

    /// Writes the C for an interface that is given as text.
    pub fn emit_c_of(&self, file: &str, text: &str, kernel: &dyn KernelPart) {
        let mut out = driver::compile_text(Path::new(file), text.as_bytes(), Options::default());
        let header = out.c(kernel);
        assert!(out.accepted(), "{}", out.messages());
        std::fs::write(self.path(file).with_extension("h"), header).unwrap();
    }

    /// Writes the Rust for an interface that is given as text.
    pub fn emit_rust_of(&self, file: &str, text: &str, kernel: &dyn KernelPart) {
        let mut out = driver::compile_text(Path::new(file), text.as_bytes(), Options::default());
        let code = out.rust(kernel);
        assert!(out.accepted(), "{}", out.messages());
        std::fs::write(self.path(file).with_extension("rs"), code).unwrap();
    }

    /// Writes the C for both presentations of an interface with an attribute file, as `plain.h` and `counted.h`.
    pub fn emit_c_both_ways(&self, file: &str, defines: &[&str], kernel: &dyn KernelPart) {
        let none = self.path("none.acf");
        std::fs::write(&none, "").unwrap();
        for (header, acf) in [("plain.h", Some(none)), ("counted.h", None)] {
            let defines = defines.iter().map(|define| (*define).to_owned()).collect();
            let options = Options { acf, defines, ..Options::default() };
            let mut out = driver::compile(&accepted(file), options).unwrap();
            let text = out.c(kernel);
            assert!(out.accepted(), "{}", out.messages());
            std::fs::write(self.path(header), text).unwrap();
        }
    }

    fn write(&self, file: &str, extension: &str, defines: &[&str], emit: impl Fn(&mut Compiled) -> String) {
        let emit = || {
            let defines = defines.iter().map(|define| (*define).to_owned()).collect();
            let options = Options { defines, ..Options::default() };
            let mut out = driver::compile(&accepted(file), options).unwrap();
            let text = emit(&mut out);
            assert!(out.accepted(), "{}", out.messages());
            text
        };
        let text = emit();
        assert_eq!(text, emit(), "the output depends on something besides its input");
        std::fs::write(self.path(file).with_extension(extension), text).unwrap();
    }

    /// Brings the header of Tern's C library, how it makes system calls, and its numbers of door identifiers, with which programs are then linked.
    pub fn bring_tern(&self) {
        self.bring("../../../../user/lib/c/include/tern.h", "tern.h");
        self.bring("../../../../user/lib/c/lib/ipc.S", SYSTEM_CALLS);
        self.bring("../../../../user/lib/c/lib/numbers.c", "library.c");
        self.tool("gcc", &["-c", "-O1", "-I.", "-o", "library.o", "library.c"]);
        self.tool("ar", &["rcs", LIBRARY, "library.o"]);
    }

    pub fn rustc(&self, arguments: &[&str]) {
        let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into());
        let strict =
            ["--edition", "2024", "-D", "warnings", "-C", "debug-assertions=on", "-C", "opt-level=1"];
        self.tool(&rustc, &[&strict[..], arguments].concat());
    }

    pub fn tool(&self, tool: &str, arguments: &[&str]) {
        self.try_tool(tool, arguments).unwrap_or_else(|why| panic!("{tool} {}: {why}", arguments.join(" ")));
    }

    pub fn try_tool(&self, tool: &str, arguments: &[&str]) -> Result<(), String> {
        let mut command = Command::new(tool);
        command.args(arguments).current_dir(&self.0);
        let links =
            !arguments.iter().any(|argument| ["-S", "-c", "-fsyntax-only", "--edition"].contains(argument));
        if links && self.path(LIBRARY).exists() {
            command.args(["-I.", SYSTEM_CALLS, LIBRARY]);
        }
        let out = command.output().unwrap();
        if out.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&out.stderr).into_owned()) }
    }

    pub fn run(&self, program: &str) {
        let out = Command::new(self.path(program)).current_dir(&self.0).output().unwrap();
        println!("{}", told(&out));
        assert!(out.status.success(), "{}", told(&out));
    }

    /// Runs two programs that meet at a socket; both must end well.
    pub fn together<const N: usize, const M: usize>(&self, one: [&str; N], other: [&str; M]) {
        let _ = std::fs::remove_file(self.path("socket"));
        let start = |words: &[&str]| {
            let mut command = Command::new(self.path(words[0]));
            command.args(&words[1..]).current_dir(&self.0);
            command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
            command.spawn().unwrap()
        };
        let (first, second) = (start(&one), start(&other));
        let second = second.wait_with_output().unwrap();
        assert!(second.status.success(), "{other:?}: {}", told(&second));
        let first = first.wait_with_output().unwrap();
        assert!(first.status.success(), "{one:?}: {}", told(&first));
    }
}

fn told(out: &Output) -> String {
    String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr)
}

impl Drop for Workshop {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

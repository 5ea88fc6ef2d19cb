//! Projects in C are built with stubs and what `quill support` prints: with CMake, Meson and pkg-config, as far as these are here. The program
//! is built once more when a file changes that an interface file includes.

use std::path::{Path, PathBuf};
use std::process::Command;

const QUILL: &str = env!("CARGO_BIN_EXE_quill");

/// A project in a directory that goes away with it.
struct Project(PathBuf);

impl Project {
    /// An interface, what it includes from a directory with a space in its name, and a program that prints a constant of it.
    fn new(name: &str) -> Project {
        let dir = std::env::temp_dir().join(format!("quill-support-{name}-{}", std::process::id()));
        std::fs::create_dir_all(dir.join("more idl")).unwrap();
        let project = Project(dir);
        project
            .write("counter.idl", "#include <limits.idl>\ninterface Counter { long add(in long more); };\n");
        project.write("clock.idl", "#ifdef LATE\nconst long HOUR = 23;\n#endif\n");
        project.limit(5);
        project.write(
            "main.c",
            "#include \"clock.h\"\n#include \"counter.h\"\n#include <stdio.h>\n\
             int main(void) { printf(\"%d %d %d\\n\", (int)LIMIT, (int)HOUR, Counter_add == NULL); return 0; }\n",
        );
        project
    }

    fn limit(&self, limit: u32) {
        self.write("more idl/limits.idl", &format!("const long LIMIT = {limit};\n"));
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.join(file)
    }

    fn write(&self, file: &str, text: &str) {
        std::fs::write(self.path(file), text).unwrap();
    }

    /// Puts there what quill prints for a build system.
    fn support(&self, system: &str, file: &str) {
        let out = Command::new(QUILL).args(["support", system]).output().unwrap();
        assert!(out.status.success());
        self.write(file, &String::from_utf8(out.stdout).unwrap());
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&self.0);
        command.env_remove("MAKEFLAGS").env_remove("MAKELEVEL");
        command
    }

    fn tool(&self, program: &str, arguments: &[&str]) -> String {
        self.output(&mut self.command(program, arguments))
    }

    fn output(&self, command: &mut Command) -> String {
        let out = command.output().unwrap();
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        assert!(out.status.success(), "{command:?}: {text}{}", String::from_utf8_lossy(&out.stderr));
        text
    }

    /// Waits until a file that is written now is newer than all others, as build systems see it.
    fn later(&self) {
        std::thread::sleep(std::time::Duration::from_millis(1100));
    }
}

impl Drop for Project {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn is_here(tool: &str) -> bool {
    let is_here = Command::new(tool).arg("--version").output().is_ok();
    if !is_here {
        println!("there is no {tool} here");
    }
    is_here
}

#[test]
fn a_project_is_built_with_cmake() {
    if !is_here("cmake") {
        return;
    }
    for (generator, tool) in [("Unix Makefiles", "make"), ("Ninja", "ninja")] {
        if !is_here(tool) {
            continue;
        }
        let project = Project::new(tool);
        project.support("cmake", "QuillConfig.cmake");
        project.write(
            "CMakeLists.txt",
            "cmake_minimum_required(VERSION 3.20)\nproject(counter C)\nfind_package(Quill REQUIRED)\n\
             quill_stubs(stubs FILES counter.idl clock.idl KERNEL linux INCLUDE \"more idl\" DEFINE LATE)\n\
             add_executable(program main.c)\ntarget_link_libraries(program PRIVATE stubs)\n",
        );
        let dir = format!("-DQuill_DIR={}", project.0.display());
        let quill = format!("-DQUILL_EXECUTABLE={QUILL}");
        project.tool("cmake", &["-G", generator, "-B", "build", &dir, &quill]);
        let build = || project.tool("cmake", &["--build", "build"]);
        let program = project.path("build/program");
        build();
        assert_eq!(project.tool(program.to_str().unwrap(), &[]), "5 23 0\n");
        project.later();
        project.limit(6);
        build();
        assert_eq!(project.tool(program.to_str().unwrap(), &[]), "6 23 0\n", "{generator}");
        assert!(!build().contains("Making stubs"), "{generator}: nothing has changed");
    }
}

#[test]
fn a_mistake_in_an_interface_ends_the_build() {
    if !is_here("cmake") || !is_here("make") {
        return;
    }
    let project = Project::new("mistake");
    project.support("cmake", "QuillConfig.cmake");
    project.write(
        "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.20)\nproject(counter C)\nfind_package(Quill REQUIRED)\n\
         quill_stubs(stubs FILES counter.idl)\nadd_executable(program main.c)\ntarget_link_libraries(program PRIVATE stubs)\n",
    );
    let dir = format!("-DQuill_DIR={}", project.0.display());
    let quill = format!("-DQUILL_EXECUTABLE={QUILL}");
    project.tool("cmake", &["-B", "build", &dir, &quill]);
    // It includes what nobody has said the directory of.
    let out = project.command("cmake", &["--build", "build"]).output().unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
    assert!(!out.status.success() && text.contains("counter.idl:1"), "{text}");
}

#[test]
fn a_project_is_built_with_meson() {
    if !is_here("meson") || !is_here("ninja") {
        return;
    }
    let project = Project::new("meson");
    std::fs::create_dir_all(project.path("quill")).unwrap();
    project.support("meson", "quill/meson.build");
    project.write(
        "meson.build",
        "project('counter', 'c')\nsubdir('quill')\nheaders = quill_c.process('counter.idl', 'clock.idl', \
         extra_args: ['-I', meson.current_source_dir() / 'more idl', '-D', 'LATE'])\nexecutable('program', 'main.c', headers)\n",
    );
    let beside = Path::new(QUILL).parent().unwrap().to_str().unwrap();
    let path = format!("{beside}:{}", std::env::var("PATH").unwrap_or_default());
    project.output(project.command("meson", &["setup", "build"]).env("PATH", &path));
    let program = project.path("build/program");
    for limit in [5, 6] {
        project.limit(limit);
        project.output(project.command("ninja", &["-C", "build"]).env("PATH", &path));
        assert_eq!(project.tool(program.to_str().unwrap(), &[]), format!("{limit} 23 0\n"));
        project.later();
    }
}

#[test]
fn a_project_is_built_with_make_and_pkg_config() {
    if !is_here("pkg-config") || !is_here("make") {
        return;
    }
    let project = Project::new("pkg-config");
    project.support("pkg-config", "quill.pc");
    let dir = project.0.to_str().unwrap();
    let pkg_config = |arguments: &[&str]| {
        project.output(project.command("pkg-config", arguments).env("PKG_CONFIG_PATH", dir)).trim().to_owned()
    };
    assert_eq!(pkg_config(&["--variable=quill", "quill"]), QUILL);
    assert_eq!(pkg_config(&["--modversion", "quill"]), env!("CARGO_PKG_VERSION"));
    assert_eq!(pkg_config(&["--cflags", "--libs", "quill"]), "");
    // The rule that the file shows, and what this project has besides.
    project.write(
        "Makefile",
        "QUILL := $(shell pkg-config --variable=quill quill)\nprogram: main.c counter.h clock.h\n\t$(CC) -o $@ main.c\n\
         %.h: %.idl\n\t$(QUILL) -I 'more idl' -D LATE --emit c -o $(@D) --depfile $*.d $<\n-include *.d\n",
    );
    for limit in [5, 6] {
        project.limit(limit);
        project.output(project.command("make", &[]).env("PKG_CONFIG_PATH", dir));
        assert_eq!(project.tool("./program", &[]), format!("{limit} 23 0\n"));
        project.later();
    }
}

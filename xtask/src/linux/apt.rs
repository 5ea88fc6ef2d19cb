//! Debian's packages, by the host's own apt: it knows which there are, what they need, and where they come from.
//!
//! apt is asked as if the root of Linux were the machine, with the packages that are installed there and no others. So a first one needs all
//! packages down to the C library, and a later one only those that are missing. The host's own packages are neither looked at nor changed.

use crate::paths::{self, Scratch};
use crate::{Context, Error, Result, interrupt, tools};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Options of each call. Tern runs on x86-64, whatever the host is; and who fetches packages for himself need not be guarded from them.
const OPTIONS: [&str; 4] = [
    "APT::Architecture=amd64",
    "APT::Architectures=amd64",
    "APT::Install-Recommends=false",
    "APT::Sandbox::User=root",
];

/// A package of a version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Architecture that it is for, or `all`.
    pub architecture: String,
}

impl Package {
    /// Name of its file.
    fn file_name(&self) -> String {
        format!("{}_{}_{}.deb", self.name, self.version.replace(':', "%3a"), self.architecture)
    }
}

/// The host's apt, and a folder for what it fetches.
#[derive(Debug)]
pub struct Apt {
    folder: PathBuf,
    /// A configuration file of its own, for tests.
    configuration: Option<PathBuf>,
}

impl Apt {
    /// The host's apt, with its own configuration.
    pub fn new(folder: PathBuf) -> Apt {
        Apt { folder, configuration: None }
    }

    /// An apt that does what this file says.
    #[cfg(test)]
    pub fn configured(folder: PathBuf, configuration: PathBuf) -> Apt {
        Apt { folder, configuration: Some(configuration) }
    }

    /// Packages of these names and all that they need, without those that are installed and not named.
    pub fn resolve(&self, names: &[String], status: &str) -> Result<Vec<Package>> {
        if let Some(name) = names.iter().find(|name| !is_name(name)) {
            return Err(Error::usage(format!("{name:?} is no name of a package")));
        }
        let scratch = Scratch::create("apt")?;
        let file = scratch.0.join("status");
        paths::write(&file, status.as_bytes())?;
        let mut command = self.command("apt-get")?;
        command.arg("-o").arg(format!("Dir::State::status={}", file.display()));
        command.args(["--simulate", "--reinstall", "--no-remove", "install"]).args(names);
        let said = perform(&mut command)?;
        let packages: Vec<Package> = said.lines().filter_map(package).collect();
        // apt takes a name that it does not know for a pattern, if there is a dot in it.
        let is_found = |name: &&String| {
            packages.iter().any(|package| package.name == **name)
                || said.contains(&format!(" instead of '{name}'"))
        };
        match names.iter().find(|name| !is_found(name)) {
            Some(name) => Err(Error::new(no_package(name))),
            None => Ok(packages),
        }
    }

    /// Files of packages: those that were fetched before, and the others.
    pub fn fetch(&self, packages: &[Package]) -> Result<Vec<PathBuf>> {
        let folder = paths::create(&self.folder.join("packages"))?;
        let missing: Vec<&Package> =
            packages.iter().filter(|package| !folder.join(package.file_name()).is_file()).collect();
        if !missing.is_empty() {
            self.download(&missing, &folder)?;
        }
        Ok(packages.iter().map(|package| folder.join(package.file_name())).collect())
    }

    /// Files of packages that were all fetched before; else the first one that was not.
    pub fn kept(&self, packages: &[Package]) -> Result<Vec<PathBuf>> {
        let folder = self.folder.join("packages");
        let files: Vec<PathBuf> = packages.iter().map(|package| folder.join(package.file_name())).collect();
        match packages.iter().zip(&files).find(|(_, file)| !file.is_file()) {
            Some((Package { name, version, .. }, _)) => {
                Err(Error::new(format!("{name} {version} was not fetched")))
            }
            None => Ok(files),
        }
    }

    /// Downloads packages. Only what is there as a whole gets its name.
    fn download(&self, packages: &[&Package], folder: &Path) -> Result<()> {
        let versions: Vec<String> =
            packages.iter().map(|package| format!("{}={}", package.name, package.version)).collect();
        tools::download_allowed(&format!("apt-get download {}", versions.join(" ")))?;
        eprintln!("tern: fetching packages: {}", versions.join(" "));
        let scratch = Scratch::create("packages")?;
        let mut command = self.command("apt-get")?;
        perform(command.current_dir(&scratch.0).arg("download").args(&versions))?;
        for entry in fs::read_dir(&scratch.0).context(|| "read what was fetched".into())? {
            let path = entry.context(|| "read what was fetched".into())?.path();
            let control = control(&path)?;
            let field = |name| field(&control, name).unwrap_or_default().to_string();
            let (name, version, architecture) = (field("Package"), field("Version"), field("Architecture"));
            let package = Package { name, version, architecture };
            if packages.contains(&&package) {
                // From a source that is a folder of the host comes a link.
                let whole = scratch.0.join("whole");
                fs::copy(&path, &whole)
                    .and_then(|_| fs::rename(&whole, folder.join(package.file_name())))
                    .context(|| format!("keep {}", path.display()))?;
            }
        }
        match packages.iter().find(|package| !folder.join(package.file_name()).is_file()) {
            Some(package) => {
                Err(Error::new(format!("apt-get did not fetch {} {}", package.name, package.version)))
            }
            None => Ok(()),
        }
    }

    fn command(&self, program: &str) -> Result<Command> {
        for needed in [program, "dpkg-deb"] {
            if paths::find_program(needed).is_none() {
                return Err(Error::new(format!(
                    "there is no {needed} here: packages come by that of Debian, or of a system like it"
                )));
            }
        }
        let caches = paths::create(&self.folder.join("apt"))?;
        let mut command = Command::new(program);
        command.env("LC_ALL", "C").arg("--quiet");
        command.envs(self.configuration.iter().map(|file| ("APT_CONFIG", file)));
        command.args(OPTIONS.iter().flat_map(|option| ["-o", option]));
        command.arg("-o").arg(format!("Dir::Cache={}", caches.display()));
        Ok(command)
    }
}

/// Whether a word can be a package's name. apt has a meaning of its own for words with other characters.
fn is_name(word: &str) -> bool {
    let is_inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+-.".contains(&byte);
    let begins = word.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    begins && word.len() >= 2 && !word.ends_with('-') && word.bytes().all(is_inside)
}

/// The package that a line of a simulation installs: `Inst NAME [OLD] (VERSION ORIGIN [ARCHITECTURE])`.
pub(super) fn package(line: &str) -> Option<Package> {
    let (name, rest) = line.strip_prefix("Inst ")?.split_once(' ')?;
    let inside = rest.split_once('(')?.1.split(')').next()?;
    let (version, rest) = inside.split_once(' ')?;
    let architecture = rest.rsplit_once('[')?.1.strip_suffix(']')?;
    let [name, version, architecture] = [name, version, architecture].map(str::to_string);
    Some(Package { name, version, architecture })
}

/// Stanza of fields in which a package describes itself.
pub fn control(archive: &Path) -> Result<String> {
    let mut command = Command::new("dpkg-deb");
    perform(command.env("LC_ALL", "C").arg("--field").arg(archive))
}

/// The value of a field of a stanza that has one line.
pub fn field<'a>(stanza: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = stanza.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(field, _)| *field == name).map(|(_, value)| value.trim())
}

/// Runs a command to its end, and gives back all that it prints.
pub fn output(command: &mut Command) -> Result<Output> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    interrupt::output(interrupt::spawn(command)?)
}

/// Runs a command that must succeed; its standard output.
fn perform(command: &mut Command) -> Result<String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = output(command)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let [said, complaints] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    Err(Error::new(reason(&program, &said, &complaints)))
}

/// Why apt or dpkg failed, in a line. apt says on standard output what a package needs and cannot get.
pub(super) fn reason(program: &str, said: &str, complaints: &str) -> String {
    let mut said = said.lines().skip_while(|line| !line.contains("have unmet dependencies"));
    if let Some(needs) = said.nth(1) {
        let words: Vec<&str> = needs.split_whitespace().collect();
        return format!("{program}: {}", words.join(" "));
    }
    let errors: Vec<&str> = complaints.lines().filter_map(|line| line.strip_prefix("E: ")).collect();
    if let Some(name) = errors.iter().find_map(|error| error.strip_prefix("Unable to locate package ")) {
        return no_package(name);
    }
    let last = complaints.trim().lines().next_back().unwrap_or("it gave no reason");
    let why = if errors.is_empty() { last.to_string() } else { errors.join("; ") };
    format!("{program}: {}", why.trim_start_matches(&format!("{program}: ")))
}

fn no_package(name: &str) -> String {
    format!("apt knows no package {name} (apt-get update renews what it knows)")
}

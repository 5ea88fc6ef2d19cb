//! Describes the emulated computer: what it boots, how large it is, what is plugged in.

use crate::build::System;
use crate::{Error, Result, paths};
use std::path::PathBuf;
use std::process::Command;

/// The emulator.
pub const QEMU: &str = "qemu-system-x86_64";

/// Memory unless something else is asked for, in MiB.
pub const MEMORY_MIB: u32 = 256;

/// Where a debugger connects. Loopback only: whoever connects owns the guest.
pub const GDB_ADDRESS: &str = "127.0.0.1:1234";

/// The kinds of computer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// The classic PC.
    Pc,
    /// A PC with PCI Express, and an IOMMU.
    Q35,
    /// A small machine without PCI.
    Microvm,
}

/// Device that a disk is behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum DiskAs {
    /// A virtio device of its own.
    Virtio,
    /// An AHCI controller: that of `q35`, or one that is plugged in.
    Ahci,
}

/// A port of the host's loopback interface that leads to one of the guest's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forward {
    /// The host's; 0 is any that is free.
    pub host: u16,
    /// The guest's.
    pub guest: u16,
}

impl std::str::FromStr for Forward {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Forward, String> {
        let port = |text: &str| text.parse::<u16>().ok();
        let ports = text.split_once(':').and_then(|(host, guest)| Some((port(host)?, port(guest)?)));
        let (host, guest) =
            ports.filter(|&(_, guest)| guest > 0).ok_or("expected two ports, such as 8080:80")?;
        Ok(Forward { host, guest })
    }
}

/// Medium that a machine starts from.
#[derive(Clone, Debug)]
pub enum Boot {
    /// Kernel and archive directly.
    Direct {
        /// The kernel's ELF file.
        kernel: PathBuf,
        /// The boot archive; without one the kernel refuses to start.
        archive: Option<PathBuf>,
    },
    /// A CD image, by the PC's BIOS.
    BiosDisc(PathBuf),
    /// A CD image, by UEFI firmware.
    UefiDisc {
        /// The image.
        disc: PathBuf,
        /// The firmware.
        firmware: PathBuf,
    },
}

/// An emulated computer.
#[derive(Clone, Debug)]
pub struct Machine {
    /// Medium that it starts from.
    pub boot: Boot,
    /// Boot options, `key=value` words. Discs carry their own.
    pub options: Vec<String>,
    /// Its kind.
    pub kind: Kind,
    /// Memory in MiB.
    pub memory_mib: u32,
    /// Number of processors.
    pub cpus: u32,
    /// Model of the processor.
    pub cpu: String,
    /// Wait for a debugger before the first instruction.
    pub gdb: bool,
    /// Use the host's virtualisation.
    pub kvm: bool,
    /// File that is a disk, byte for byte.
    pub disk: Option<PathBuf>,
    /// Device that it is behind.
    pub disk_as: DiskAs,
    /// A network card, and the port that leads to it.
    pub net: Option<Forward>,
    /// A source of random bytes: the host's, or, in a machine that counts, those of a seed.
    pub entropy: bool,
    /// Unix socket at which the other side of a virtio console is. The emulator makes it.
    pub console: Option<PathBuf>,
    /// Further arguments of the emulator.
    pub extra: Vec<String>,
}

impl Machine {
    /// The usual machine for a system.
    pub fn new(system: &System) -> Machine {
        Machine::booting(Boot::Direct {
            kernel: system.kernel.clone(),
            archive: Some(system.archive.clone()),
        })
    }

    /// The usual machine, started in any way.
    pub fn booting(boot: Boot) -> Machine {
        Machine {
            boot,
            options: Vec::new(),
            kind: Kind::Pc,
            memory_mib: MEMORY_MIB,
            cpus: 1,
            cpu: "max".into(),
            gdb: false,
            kvm: false,
            disk: None,
            disk_as: DiskAs::Virtio,
            net: None,
            entropy: false,
            console: None,
            extra: Vec::new(),
        }
    }

    /// Adds boot options, separated by blanks.
    #[must_use]
    pub fn with(mut self, options: &str) -> Machine {
        self.options.extend(options.split_whitespace().map(str::to_string));
        self
    }

    /// Time is what the machine has executed: one nanosecond for each instruction, the same in every run.
    #[must_use]
    pub fn counting(mut self) -> Machine {
        // Without the two features, `rep` loops are counted as what they do, not as what one model would hide.
        self.cpu = "max,-erms,-fsrm".into();
        let arguments = ["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off"];
        // Random numbers of the processor are the same in every run, too.
        let others = ["-rtc", "base=2000-01-01,clock=vm", "-seed", "1"];
        self.extra.extend(arguments.into_iter().chain(others).map(String::from));
        self
    }

    /// Of a counting machine: time passes as on this machine while nothing is executed. Otherwise it leaps to the next alarm, and a disk that this machine has not asked yet seems to be slow.
    #[must_use]
    pub fn waiting(mut self) -> Machine {
        for argument in &mut self.extra {
            *argument = argument.replace(",sleep=off", ",sleep=on");
        }
        self
    }

    /// The command that emulates it, with the serial line on its standard input and output.
    pub fn command(&self) -> Result<Command> {
        if paths::find_program(QEMU).is_none() {
            return Err(Error::new(format!("{QEMU} is not installed (apt-get install qemu-system-x86)")));
        }
        let mut command = supervised(QEMU);
        command
            .args(["-nodefaults", "-display", "none", "-no-reboot", "-monitor", "none"])
            .args(["-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"])
            .args(["-device", "isa-debug-exit,iobase=0xf4,iosize=4"])
            .args(["-machine", self.machine(), "-cpu", &self.cpu])
            .args(["-m", &self.memory_mib.to_string(), "-smp", &self.cpus.to_string()]);
        if self.kind == Kind::Q35 {
            // Before all devices that are behind it. It keeps them from memory; what it could do with interrupts nobody uses.
            command.args(["-device", "intel-iommu,intremap=off"]);
        }
        if self.gdb {
            command.args(["-S", "-gdb", &format!("tcp:{GDB_ADDRESS}")]);
        }
        if self.kvm {
            command.args(["-accel", "kvm"]);
        } else if !self.extra.iter().any(|argument| argument == "-accel") {
            command.args(["-accel", "tcg"]);
        }
        self.add_boot(&mut command);
        if let Some(disk) = &self.disk {
            // A comma ends a value, and two are one that does not.
            let file = disk.display().to_string().replace(',', ",,");
            command.args(["-drive", &format!("if=none,id=disk,format=raw,file={file}")]);
            for device in self.disk_devices() {
                command.args(["-device", &device]);
            }
        }
        if let Some(Forward { host, guest }) = self.net {
            // Restricted: the card reaches the emulator's own servers, and nothing else. Forwarding listens on loopback only.
            let forward = format!("hostfwd=tcp:127.0.0.1:{host}-:{guest}");
            command.args(["-netdev", &format!("user,id=net,restrict=on,{forward}")]);
            command.args(["-device", &self.virtio("virtio-net-pci,netdev=net")]);
        }
        if self.entropy {
            command.args(["-object", "rng-builtin,id=entropy"]);
            command.args(["-device", &self.virtio("virtio-rng-pci,rng=entropy")]);
        }
        if let Some(socket) = &self.console {
            let path = socket.display().to_string().replace(',', ",,");
            // It waits for nobody: until somebody connects, bytes that are sent are lost, as on a line without anybody.
            command.args(["-chardev", &format!("socket,id=line,path={path},server=on,wait=off")]);
            command.args(["-device", &self.virtio("virtio-serial-pci,max_ports=1")]);
            command.args(["-device", "virtconsole,chardev=line"]);
        }
        command.args(&self.extra);
        Ok(command)
    }

    /// The devices of a disk.
    fn disk_devices(&self) -> Vec<String> {
        match (self.disk_as, self.kind) {
            (DiskAs::Virtio, _) => vec![self.virtio("virtio-blk-pci,drive=disk")],
            (DiskAs::Ahci, Kind::Q35) => vec!["ide-hd,drive=disk,bus=ide.0".into()],
            (DiskAs::Ahci, Kind::Pc | Kind::Microvm) => {
                vec!["ahci,id=ahci".into(), "ide-hd,drive=disk,bus=ahci.0".into()]
            }
        }
    }

    /// A virtio device, which the emulator lets past the IOMMU unless it is told otherwise.
    pub fn virtio(&self, device: &str) -> String {
        let platform = if self.kind == Kind::Q35 { ",iommu_platform=on" } else { "" };
        format!("{device},disable-legacy=on{platform}")
    }

    fn machine(&self) -> &'static str {
        match self.kind {
            Kind::Pc => "pc",
            Kind::Q35 => "q35",
            Kind::Microvm => "microvm,isa-serial=on,pit=on,pic=on,rtc=on",
        }
    }

    fn add_boot(&self, command: &mut Command) {
        match &self.boot {
            Boot::Direct { kernel, archive } => {
                command.arg("-kernel").arg(kernel).arg("-append").arg(self.options.join(" "));
                if let Some(archive) = archive {
                    command.arg("-initrd").arg(archive);
                }
            }
            Boot::BiosDisc(disc) => {
                command.arg("-cdrom").arg(disc);
            }
            Boot::UefiDisc { disc, firmware } => {
                command.arg("-cdrom").arg(disc).arg("-bios").arg(firmware);
            }
        }
    }
}

/// A command that the kernel kills when this tool dies, however it dies.
pub fn supervised(program: &str) -> Command {
    if paths::find_program("setpriv").is_none() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--", program]);
    command
}

//! The QEMU command line of a guest.

use std::path::PathBuf;
use std::process::Command;

use super::emulator::Emulator;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    /// Counts instructions: one guest instruction is one nanosecond of guest time, on one CPU and reproducibly: all that the guest reads
    /// is in its memory from the start, since a drive answers when the host gets to it.
    pub icount: bool,
    /// A plugin of the emulator with its arguments, as QEMU takes them.
    pub plugin: Option<String>,
    /// Shows the guest a CPU with ERMS and FSRM, so that it copies with `rep movsb`, each byte of which the emulator counts.
    pub erms: bool,
    /// Virtual CPUs; counting instructions allows one.
    pub cpus: u32,
    pub memory_mib: u32,
    /// More words for the kernel's command line.
    pub append: String,
}

impl Default for Machine {
    fn default() -> Self {
        Self {
            icount: false,
            plugin: None,
            erms: true,
            cpus: 2,
            memory_mib: 3072,
            append: String::new(),
        }
    }
}

pub struct Files {
    pub kernel: PathBuf,
    /// The first file system.
    pub initramfs: PathBuf,
    /// Read-only disks, then writable ones: /dev/vda, vdb and so on in this order.
    pub disks: Vec<(PathBuf, Access)>,
    /// The file of the kernel's own messages.
    pub console: PathBuf,
    /// The file of a third serial line, for a guest without a disk to leave its files on.
    pub out: Option<PathBuf>,
}

/// The right of the guest to write to a disk.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Read,
    /// Yes; the file is thrown away afterwards, so nothing is ever flushed.
    Write,
}

/// The target of the second serial line, to which the guest's command writes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Terminal {
    /// Standard output only.
    Output,
    /// The person's terminal.
    Interactive,
}

pub fn command(
    emulator: &Emulator,
    machine: &Machine,
    files: &Files,
    terminal: Terminal,
) -> Command {
    let mut command = emulator.command();
    command.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
    // From 7.2 on the newest machine gives the kernel a random seed, whatever `-seed` says. Firmware waits for SATA as for any drive.
    let board = if machine.icount { "pc-q35-7.1,sata=off" } else { "q35" };
    command.args(["-machine", board, "-m", &machine.memory_mib.to_string()]);
    command.args(processor(machine));
    if let Some(plugin) = &machine.plugin {
        command.args(["-plugin", plugin]);
    }
    command.arg("-kernel").arg(&files.kernel).arg("-initrd").arg(&files.initramfs);
    command.args(["-append", &kernel_arguments(machine)]);
    for (position, (path, access)) in files.disks.iter().enumerate() {
        let access = match access {
            Access::Read => "readonly=on",
            Access::Write => "cache=unsafe",
        };
        // A comma in a path is doubled for QEMU's option parser.
        let path = path.display().to_string().replace(',', ",,");
        command
            .args(["-drive", &format!("if=none,id=d{position},format=raw,{access},file={path}")]);
        command.args(["-device", &format!("virtio-blk-pci,drive=d{position}")]);
    }
    let console = files.console.display().to_string().replace(',', ",,");
    command.args(["-chardev", &format!("file,id=console,path={console}")]);
    command.args(["-serial", "chardev:console"]);
    let signal = if terminal == Terminal::Interactive { "off" } else { "on" };
    command.args(["-chardev", &format!("stdio,id=command,signal={signal}")]);
    command.args(["-serial", "chardev:command"]);
    if let Some(out) = &files.out {
        let out = out.display().to_string().replace(',', ",,");
        command.args(["-chardev", &format!("file,id=out,path={out}")]);
        command.args(["-serial", "chardev:out"]);
    }
    command
}

fn processor(machine: &Machine) -> Vec<String> {
    let mut model = String::from("max");
    let mut words = Vec::new();
    if machine.icount {
        // Random numbers and the time of day would make two runs differ.
        model.push_str(",-rdrand,-rdseed");
        words.extend(["-icount", "shift=0,sleep=off", "-rtc"].map(str::to_owned));
        words.push(format!("base={FIXED_DATE},clock=vm"));
        words.extend(["-smp", "1", "-accel", "tcg"].map(str::to_owned));
    } else {
        words.extend(["-rtc", "base=utc", "-smp"].map(str::to_owned));
        words.push(machine.cpus.to_string());
        // Emulation even where KVM seems to be there: a nested host may offer it and still not run a stock kernel.
        words.extend(["-accel", "tcg,thread=multi"].map(str::to_owned));
    }
    if !machine.erms {
        model.push_str(",-erms,-fsrm");
    }
    words.extend(["-cpu".to_owned(), model]);
    words
}

fn kernel_arguments(machine: &Machine) -> String {
    // An oops is a failure to see, not to survive, and a panic ends the machine.
    let mut words = vec!["console=ttyS0 quiet loglevel=4 oops=panic panic=-1"];
    words.push(if machine.icount {
        "nokaslr norandmaps random.trust_cpu=off"
    } else {
        "random.trust_cpu=on"
    });
    if !machine.append.is_empty() {
        words.push(&machine.append);
    }
    words.join(" ")
}

/// The guest's date when instructions are counted.
const FIXED_DATE: &str = "2027-01-01T00:00:00";

#[cfg(test)]
mod tests;

//! One run of a guest: a disk with the files it is given, the command, its output live, its exit status, and the files it left
//! in `/out`.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::cache::Cache;
use super::emulator::Emulator;
use super::image::Image;
use super::kernel::Kernel;
use super::qemu::{self, Access, Files, Machine, Terminal};
use super::{busybox, disk, initramfs, modules};
use crate::files::{self, Temporary, create_folder, remove_folder};
use crate::process::{self, Exit};

pub struct Guest {
    pub kernel: Kernel,
    pub image: Image,
    pub machine: Machine,
    /// Host files and folders that appear in `/kettle`, each under the given name.
    pub files: Vec<(PathBuf, String)>,
    /// More environment variables for the command.
    pub environment: Vec<(String, String)>,
    /// The program and its arguments. An empty one gives a shell on the terminal.
    pub command: Vec<String>,
    /// The folder on the host for the content of `/out`.
    pub out: PathBuf,
    /// The guest is killed when this has passed.
    pub limit: Duration,
}

pub struct Report {
    /// The command's exit status; none if the guest crashed or was killed at its limit.
    pub status: Option<i32>,
    /// Why there is no status.
    pub failure: Option<String>,
    /// True if that is because the kernel died.
    pub has_died: bool,
    /// The complaints of the kernel: a warning of its own code is a finding, even if every test passed.
    pub complaints: Vec<String>,
    pub took: Duration,
}

impl Report {
    /// Returns the reason that kept the command from ending well.
    pub fn into_result(self) -> Result<(), String> {
        match (self.status, self.failure) {
            (Some(0), _) => Ok(()),
            (Some(status), _) => Err(format!("in the guest it ended with {status}")),
            (None, failure) => Err(failure.unwrap_or_default()),
        }
    }
}

impl Guest {
    /// Runs the guest, copies its output to `shown` and hands each line of it to `on_line`.
    pub fn run(
        &self,
        cache: &Cache,
        shown: &mut dyn Write,
        on_line: &mut dyn FnMut(&str),
    ) -> Result<Report, String> {
        let started = Instant::now();
        let boot = self.kernel.obtain(cache)?;
        let image = self.image.obtain(cache)?;
        let work = Temporary::of_run()?;
        self.lay_out(&work.path("files"))?;
        disk::build(&work.path("files"), &work.path("files.ext4"))?;
        let read = [image, boot.modules_disk, work.path("files.ext4")];
        let (boot_modules, in_memory, disks) = if self.machine.icount {
            let modules = modules::for_disks_in_memory(
                &boot.boot_modules,
                &read[1],
                &boot.release,
                &work.path("loop"),
            )?;
            (modules, Some(read.as_slice()), Vec::new())
        } else {
            disk::build_raw(&work.path("out.tar"), OUT_BYTES)?;
            disk::build_empty(&work.path("scratch.ext4"), SCRATCH_BYTES)?;
            let mut disks: Vec<_> = read.iter().map(|disk| (disk.clone(), Access::Read)).collect();
            disks.extend(["scratch.ext4", "out.tar"].map(|name| (work.path(name), Access::Write)));
            (boot.boot_modules, None, disks)
        };
        let files = Files {
            kernel: boot.image,
            initramfs: work.path("initramfs"),
            disks,
            console: work.path("console.log"),
            out: in_memory.map(|_| work.path("out.tar")),
        };
        let busybox = busybox::obtain(cache)?;
        initramfs::build(&files.initramfs, &busybox, &boot_modules, in_memory)?;

        let emulator =
            if self.machine.icount { Emulator::OfThisMachine } else { Emulator::obtain(cache)? };
        let command = |terminal| qemu::command(&emulator, &self.machine, &files, terminal);
        let failure = if self.command.is_empty() {
            interact(&mut command(Terminal::Interactive))?
        } else {
            self.follow(&mut command(Terminal::Output), shown, on_line)?
        };
        let (status, complaints) = self.collect(&work)?;
        // A kernel that panics ends its machine, and QEMU ends well.
        let has_died = status.is_none() && failure.is_none();
        let failure = match (status, failure) {
            (Some(_), _) => None,
            (None, reason) => Some(describe_crash(reason, &files.console)),
        };
        Ok(Report { status, failure, has_died, complaints, took: started.elapsed() })
    }

    /// Runs the command without a terminal and says what went wrong with the machine, if something did.
    fn follow(
        &self,
        command: &mut Command,
        shown: &mut dyn Write,
        on_line: &mut dyn FnMut(&str),
    ) -> Result<Option<String>, String> {
        Ok(match process::follow(command, self.limit, shown, on_line)? {
            Exit::Exited(status) if status.success() => None,
            Exit::Exited(status) => Some(format!("QEMU failed ({status})")),
            Exit::TimedOut(_) => Some(format!("killed after {} s", self.limit.as_secs())),
        })
    }

    /// Lays out what the guest sees as `/kettle`.
    fn lay_out(&self, folder: &Path) -> Result<(), String> {
        create_folder(&folder.join("guest"))?;
        for (source, name) in &self.files {
            place(source, &folder.join(name))?;
        }
        files::write(folder.join("guest/start"), self.start_script())
    }

    fn start_script(&self) -> String {
        let mut script = String::from(PROLOGUE);
        for (name, value) in &self.environment {
            script.push_str(&format!("export {name}={}\n", quote(value)));
        }
        if self.command.is_empty() {
            script.push_str("setsid -c bash -i </dev/ttyS1 >/dev/ttyS1 2>&1\n");
        } else {
            script.push_str("stty -F /dev/ttyS1 raw -echo\n");
            let words: Vec<String> = self.command.iter().map(|word| quote(word)).collect();
            script.push_str(&format!("{} </dev/null >/dev/ttyS1 2>&1\n", words.join(" ")));
        }
        script.push_str(EPILOGUE);
        script
    }

    /// Unpacks what the guest left on its last disk. An untouched disk is an empty archive.
    fn collect(&self, work: &Temporary) -> Result<(Option<i32>, Vec<String>), String> {
        remove_folder(&self.out)?;
        create_folder(&self.out)?;
        let unpacked = work.path("unpacked");
        create_folder(&unpacked)?;
        process::run_quietly(
            Command::new("tar")
                .args(["--extract", "--no-same-owner", "--file"])
                .arg(work.path("out.tar"))
                .arg("--directory")
                .arg(&unpacked),
        )?;
        let Ok(status) = fs::read_to_string(unpacked.join("status")) else {
            return Ok((None, Vec::new()));
        };
        for entry in fs::read_dir(unpacked.join("out")).into_iter().flatten().flatten() {
            process::run_quietly(Command::new("cp").arg("-a").arg(entry.path()).arg(&self.out))?;
        }
        let messages = fs::read(unpacked.join("messages")).unwrap_or_default();
        Ok((status.trim().parse().ok(), complaints(&String::from_utf8_lossy(&messages))))
    }
}

/// Puts a file or folder below `target`, by hard links where the file system allows, else by copies.
fn place(source: &Path, target: &Path) -> Result<(), String> {
    let copy = |link: &str| {
        process::run_quietly(
            Command::new("cp").args(["-RL", link]).arg("-T").arg(source).arg(target),
        )
    };
    copy("--link").or_else(|_| copy("--force"))
}

fn interact(command: &mut Command) -> Result<Option<String>, String> {
    let status = command
        .stdin(Stdio::inherit())
        .status()
        .map_err(|error| format!("cannot start QEMU: {error}"))?;
    Ok((!status.success()).then(|| format!("QEMU failed ({status})")))
}

/// The kernel's messages about mistakes of its own. Lockups are left out: a busy host makes an emulated CPU look stuck.
fn complaints(messages: &str) -> Vec<String> {
    messages
        .lines()
        .filter(|line| line.contains("WARNING: ") || line.contains("BUG: "))
        .filter(|line| !line.contains("soft lockup"))
        .map(str::to_owned)
        .collect()
}

fn describe_crash(reason: Option<String>, console: &Path) -> String {
    let text = String::from_utf8_lossy(&fs::read(console).unwrap_or_default()).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    let tail = lines.get(lines.len().saturating_sub(CONSOLE_LINES_SHOWN)..).unwrap_or_default();
    let reason = reason.unwrap_or_else(|| "the guest stopped without a status".into());
    format!("{reason}; its console ended with:\n{}", tail.join("\n"))
}

pub fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

const PROLOGUE: &str = r#"#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 TERM=dumb KETTLE_OUT=/out
mount -t tmpfs tmpfs /run
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
ln -sf /proc/self/fd /dev/fd
ip link set lo up
cat /etc/hostname >/proc/sys/kernel/hostname
ulimit -n 65536
cd /kettle
read -r uptime rest </proc/uptime
echo "guest: Linux $(uname -r), up after $uptime s" >/dev/ttyS1
"#;

const EPILOGUE: &str = r#"echo $? >/status
dmesg >/messages
out=/dev/vde
if [ ! -b $out ]; then
    # A guest whose disks are in its memory has no drive, only a line.
    out=/dev/ttyS2
    stty -F $out raw
fi
tar --create --blocking-factor 1 --directory / status messages out | cat >$out
busybox poweroff -f
"#;

/// The number of those made: stages run beside each other.
const SCRATCH_BYTES: u64 = 8 << 30;
const OUT_BYTES: u64 = 2 << 30;
const CONSOLE_LINES_SHOWN: usize = 40;

#[cfg(test)]
mod tests;

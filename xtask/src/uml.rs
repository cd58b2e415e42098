//! `cargo xtask uml`: User Mode Linux, the quick loop. A kernel with kTLS runs as an ordinary process on this machine's own root file
//! system, read-only, at native speed: right for behaviour, useless for cost. QEMU with stock kernels decides.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use crate::checkout;
use crate::files::{self, Temporary, at, create_folder, remove_folder};
use crate::process::{self, Exit};
use crate::test;
use crate::vm::apt::{self};
use crate::vm::busybox;
use crate::vm::cache::Cache;
use crate::vm::guest::quote;
use crate::vm::modules;

pub fn run(arguments: &[String]) -> Result<ExitCode, String> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let command = match words.as_slice() {
        ["run"] => tests_for_kernels()?,
        ["run", "--", command @ ..] if !command.is_empty() => {
            command.iter().map(|&word| word.to_owned()).collect()
        }
        _ => return Err(USAGE.to_owned()),
    };
    start(&command)
}

/// The tests that run on every kernel, one after the other.
fn tests_for_kernels() -> Result<Vec<String>, String> {
    let programs = test::build(test::Scope::Everything)?;
    let for_kernels = programs.for_kernels();
    let commands = for_kernels.iter().map(|program| {
        let words = program.on_kernels.unwrap_or_default().iter().map(|word| (*word).to_owned());
        [program.path.display().to_string()].into_iter().chain(words).collect()
    });
    let script = format!(
        "export KETTLE_REQUIRE_KTLS=1 KETTLE_GUEST_KERNEL=uml KETTLE_BIN={}; {}",
        quote(&programs.kettle.display().to_string()),
        test::run_each(&commands.collect::<Vec<_>>())
    );
    Ok(vec!["sh".into(), "-c".into(), script])
}

fn start(command: &[String]) -> Result<ExitCode, String> {
    let started = Instant::now();
    let cache = Cache::open()?;
    let uml = obtain(&cache)?;
    let work = Temporary::of_run()?;
    let shared = work.path("shared");
    create_folder(&shared)?;
    let here = std::env::current_dir().map_err(|error| format!("no current folder: {error}"))?;
    let script = work.path("init");
    let text = init_script(&busybox::obtain(&cache)?, &uml, &shared, &here, command);
    files::write(&script, text)?;
    process::run_quietly(Command::new("chmod").arg("+x").arg(&script))?;

    let mut kernel = Command::new(uml.join(PROGRAM));
    kernel.args(ROOT_OF_THIS_MACHINE).arg(format!("init={}", script.display()));
    let console = work.path("console.log");
    follow(&mut kernel, &console, LIMIT, &mut |_| {})?;
    let Ok(status) = fs::read_to_string(shared.join("status")) else {
        return Err(without_success(&console));
    };
    eprintln!("uml: {:.1} s", started.elapsed().as_secs_f64());
    Ok(ExitCode::from(status.trim().parse::<u8>().unwrap_or(u8::MAX)))
}

/// Runs a kernel until it halts, shows what its guest writes to its first terminal, and hands each line of that to `on_line`.
/// The words of the kernel itself go to the file `console`.
pub fn follow(
    kernel: &mut Command,
    console: &Path,
    limit: Duration,
    on_line: &mut dyn FnMut(&str),
) -> Result<(), String> {
    kernel.args(KERNEL_ARGUMENTS);
    kernel.stderr(File::create(console).map_err(|error| at(console, &error))?);
    match process::follow(kernel, limit, &mut std::io::stdout(), on_line)? {
        Exit::Exited(_) => Ok(()),
        Exit::TimedOut(process) => {
            // It leads a session of its own, in which its helper processes would live on.
            let group = format!("-{process}");
            let _ = process::run_quietly(Command::new("kill").args(["-KILL", "--", &group]));
            Err(format!("killed after {} s", limit.as_secs()))
        }
    }
}

/// Why a guest that halted counts for nothing.
pub fn without_success(console: &Path) -> String {
    let said = String::from_utf8_lossy(&fs::read(console).unwrap_or_default()).into_owned();
    format!("User Mode Linux stopped without a status; its kernel said\n{said}")
}

fn obtain(cache: &Cache) -> Result<PathBuf, String> {
    let recipe = format!("{SUITE} {PACKAGE}\n{MODULES:?}\n");
    cache.obtain("uml", &recipe, |folder| {
        eprintln!("uml: downloading {PACKAGE} ({SUITE})");
        let work = folder.join("work");
        let tree = work.join("tree");
        create_folder(&tree.join("lib"))?;
        apt::fetch(PACKAGE, &[SUITE], &tree)?;
        files::rename(tree.join("usr/bin/linux.uml"), folder.join(PROGRAM))?;
        let modules_folder = tree.join("lib/modules");
        fs::rename(tree.join("usr/lib/uml/modules"), &modules_folder)
            .map_err(|error| at(&modules_folder, &error))?;
        let release = modules::index(&tree)?;
        let order = modules::boot_order(&tree, &release, MODULES, &[])?;
        modules::extract(&order, &folder.join(BOOT_MODULES))?;
        remove_folder(&work)
    })
}

/// The script that runs as the kernel's first process. The machine's files are there, read-only; `/tmp` is fresh, except for what
/// the command needs of it.
fn init_script(
    busybox: &Path,
    uml: &Path,
    shared: &Path,
    here: &Path,
    command: &[String],
) -> String {
    let path = |path: &Path| quote(&path.display().to_string());
    let variable = |name: &str| quote(&std::env::var(name).unwrap_or_default());
    let words: Vec<String> = command.iter().map(|word| quote(word)).collect();
    INIT.replace("@busybox@", &path(busybox))
        .replace("@modules@", &path(&uml.join(BOOT_MODULES)))
        .replace("@shared@", &path(shared))
        .replace("@target@", &path(&checkout::target_folder()))
        .replace("@here@", &path(here))
        .replace("@path@", &variable("PATH"))
        .replace("@home@", &variable("HOME"))
        .replace("@command@", &words.join(" "))
}

const USAGE: &str = "\
cargo xtask uml run [-- COMMAND...]    a command under User Mode Linux; without one, the tests that need kTLS";

const SUITE: &str = "bookworm";
const PACKAGE: &str = "user-mode-linux";
const PROGRAM: &str = "linux.uml";
const BOOT_MODULES: &str = "boot-modules";
const LIMIT: Duration = Duration::from_secs(600);

/// Without those after the first the kernel refuses AES-GCM or ChaCha20-Poly1305; it cannot load them by itself here.
const MODULES: &[&str] = &[
    "tls",
    "gcm",
    "ctr",
    "ghash-generic",
    "chacha20poly1305",
    "chacha_generic",
    "poly1305_generic",
];

const ROOT_OF_THIS_MACHINE: &[&str] = &["root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro"];

const KERNEL_ARGUMENTS: &[&str] =
    &["mem=1G", "con=null", "con0=null,fd:2", "con1=fd:0,fd:1", "quiet", "panic=-1"];

const INIT: &str = r#"#!/bin/sh
export PATH=@path@ HOME=@home@ LANG=C.UTF-8 TERM=dumb
busybox=@busybox@
$busybox mount -t proc proc /proc
$busybox mount -t sysfs sys /sys
$busybox mountpoint -q /dev || $busybox mount -t devtmpfs dev /dev
$busybox mkdir -p /dev/pts /dev/shm
$busybox mount -t devpts devpts /dev/pts
$busybox mount -t tmpfs tmpfs /dev/shm
$busybox mount -t tmpfs tmpfs /run
$busybox mkdir /run/shared /run/tmp
$busybox mount -t hostfs -o @shared@ none /run/shared
$busybox mount --bind /tmp /run/tmp
$busybox mount -t tmpfs -o mode=1777 tmpfs /tmp
for folder in @target@ @here@; do
    case "$folder" in
    /tmp/*)
        $busybox mkdir -p "$folder"
        $busybox mount --bind "/run$folder" "$folder"
        ;;
    esac
done
for module in @modules@/*.ko; do
    $busybox insmod "$module"
done
$busybox ip link set lo up
$busybox hostname kettle-guest
$busybox stty -F /dev/tty1 raw -echo
cd @here@
(exec @command@) </dev/null >/dev/tty1 2>&1
echo $? >/run/shared/status
$busybox poweroff -f
"#;

#[cfg(test)]
mod tests;

//! `cargo xtask package systemd`: the Debian package under a real systemd, in a guest of User Mode Linux with a bare Debian of its own:
//! the unit with its sandbox, its folders and its user, and what upgrades and removals do to a running service.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::release::Release;
use super::stage::copy;
use super::{check, deb};
use crate::files::{self, create_folder};
use crate::vm::disk;
use crate::{checkout, process, uml};

pub fn run(release: &Release) -> Result<(), String> {
    let made = deb::make(release)?;
    let work = release.work("check-systemd")?;
    let tree = check::debian("systemd", INCLUDED, &[MODULES])?;
    let root = work.join("root");
    create_folder(&root)?;
    process::run_quietly(Command::new("tar").arg("-C").arg(&root).arg("-xf").arg(tree))?;
    let given = root.join("srv/check");
    for package in &made {
        copy(package, &given.join(package.file_name().unwrap_or_default()))?;
    }
    // The drop-in that is tried is the one people read of.
    copy(&checkout::workspace().join("docs/migrating.md"), &given.join("migrating.md"))?;
    for (file, text) in [("srv/check/run.sh", SCRIPT), ("etc/systemd/system/check.service", UNIT)] {
        files::write(root.join(file), text)?;
    }
    let image = work.join("root.ext4");
    disk::build(&root, &image)?;
    process::run_quietly(Command::new("resize2fs").arg(&image).arg(DISK))?;
    boot(&root, &image, &work.join("console.log"))?;
    println!("systemd: the unit starts, serves, reloads, restarts, stops, is upgraded and purged");
    Ok(())
}

fn boot(root: &Path, image: &Path, console: &Path) -> Result<(), String> {
    let mut kernel = Command::new(root.join("usr/bin/linux.uml"));
    kernel.args(KERNEL_ARGUMENTS).arg(format!("ubd0={}", image.display()));
    let mut is_passed = false;
    uml::follow(&mut kernel, console, LIMIT, &mut |line| is_passed |= line == "check: passed")?;
    if is_passed { Ok(()) } else { Err(uml::without_success(console)) }
}

/// The packages of the guest besides the smallest installation of Debian: the kernel that runs it, and what the script calls.
const INCLUDED: &str = "curl,hitch,kmod,logrotate,openssl,procps,systemd-sysv,user-mode-linux";

/// The kernel's modules where its guest looks for them.
const MODULES: &str = "--customize-hook=ln -sT uml/modules \"$1/usr/lib/modules\" && chroot \"$1\" depmod \"$(ls \"$1/usr/lib/uml/modules\")\"";

const KERNEL_ARGUMENTS: &[&str] = &[
    "root=/dev/ubda",
    "rootfstype=ext4",
    "rw",
    "init=/lib/systemd/systemd",
    "systemd.unit=check.service",
    "systemd.mask=getty.target",
    "systemd.show_status=false",
];

/// Started once the system is up; its end is the system's, without asking the units.
const UNIT: &str = "\
[Unit]
Wants=multi-user.target
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/bin/sh -euc '. /srv/check/run.sh; echo \"check: passed\"'
ExecStopPost=/bin/systemctl poweroff --force --force
StandardOutput=tty
StandardError=tty
TTYPath=/dev/tty1
Environment=SYSTEMD_COLORS=0 SYSTEMD_URLIFY=0
";
const SCRIPT: &str = include_str!("check/systemd.sh");

/// The guest writes to it: logs, an upgrade.
const DISK: &str = "2G";

/// Five minutes of two busy CPUs were enough.
const LIMIT: Duration = Duration::from_secs(1200);

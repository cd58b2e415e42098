//! The Debian packages the test bed needs on this machine: installed when we may, else named in the one line that does it.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use crate::process;

/// Makes sure that every package the tests need is installed, the servers `kettle bench` compares among them.
pub fn ensure() -> Result<(), String> {
    let servers = [PEERS, BEHIND].concat();
    let all = [NEEDED, ARTEFACTS, &servers].concat();
    without_their_services(&servers, || ensure_all(&all))
}

/// Makes sure that these packages are installed.
pub fn ensure_all(needed: &[&'static str]) -> Result<(), String> {
    let missing = missing(needed)?;
    if missing.is_empty() {
        return Ok(());
    }
    if !is_root() {
        return Err(format!(
            "some Debian packages are missing; install them with\n  sudo apt-get install --yes --no-install-recommends {}",
            missing.join(" ")
        ));
    }
    eprintln!("installing {}", missing.join(" "));
    process::run(apt_get().arg("update"))?;
    process::run(apt_get().args(["install", "--yes", "--no-install-recommends"]).args(missing))
}

/// Makes sure that what makes and runs the artefacts of [`Cache`](crate::vm::cache::Cache) is installed.
pub fn ensure_for_artefacts() -> Result<(), String> {
    ensure_all(ARTEFACTS)
}

/// Makes sure that the servers `kettle bench` compares are installed.
pub fn ensure_peers() -> Result<(), String> {
    without_their_services(PEERS, || ensure_all(PEERS))?;
    println!("installed: {}", PEERS.join(", "));
    Ok(())
}

/// Makes sure that these packages are installed, some of which bring servers.
pub fn ensure_servers(needed: &[&'static str]) -> Result<(), String> {
    without_their_services(needed, || ensure_all(needed))
}

/// Debian starts a server when it installs it; those that are new after `install` are stopped again, so that none disturbs a
/// measurement or answers to the network.
fn without_their_services(
    servers: &[&'static str],
    install: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    let new = missing(servers)?;
    install()?;
    let is_systemd = Path::new("/run/systemd/system").is_dir();
    for unit in new.into_iter().filter(|_| is_systemd).filter_map(unit) {
        process::run(Command::new("systemctl").args(["disable", "--now", unit]))?;
    }
    Ok(())
}

/// Returns the unit that systemd starts for a package.
fn unit(package: &str) -> Option<&str> {
    match package {
        "stunnel4" => Some("stunnel.target"),
        "docker-registry" | "haproxy" | "hitch" | "nginx" | "varnish" | "fcgiwrap" | "php-fpm"
        | "postfix" | "postgresql" | "prometheus" => Some(package),
        "mariadb-server" => Some("mariadb"),
        _ => None,
    }
}

fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command.args(["-qq", "-o", "Dpkg::Use-Pty=0"]).env("DEBIAN_FRONTEND", "noninteractive");
    command
}

fn missing(needed: &[&'static str]) -> Result<Vec<&'static str>, String> {
    // The status is of no use: it is a failure as soon as one package is unknown.
    let output = Command::new("dpkg-query")
        .args(["--show", "--showformat", "${Package} ${db:Status-Status}\n"])
        .args(needed)
        .output()
        .map_err(|error| format!("the test bed needs Debian or a relative; dpkg-query: {error}"))?;
    Ok(missing_in(&String::from_utf8_lossy(&output.stdout), needed))
}

fn missing_in(installed: &str, needed: &[&'static str]) -> Vec<&'static str> {
    let is_installed =
        |name: &str| installed.lines().any(|line| line == format!("{name} installed"));
    needed.iter().copied().filter(|name| !is_installed(name)).collect()
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|metadata| metadata.uid() == 0)
}

/// The packages with their purposes: a C compiler for aws-lc; clients and tools the end-to-end tests call; a browser for
/// reports; file systems to serve from; the shells that complete kettle's words.
const NEEDED: &[&str] = &[
    "gcc",
    "libc6-dev",
    "chromium",
    "curl",
    "gnutls-bin",
    "mandoc",
    "nghttp2-client",
    "openssl",
    "fish",
    "procps",
    "python3-h2",
    "python3-httpx",
    "strace",
    "btrfs-progs",
    "squashfs-tools",
    "xfsprogs",
    "zsh",
];

/// The packages with which guests and their kernels are made and run with, and other programs of other releases of Debian
/// unpacked.
const ARTEFACTS: &[&str] =
    &["cpio", "debian-archive-keyring", "e2fsprogs", "kmod", "qemu-system-x86", "xz-utils"];

/// The servers that `measure/bench/src/peers/find.rs` looks for, and what nginx relays bytes with.
const PEERS: &[&str] = &["nginx", "libnginx-mod-stream", "haproxy", "hitch", "stunnel4", "varnish"];

/// The servers that tests have behind us, and what scrapes kettle.
const BEHIND: &[&str] = &[
    "apache2-bin",
    "fcgiwrap",
    "gunicorn",
    "php-fpm",
    "postfix",
    "postgresql",
    "prometheus",
    "python3-aiosmtpd",
    "uwsgi-core",
    "uwsgi-plugin-python3",
];

#[cfg(test)]
mod tests;

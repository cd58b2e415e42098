//! Each package as somebody meets it: installed on a bare Debian, served from, upgraded, removed; unpacked; run as a container.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::release::Release;
use super::{deb, oci, rpm};
use crate::files::create_folder;
use crate::vm::apt::Mirror;
use crate::vm::cache::Cache;
use crate::{go, process};

/// Makes the packages and tries them all.
pub fn run(release: &Release) -> Result<(), String> {
    check_deb(release)?;
    check_rpm(release)?;
    check_oci(release)
}

fn check_deb(release: &Release) -> Result<(), String> {
    let made = deb::make(release)?;
    let work = release.work("check-deb")?;
    let tree = debian("bare", INCLUDED, &[])?;
    let root = work.join("root");
    create_folder(&root)?;
    process::run_quietly(Command::new("tar").arg("-C").arg(&root).arg("-xf").arg(tree))?;
    for package in &made {
        process::run_quietly(Command::new("cp").arg(package).arg(root.join("tmp")))?;
    }
    let has_pebble = go::build_pebble()?;
    for program in go::pebble().filter(|_| has_pebble) {
        process::run_quietly(Command::new("cp").arg(program).arg(root.join("tmp")))?;
    }
    in_namespaces(CHECK_DEB, &[&root])?;
    let certified = if has_pebble { "fetched a certificate and renewed it, " } else { "" };
    println!("deb: installed, served, {certified}upgraded, removed and purged");
    Ok(())
}

fn check_rpm(release: &Release) -> Result<(), String> {
    let made = rpm::make(release)?;
    for package in &made {
        let work = release.work("check-rpm")?;
        let script = "rpm2cpio \"$1\" | cpio --quiet -idm && rpm -qlp \"$1\" | sort";
        let mut command = Command::new("sh");
        command.args(["-ec", script, "sh"]).arg(package).current_dir(&work);
        let listed = process::read(&mut command)?;
        for file in listed.lines() {
            if !work.join(file.trim_start_matches('/')).exists() {
                return Err(format!("{}: {file} is listed and not there", package.display()));
            }
        }
        let is_bench = package.to_string_lossy().contains("kettle-bench");
        let name = if is_bench { "kettle-bench" } else { "kettle" };
        let said = process::read(Command::new(work.join("usr/bin").join(name)).arg("--version"))?;
        if !said.starts_with(&format!("{name} {}", release.version)) {
            return Err(format!("{} says: {said}", package.display()));
        }
    }
    println!("rpm: unpacked, complete, and the programs run");
    Ok(())
}

fn check_oci(release: &Release) -> Result<(), String> {
    let image = oci::make(release)?;
    let work = release.work("check-oci")?;
    process::run_quietly(Command::new("tar").arg("-C").arg(&work).arg("-xf").arg(&image))?;
    in_namespaces(CHECK_OCI, &[&work, Path::new(oci::USER)])?;
    println!("oci: unpacked; its user serves a page, is healthy, and the doctor answers");
    Ok(())
}

/// Runs a script with mounts, processes and a network of its own, which end with it.
fn in_namespaces(script: &str, arguments: &[&Path]) -> Result<(), String> {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--pid", "--net", "--fork", "--kill-child", "timeout", LIMIT]);
    command.args(["sh", "-euc", script, "sh"]).args(arguments);
    process::run(&mut command)
}

/// A Debian with what a smallest installation has, and some packages: a tar, kept beside the guests' images.
pub fn debian(name: &str, included: &str, hooks: &[&str]) -> Result<PathBuf, String> {
    let suite = process::read(
        Command::new("sh").args(["-c", ". /etc/os-release; echo $VERSION_CODENAME"]),
    )?;
    let suite = suite.trim();
    let mirror = Mirror::of_this_machine()?;
    let recipe = [&[suite, included], hooks].concat().join(" ");
    let folder = Cache::open()?.obtain(&format!("{name}-{suite}"), &recipe, |folder| {
        eprintln!("package: a Debian to try packages in ({suite}, {name})");
        let mut command = Command::new("mmdebstrap");
        command.args(["--variant=minbase", &format!("--include={included}")]).args(hooks);
        process::run_quietly(command.arg(suite).arg(folder.join(TREE)).arg(mirror.archive()))
    })?;
    Ok(folder.join(TREE))
}

/// The packages of the script; the last one is how Debian makes accounts where no systemd runs.
const INCLUDED: &str = "curl,systemd-standalone-sysusers";
const TREE: &str = "tree.tar";

/// Seconds. A minute where nothing else runs; programs of the dev profile are large, and machines are shared.
const LIMIT: &str = "600";
const CHECK_DEB: &str = include_str!("check/deb.sh");
const CHECK_OCI: &str = include_str!("check/oci.sh");

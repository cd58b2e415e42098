//! Packages for Fedora, SUSE and their relatives, made by `rpmbuild`.

use std::path::PathBuf;

use super::release::Release;
use super::stage::{Part, copy};
use crate::{checkout, process};

pub fn make(release: &Release) -> Result<Vec<PathBuf>, String> {
    let zsh = "usr/share/zsh/site-functions";
    let kettle = Part::Kettle.stage(release, "rpm", zsh)?;
    let bench = Part::Bench.stage(release, "rpm", zsh)?;
    let top = release.work("rpm/top")?;
    let mut rpmbuild = release.command("rpmbuild");
    for (name, value) in [
        ("_topdir", top.display().to_string()),
        ("kettle_version", release.version.clone()),
        ("kettle_tree", kettle.display().to_string()),
        ("bench_tree", bench.display().to_string()),
    ] {
        rpmbuild.args(["--define", &format!("{name} {value}")]);
    }
    let specification = checkout::workspace().join("packaging/rpm/kettle.spec");
    let architecture = release.architecture.rpm();
    rpmbuild.args(["-bb", "--quiet", "--target", architecture]).arg(specification);
    process::run_quietly(&mut rpmbuild)?;
    let mut made = Vec::new();
    for part in [Part::Kettle, Part::Bench] {
        let name = format!("{}-{}-1.{architecture}.rpm", part.name(), release.version);
        let package = release.output.join(&name);
        copy(&top.join("RPMS").join(architecture).join(name), &package)?;
        made.push(package);
    }
    Ok(made)
}

//! Checks whether the same source gives the same bytes: the programs built in two folders, and every package made twice.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::architecture::Architecture;
use super::oci::sha256;
use super::release::{self, Release, git};
use crate::files::{self, create_folder, remove_folder};
use crate::{checkout, process};

/// Builds and compares, or compares what is made of `programs`. An error names what differs.
pub fn run(
    architecture: Architecture,
    profile: &str,
    programs: Option<PathBuf>,
) -> Result<(), String> {
    let work = checkout::target_folder().join("reproduce");
    if let Some(programs) = programs {
        return packages(architecture, &programs, &work);
    }
    remove_folder(&work)?;
    create_folder(&work)?;
    // Both from one archive: somebody may commit between the builds.
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let archive = work.join("source.tar");
    let mut pack = Command::new("git");
    pack.args(["archive", &commit, "-o"]).arg(&archive).current_dir(checkout::workspace());
    process::run(&mut pack)?;
    let mut built = Vec::new();
    for name in ["one", "another-place"] {
        let folder = work.join(name);
        let source = folder.join("source");
        create_folder(&source)?;
        process::run(Command::new("tar").arg("-C").arg(&source).arg("-xf").arg(&archive))?;
        built.push(release::build_in(&source, &folder.join("target"), profile, &commit)?);
    }
    compare("the programs", built.iter().map(PathBuf::as_path), |name| {
        name == "kettle" || name == "kettle-bench"
    })?;
    let Some(programs) = built.into_iter().next() else { return Ok(()) };
    packages(architecture, &programs, &work)
}

/// Makes every package of these programs twice.
fn packages(architecture: Architecture, programs: &Path, work: &Path) -> Result<(), String> {
    let outputs = ["packages-one", "packages-two"].map(|name| work.join(name));
    for output in &outputs {
        remove_folder(output)?;
        super::all(&Release::new(architecture, programs.to_owned(), output.clone())?)?;
    }
    compare("the packages", outputs.iter().map(PathBuf::as_path), |_| true)
}

fn compare<'f>(
    what: &str,
    folders: impl Iterator<Item = &'f Path>,
    is_meant: impl Fn(&str) -> bool,
) -> Result<(), String> {
    let mut hashes = Vec::new();
    for folder in folders {
        let mut found = files::entries(folder).unwrap_or_default();
        found.retain(|it| it.is_file() && is_meant(&files::name(it)));
        let hashed = found.iter().map(|file| Ok((files::name(file), sha256(file)?)));
        hashes.push(hashed.collect::<Result<Vec<_>, String>>()?);
    }
    let [one, other] = hashes.as_slice() else { return Err("two folders are compared".into()) };
    for (name, hash) in one {
        println!("{hash}  {name}");
    }
    if one == other && !one.is_empty() {
        println!("{what} are the same, byte for byte");
        return Ok(());
    }
    let differs = other.iter().filter(|it| !one.contains(it)).map(|(name, _)| name.as_str());
    Err(format!("{what} differ: {}", differs.collect::<Vec<_>>().join(", ")))
}

//! The sources of the files: packages by the clients of their registries, repositories by git. Each is kept in the cache.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Source;
use super::list::SourceKind;
use crate::files::{create_folder, remove_folder};
use crate::process;
use crate::vm::apt;
use crate::vm::cache::Cache;

/// The folder with what a source holds. Of repositories one in `mirrors`, as `OWNER/NAME.git`, is asked first.
pub fn fetch(
    source: &Source,
    wanted: &[&str],
    cache: &Cache,
    mirrors: Option<&Path>,
) -> Result<PathBuf, String> {
    let Source { kind, source: name, version, .. } = source;
    let kind_name = format!("{kind:?}").to_ascii_lowercase();
    let plain = name.replace(['/', '@'], "-");
    let recipe = format!("{version} {}", wanted.join(" "));
    cache.obtain(&format!("import-{kind_name}-{plain}"), &recipe, |folder| match kind {
        SourceKind::Debian => debian(folder, name, version),
        SourceKind::Npm => npm(folder, &format!("{name}@{version}")),
        SourceKind::Pypi => pypi(folder, &format!("{name}=={version}")),
        SourceKind::Go => go(folder, &format!("{name}@{version}")),
        SourceKind::Repository => repository(folder, (name, version), wanted, mirrors),
    })
}

fn debian(folder: &Path, package: &str, suite: &str) -> Result<(), String> {
    apt::fetch(package, &[suite], folder)
}

fn npm(folder: &Path, package: &str) -> Result<(), String> {
    process::run_quietly(
        Command::new("npm").current_dir(folder).args(["pack", "--silent", package]),
    )?;
    unpack_only_file(folder)
}

fn pypi(folder: &Path, package: &str) -> Result<(), String> {
    let mut pip = Command::new("pip");
    pip.args(["download", "--quiet", "--no-deps", "--no-binary", ":all:", "--dest", ".", package]);
    process::run_quietly(pip.current_dir(folder))?;
    unpack_only_file(folder)
}

/// Unpacks the only archive that lies in a folder, without the folder that all in it has.
fn unpack_only_file(folder: &Path) -> Result<(), String> {
    let script = "set -- *.t*gz && tar --extract --strip-components=1 --file \"$1\" && rm \"$1\"";
    process::run_quietly(Command::new("sh").current_dir(folder).args(["-c", script]))
}

fn go(folder: &Path, module: &str) -> Result<(), String> {
    let modules = folder.join("modules");
    let mut go = Command::new("go");
    go.args(["mod", "download", "-modcacherw", "-json", module]).env("GOMODCACHE", &modules);
    let text = process::read(go.current_dir(folder).env("GOFLAGS", "-mod=mod"))?;
    let said: serde_json::Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let from = said.get("Dir").and_then(|it| it.as_str()).ok_or("go names no folder")?;
    let mut copy = Command::new("cp");
    process::run_quietly(copy.args(["--recursive", "--no-target-directory", from]).arg(folder))?;
    remove_folder(&modules)
}

fn repository(
    folder: &Path,
    (name, commit): (&str, &str),
    wanted: &[&str],
    mirrors: Option<&Path>,
) -> Result<(), String> {
    let mirror = mirrors.map(|mirrors| mirrors.join(format!("{name}.git")));
    let (git, has_mirror) = match mirror.filter(|mirror| mirror.is_dir()) {
        Some(mirror) => (mirror, true),
        None => (folder.join(".git"), false),
    };
    let git = |words: &[&str]| {
        let mut command = Command::new("git");
        command.arg("--git-dir").arg(&git).args(words).env("GIT_TERMINAL_PROMPT", "0");
        command
    };
    if !has_mirror {
        create_folder(folder)?;
        let address = format!("https://github.com/{name}");
        process::run_quietly(&mut git(&["init", "--quiet"]))?;
        process::run_quietly(&mut git(&["fetch", "--quiet", "--depth=1", &address, commit]))?;
    }
    let mut archive = git(&["archive", commit, "--"]);
    archive.args(wanted.iter().map(|path| format!(":(glob){path}")));
    let mut archive = archive
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start git: {error}"))?;
    let text = archive.stdout.take().ok_or("git has no output")?;
    let mut tar = Command::new("tar");
    let status = tar.args(["--extract", "--directory"]).arg(folder).stdin(text).status();
    let ended = archive.wait().map_err(|error| error.to_string())?;
    let is_unpacked = status.map_err(|error| format!("cannot start tar: {error}"))?.success();
    match ended.success() && is_unpacked {
        true => remove_folder(&folder.join(".git")),
        false => Err(format!("{name} has no commit {commit}")),
    }
}

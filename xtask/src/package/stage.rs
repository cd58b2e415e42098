//! The files of each package, laid out as they will lie on the machine.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::release::Release;
use super::sbom;
use crate::files::{self, at, create_folder};
use crate::{checkout, process};

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Kettle,
    /// The program that measures.
    Bench,
}

impl Part {
    /// The name of its program and its package.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kettle => "kettle",
            Self::Bench => "kettle-bench",
        }
    }

    /// Lays its files out in a new folder, `zsh` being where this system looks for zsh's completions.
    pub fn stage(self, release: &Release, kind: &str, zsh: &str) -> Result<PathBuf, String> {
        let name = self.name();
        let work = release.work(&format!("{kind}/{name}"))?;
        let tree = work.join("tree");
        let program = format!("usr/bin/{name}");
        copy(&release.programs.join(name), &tree.join(&program))?;
        self.manual(release, &work, &tree, zsh)?;
        let doc = format!("usr/share/doc/{name}");
        if self == Self::Kettle {
            for (from, to) in FILES {
                copy(&checkout::workspace().join(from), &tree.join(to))?;
            }
            examples(&tree.join(&doc))?;
            files::write(tree.join(&doc).join(sbom::FILE), sbom::text(release)?)?;
        }
        // The name that Debian looks for.
        let changelog = tree.join(&doc).join("changelog");
        copy(&checkout::workspace().join("CHANGELOG.md"), &changelog)?;
        process::run_quietly(Command::new("gzip").args(["-9", "-n"]).arg(&changelog))?;
        readable(&tree)?;
        set_mode(&tree.join(program), 0o755)?;
        Ok(tree)
    }

    /// Lets the program write its pages and completions, and puts them in place.
    fn manual(self, release: &Release, work: &Path, tree: &Path, zsh: &str) -> Result<(), String> {
        let name = self.name();
        let written = work.join("manual");
        let mut program = release.command(&release.programs.join(name).display().to_string());
        process::run_quietly(program.arg("manual").arg(&written).args(["--date", &release.day]))?;
        for section in ["man1", "man5"] {
            for page in fs::read_dir(written.join(section)).into_iter().flatten().flatten() {
                let place = tree.join("usr/share/man").join(section).join(page.file_name());
                copy(&page.path(), &place)?;
                process::run_quietly(Command::new("gzip").args(["-9", "-n"]).arg(&place))?;
            }
        }
        for (from, to) in [
            (name.to_owned(), format!("usr/share/bash-completion/completions/{name}")),
            (format!("_{name}"), format!("{zsh}/_{name}")),
            (format!("{name}.fish"), format!("usr/share/fish/vendor_completions.d/{name}.fish")),
        ] {
            copy(&written.join("completions").join(from), &tree.join(to))?;
        }
        Ok(())
    }
}

/// Copies the examples to start from and to copy out of.
fn examples(doc: &Path) -> Result<(), String> {
    for folder in ["examples", "grafana", "prometheus"] {
        let from = checkout::workspace().join("packaging").join(folder);
        for file in fs::read_dir(from).into_iter().flatten().flatten() {
            copy(&file.path(), &doc.join("examples").join(file.file_name()))?;
        }
    }
    Ok(())
}

pub fn copy(from: &Path, to: &Path) -> Result<(), String> {
    if let Some(folder) = to.parent() {
        create_folder(folder)?;
    }
    files::copy(from, to)?;
    set_mode(to, 0o644)
}

/// Lets everybody read, whatever the umask was.
pub fn readable(tree: &Path) -> Result<(), String> {
    process::run_quietly(Command::new("chmod").args(["-R", "u=rwX,go=rX"]).arg(tree))
}

pub fn set_mode(file: &Path, mode: u32) -> Result<(), String> {
    let permissions = fs::Permissions::from_mode(mode);
    fs::set_permissions(file, permissions).map_err(|error| at(file, &error))
}

/// From the checkout to the machine.
const FILES: &[(&str, &str)] = &[
    ("packaging/kettle.service", "usr/lib/systemd/system/kettle.service"),
    ("packaging/modules-load.d/kettle.conf", "usr/lib/modules-load.d/kettle.conf"),
    ("packaging/sysusers.d/kettle.conf", "usr/lib/sysusers.d/kettle.conf"),
    ("packaging/tmpfiles.d/kettle.conf", "usr/lib/tmpfiles.d/kettle.conf"),
    ("packaging/kettle.toml", "etc/kettle/kettle.toml"),
    ("packaging/logrotate.d/kettle", "etc/logrotate.d/kettle"),
    ("packaging/kettle.schema.json", "usr/share/kettle/kettle.schema.json"),
    ("packaging/welcome.html", "usr/share/kettle/welcome/index.html"),
    ("packaging/kettle.example.toml", "usr/share/doc/kettle/examples/kettle.example.toml"),
    ("docs/starting.md", "usr/share/doc/kettle/starting.md"),
    ("docs/controlling.md", "usr/share/doc/kettle/controlling.md"),
    ("docs/watching.md", "usr/share/doc/kettle/watching.md"),
];

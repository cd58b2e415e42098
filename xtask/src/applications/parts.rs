//! The parts of the applications: Debian's packages, and packages of PyPI, npm and Go, which are fetched once and kept.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::files::{self, at, create_folder, remove_folder};
use crate::process;
use crate::vm::cache::Cache;

/// The applications, in the order in which they are tried.
pub const ALL: &[&str] =
    &["registry", "gitea", "wordpress", "jupyterlab", "django", "events", "oauth2_proxy"];

/// The packages that all need: a server to compare with, and clients.
pub const DEBIAN: &[&str] =
    &["iproute2", "nginx", "openssl", "python3-h2", "python3-httpx", "util-linux"];

/// Returns the packages that some need besides.
pub fn debian_of(names: &[&str]) -> Vec<&'static str> {
    let of = |name: &&str| match *name {
        "registry" => ["apache2-utils", "docker-registry", "skopeo"].as_slice(),
        "gitea" => &["gcc", "git", "git-lfs", "libc6-dev"],
        "wordpress" => &[
            "mariadb-server",
            "php-fpm",
            "php-gd",
            "php-mysql",
            "wordpress",
            "wordpress-theme-twentytwentythree",
        ],
        "jupyterlab" | "django" => &["python3-pip"],
        _ => &[],
    };
    names.iter().flat_map(of).copied().collect()
}

/// Makes a folder with the parts of these applications. Those that cannot be had are named, with the reason.
pub fn fetch(names: &[&str], folder: &Path) -> Result<(PathBuf, Vec<(String, String)>), String> {
    create_folder(folder)?;
    let cache = Cache::without_programs()?;
    let mut missing = Vec::new();
    for name in names {
        for part in PARTS.iter().filter(|part| part.of.contains(name)) {
            let recipe = part.packages.join(" ");
            let obtained = cache.obtain(&format!("application-{}", part.name), &recipe, |folder| {
                (part.make)(folder, part.packages)
            });
            match obtained {
                Ok(obtained) => {
                    let link = folder.join(part.name);
                    if !link.exists() {
                        std::os::unix::fs::symlink(obtained, &link)
                            .map_err(|error| at(&link, &error))?;
                    }
                }
                Err(why) => missing.push(((*name).to_owned(), why)),
            }
        }
    }
    Ok((folder.to_owned(), missing))
}

struct Part {
    name: &'static str,
    of: &'static [&'static str],
    packages: &'static [&'static str],
    make: fn(&Path, &[&str]) -> Result<(), String>,
}

const PARTS: &[Part] = &[
    Part {
        name: "python",
        of: &["jupyterlab", "django"],
        packages: &["jupyterlab==4.6.6", "django==5.2.19", "gunicorn==27.0.1"],
        make: python,
    },
    Part {
        name: "npm",
        of: &["events", "oauth2_proxy"],
        packages: &["express@5.3.0", "better-sse@0.16.1", "multer@2.5.0"],
        make: npm,
    },
    Part { name: "gitea", of: &["gitea"], packages: &["code.gitea.io/gitea@v1.26.0"], make: gitea },
    Part {
        name: "oauth2_proxy",
        of: &["oauth2_proxy"],
        packages: &["github.com/oauth2-proxy/oauth2-proxy/v7@v7.15.6"],
        make: go,
    },
];

fn python(folder: &Path, packages: &[&str]) -> Result<(), String> {
    let mut pip = Command::new("/usr/bin/python3");
    pip.args(["-m", "pip", "install", "--quiet", "--no-compile", "--root-user-action=ignore"]);
    process::run(pip.arg("--target").arg(folder).args(packages))
}

fn npm(folder: &Path, packages: &[&str]) -> Result<(), String> {
    let mut npm = Command::new("npm");
    npm.args(["install", "--silent", "--ignore-scripts", "--no-audit", "--no-fund"]);
    npm.arg("--prefix").arg(folder).args(packages);
    process::run(npm.current_dir(folder))
}

fn go(folder: &Path, packages: &[&str]) -> Result<(), String> {
    process::run(Command::new("go").args(["install"]).args(packages).env("GOBIN", folder))
}

/// Gitea names other modules' replacements, so it is built in a folder of its own, in about ten minutes. Its pages stay without
/// scripts and styles: those take a bundler, and no step needs them.
fn gitea(folder: &Path, packages: &[&str]) -> Result<(), String> {
    let mut download = Command::new("go");
    download.args(["mod", "download", "-json"]).args(packages).stdin(Stdio::null());
    let said = process::read(&mut download)?;
    let said: serde_json::Value = serde_json::from_str(&said).map_err(|error| error.to_string())?;
    let from = said.get("Dir").and_then(|it| it.as_str()).ok_or("go names no folder")?;
    let source = folder.join("source");
    let mut copy = Command::new("cp");
    process::run(copy.args(["--recursive", "--no-preserve=mode", from]).arg(&source))?;
    let mut build = Command::new("go");
    build.args(["build", "-trimpath", "-buildvcs=false", "-tags", "sqlite sqlite_unlock_notify"]);
    build.args(["-ldflags", "-s -w -X main.Version=1.26.0", "-o"]).arg(folder.join("gitea"));
    process::run(build.arg(".").current_dir(&source).env("CGO_ENABLED", "1"))?;
    for name in ["options", "public", "templates"] {
        let from = source.join(name);
        let to = folder.join(name);
        files::rename(&from, &to)?;
    }
    remove_folder(&source)
}

//! The programs in Go that the end-to-end tests call that is written in Go: h2spec, clients and a server, built from
//! `tests/go`, and an authority, built from `tests/pebble`. These pin each module.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::files::create_folder;
use crate::process::{self, Exit};
use crate::{checkout, packages};

/// Builds the programs. They need nothing of the machine they run on.
pub fn build() -> Result<(), String> {
    ensure()?;
    build_of("tests/go", &PACKAGES)?;
    build_pebble().map(drop)
}

/// Builds the authority alone. False, and said so, where this Go cannot.
pub fn build_pebble() -> Result<bool, String> {
    ensure()?;
    if !is_new_enough_for_pebble() {
        println!("this Go is too old for pebble: tests that need it are skipped");
        return Ok(false);
    }
    build_of("tests/pebble", &PEBBLE_PACKAGES).map(|()| true)
}

fn ensure() -> Result<(), String> {
    let mut version = Command::new("go");
    if version.arg("version").stdout(Stdio::null()).status().is_err() {
        packages::ensure_all(&["golang-go"])?;
    }
    create_folder(&folder())
}

/// Pebble asks for Go 1.24, and an older one that knows how fetches that (since Go 1.21).
fn is_new_enough_for_pebble() -> bool {
    let output = Command::new("go").args(["env", "GOVERSION"]).output();
    let version = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let version = version.unwrap_or_default();
    let minor = version.trim().strip_prefix("go1.").and_then(|rest| rest.split('.').next());
    minor.and_then(|minor| minor.parse::<u32>().ok()).is_some_and(|minor| minor >= 21)
}

fn build_of(module: &str, packages: &[&str]) -> Result<(), String> {
    let mut command = Command::new("go");
    command
        .args(["build", "-trimpath", "-buildvcs=false", "-mod=readonly", "-o"])
        .arg(folder())
        .args(packages)
        .current_dir(checkout::workspace().join(module))
        .envs([("CGO_ENABLED", "0"), ("GOTOOLCHAIN", "auto"), ("GOFLAGS", "")]);
    // If there is no network, nobody waits for it to come back.
    match process::follow(&mut command, LIMIT, &mut io::stdout(), &mut |_| {})? {
        Exit::Exited(status) if status.success() => Ok(()),
        Exit::Exited(status) => Err(format!("go build failed ({status})")),
        Exit::TimedOut(_) => Err(format!("go build took more than {} s", LIMIT.as_secs())),
    }
}

/// Builds actionlint, which reads the workflows in `.github`. It wants a newer Go than the tests do, so it is none of their modules.
pub fn build_actionlint() -> Result<PathBuf, String> {
    create_folder(&folder())?;
    let mut command = Command::new("go");
    command.args(["install", ACTIONLINT]).env("GOBIN", folder()).env("GOTOOLCHAIN", "local");
    match process::follow(&mut command, LIMIT, &mut io::stdout(), &mut |_| {})? {
        Exit::Exited(status) if status.success() => Ok(folder().join("actionlint")),
        Exit::Exited(status) => Err(format!("go install failed ({status})")),
        Exit::TimedOut(_) => Err(format!("go install took more than {} s", LIMIT.as_secs())),
    }
}

pub fn folder() -> PathBuf {
    checkout::target_folder().join("go")
}

/// Those programs that are there, with their names.
pub fn programs() -> impl Iterator<Item = (PathBuf, String)> {
    let name = |package: &&str| Path::new(package).file_name()?.to_str().map(str::to_owned);
    let all = PACKAGES.iter().chain(&PEBBLE_PACKAGES);
    let found = all.filter_map(name).map(|name| (folder().join(&name), name));
    found.filter(|(path, _)| path.is_file())
}

/// The authority and the name server that it asks.
pub fn pebble() -> impl Iterator<Item = PathBuf> {
    PEBBLE_PACKAGES.iter().filter_map(|it| Some(folder().join(Path::new(it).file_name()?)))
}

const PACKAGES: [&str; 4] =
    ["github.com/summerwind/h2spec/cmd/h2spec", "./client", "./server", "./bytewise"];

const PEBBLE_PACKAGES: [&str; 2] = [
    "github.com/letsencrypt/pebble/v2/cmd/pebble",
    "github.com/letsencrypt/pebble/v2/cmd/pebble-challtestsrv",
];

const ACTIONLINT: &str = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.7";

/// For the modules to be fetched and compiled.
const LIMIT: Duration = Duration::from_secs(300);

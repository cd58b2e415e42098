//! `cargo xtask cache-tests`: the public suite for HTTP caches (http-tests) against a route that keeps responses. Fails if a case
//! fails that `tests/cache-tests/failing.txt` does not name with a reason, or if one passes that it names.

mod list;
mod servers;

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use crate::files::{self, Temporary, create_folder, remove_folder};
use crate::process::{self, Exit};
use crate::vm::cache::Cache;
use crate::{checkout, packages};
use list::{Case, Failing};
use servers::Servers;

/// Runs all cases, or those that are named, and prints what is not as it was. With `--plain` first, kettle is asked without TLS.
pub fn run(arguments: &[String]) -> Result<ExitCode, String> {
    let (is_plain, arguments) = match arguments {
        [first, rest @ ..] if first == "--plain" => (true, rest),
        all => (false, all),
    };
    let failing = Failing::parse(FAILING)?;
    if Command::new("npm").arg("--version").stdout(Stdio::null()).status().is_err() {
        packages::ensure_all(&["nodejs", "npm"])?;
    }
    packages::ensure_all(NEEDED)?;
    process::run(checkout::cargo().args(["build", "--quiet", "--package", "kettle"]))?;
    let suite = Cache::open()?.obtain("cache-tests", COMMIT, download)?;
    let Temporary(folder) = &lay_out(&suite)?;
    let servers = Servers::start(folder)?;
    let [secure, plain] = servers.ports;
    let address = match is_plain {
        true => format!("http://localhost:{plain}"),
        false => format!("https://localhost:{secure}"),
    };
    let mut cases = cases(folder, &address, arguments)?;
    let again = failing.surprises(&cases);
    if (1..=AGAIN_MAX).contains(&again.len()) {
        // A machine that is busy with something else makes some miss their time.
        println!("once more: {}", again.join(", "));
        let again = self::cases(folder, &address, &again)?;
        cases.retain(|case| again.iter().all(|other| other.name != case.name));
        cases.extend(again);
    }
    let is_whole = arguments.is_empty();
    let wrong = failing.report(&cases, is_whole);
    if is_whole && cases.len() != CASES {
        return Err(format!("{} cases ran instead of {CASES}", cases.len()));
    }
    Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The suite, and what it needs to see interim responses.
fn download(folder: &Path) -> Result<(), String> {
    for words in [
        ["init", "--quiet", "--initial-branch=main"].as_slice(),
        &["fetch", "--quiet", "--depth=1", SUITE, COMMIT],
        &["checkout", "--quiet", "FETCH_HEAD"],
    ] {
        process::run_quietly(Command::new("git").arg("-C").arg(folder).args(words))?;
    }
    remove_folder(&folder.join(".git"))?;
    // Of all that it names only this is needed to run the cases.
    files::write(folder.join("package.json"), "{ \"type\": \"module\" }\n")?;
    let words = ["install", "--silent", "--ignore-scripts", "--no-audit", "--no-fund", UNDICI];
    process::run_quietly(Command::new("npm").current_dir(folder).args(words))
}

/// Runs the cases of these names, or all.
fn cases(folder: &Path, address: &str, names: &[String]) -> Result<Vec<Case>, String> {
    let mut node = Command::new("node");
    node.args(["--no-warnings", "run.mjs", address])
        .args(names)
        .current_dir(folder)
        // The certificate is signed by itself.
        .env("NODE_TLS_REJECT_UNAUTHORIZED", "0");
    let mut cases = Vec::new();
    let mut on_line = |line: &str| cases.extend(Case::parse(line));
    match process::follow(&mut node, LIMIT, &mut std::io::sink(), &mut on_line)? {
        Exit::Exited(status) if status.success() => Ok(cases),
        ending => Err(format!("the suite did not come to its end: {ending:?}")),
    }
}

fn lay_out(suite: &Path) -> Result<Temporary, String> {
    let folder = Temporary::new(checkout::target_folder().join("cache-tests"))?;
    let Temporary(path) = &folder;
    create_folder(&path.join("store"))?;
    files::link(suite, path.join("suite"))?;
    files::write(path.join("run.mjs"), RUN)?;
    files::write(path.join("origin.mjs"), ORIGIN)?;
    let mut openssl = Command::new("openssl");
    process::run_quietly(openssl.current_dir(path).args(CERTIFICATE.split_whitespace()))?;
    Ok(folder)
}

const SUITE: &str = "https://github.com/http-tests/cache-tests";
const COMMIT: &str = "b55b8bda3dbb8c927c04e85bd8d496a8caa3e4ba";
/// The number of cases of that commit that are for shared caches.
const CASES: usize = 365;
const UNDICI: &str = "undici@7.30.2";
const NEEDED: &[&str] = &["git", "openssl"];
const CERTIFICATE: &str = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key.pem -out cert.pem -days 30 \
     -subj /CN=localhost -addext subjectAltName=DNS:localhost";

const FAILING: &str = include_str!("../../tests/cache-tests/failing.txt");
const RUN: &str = include_str!("../../tests/cache-tests/run.mjs");
const ORIGIN: &str = include_str!("../../tests/cache-tests/origin.mjs");

/// For a run, which takes about two minutes.
const LIMIT: Duration = Duration::from_mins(10);

/// More than these are no accident.
const AGAIN_MAX: usize = 20;

//! `cargo xtask hitch-scripts`: hitch's own test scripts, run with hitch and with `kettle hitch`. Fails if a verdict differs that
//! is not in [`DIFFERENCES`], or if one that is there does not differ any more.
//!
//! Scripts and hitch are those of Debian trixie. The scripts send requests to a server on the Internet; here that is one of ours.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

use crate::files::{self, at, create_folder, remove_folder};
use crate::vm::apt::{Apt, unpack};
use crate::vm::cache::Cache;
use crate::{checkout, packages, process};

/// Runs the scripts that were named by their numbers, or all of them, and prints a table.
pub fn run(arguments: &[String]) -> Result<ExitCode, String> {
    packages::ensure_all(NEEDED)?;
    process::run(checkout::cargo().args(["build", "--quiet", "--package", "kettle"]))?;
    let cache = Cache::open()?;
    let debian = cache.obtain("hitch", RECIPE, download)?;
    let place = Workplace::make(&debian)?;
    let mut scripts = place.scripts()?;
    scripts.retain(|script| arguments.is_empty() || arguments.contains(&number(script)));
    if scripts.is_empty() {
        return Err(
            "no script has such a number; usage: cargo xtask hitch-scripts [NUMBER]...".into()
        );
    }
    let mut wrong = 0;
    println!("| script | hitch | kettle | |\n|---|---|---|---|");
    for script in &scripts {
        let hitch = place.verdict("hitch", script)?;
        let kettle = place.verdict("kettle", script)?;
        let known = DIFFERENCES.iter().find(|(of, _)| *of == number(script));
        let note = match (hitch == kettle, known) {
            (true, None) => "",
            (false, Some((_, why))) => why,
            (true, Some(_)) => "**differs no more: take it off the list**",
            (false, None) => "**differs**",
        };
        wrong += usize::from(note.starts_with("**"));
        println!("| {script} | {hitch} | {kettle} | {note} |");
    }
    println!("\n{} scripts, {wrong} with a surprise", scripts.len());
    Ok(if wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The source, and the program with all that it is linked with.
fn download(folder: &Path) -> Result<(), String> {
    let apt = Apt::with_sources(&folder.join("apt"), &["trixie"])?;
    let packages = apt.download_with_dependencies(&["hitch"])?;
    unpack(&packages, &folder.join("tree"))?;
    let source = apt.download_source("hitch")?;
    let into = folder.join("source");
    create_folder(&into)?;
    let mut tar = Command::new("tar");
    process::run_quietly(
        tar.args(["--extract", "--strip-components=1", "--file"]).arg(source).arg("-C").arg(&into),
    )?;
    remove_folder(&folder.join("apt"))
}

/// The folders in which the scripts run. Removed when dropped.
struct Workplace {
    folder: PathBuf,
}

impl Workplace {
    /// A folder that everybody may look into, because the servers give root up.
    fn make(debian: &Path) -> Result<Self, String> {
        let folder = std::env::temp_dir().join(format!("kettle-hitch-{}", std::process::id()));
        let place = Self { folder };
        let scripts = place.scripts_folder();
        for program in ["hitch", "kettle"] {
            create_folder(&place.folder.join(program))?;
        }
        create_folder(&place.folder.join("src"))?;
        process::run_quietly(
            Command::new("cp").arg("-r").arg(debian.join("source/src/tests")).arg(&scripts),
        )?;
        let manual = files::read(debian.join("source/hitch.conf.man.rst"))?;
        files::write(place.folder.join("hitch.conf.example"), example(&manual))?;
        place.adapt(&serve()?.to_string())?;
        let tree = debian.join("tree");
        let wrapper = place.folder.join("hitch/hitch");
        let libraries = "usr/lib/x86_64-linux-gnu";
        let text = format!(
            "#!/bin/sh\nexec {0}/{libraries}/ld-linux-x86-64.so.2 --library-path {0}/{libraries} {0}/usr/sbin/hitch \"$@\"\n",
            tree.display()
        );
        files::write(&wrapper, &text)?;
        fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755))
            .map_err(|error| at(&wrapper, &error))?;
        let kettle = checkout::workspace().join("target/debug/kettle");
        let link = place.folder.join("kettle/hitch");
        files::link(kettle, &link)?;
        let source = debian.join("source/src");
        let mut cc = Command::new("cc");
        cc.arg("-I").arg(&source).arg("-o").arg(place.folder.join("parse_proxy_v2"));
        process::run_quietly(cc.arg(source.join("util/parse_proxy_v2.c")))?;
        Ok(place)
    }

    fn scripts_folder(&self) -> PathBuf {
        self.folder.join("src/tests")
    }

    /// The scripts learn their own server instead of hitch's, and the addresses from the system instead of from a debugging
    /// option that hitch has for them.
    fn adapt(&self, backend: &str) -> Result<(), String> {
        let folder = self.scripts_folder();
        let (host, port) = backend.rsplit_once(':').unwrap_or((backend, "80"));
        for name in files_in(&folder)? {
            let path = folder.join(&name);
            let Ok(text) = fs::read_to_string(&path) else { continue };
            let mut text = text
                .replace("[hitch-tls.org]:80", &format!("[{host}]:{port}"))
                .replace("\t\t--dbg-listen=\"$TEST_TMPDIR/hitch_hosts\" \\\n", "");
            if name == HELPERS {
                text.push_str(HOSTS);
            }
            files::write(&path, &text)?;
        }
        Ok(())
    }

    fn scripts(&self) -> Result<Vec<String>, String> {
        let mut names = files_in(&self.scripts_folder())?;
        names.retain(|name| name.starts_with("test") && name.ends_with(".sh"));
        Ok(names)
    }

    fn verdict(&self, program: &str, script: &str) -> Result<&'static str, String> {
        let scripts = self.scripts_folder();
        let inherited = std::env::var("PATH").unwrap_or_default();
        let path =
            format!("{0}:{1}/{program}:{1}:{inherited}", scripts.display(), self.folder.display());
        let log = self.folder.join(format!("{script}.{program}.log"));
        let output = fs::File::create(&log).map_err(|error| at(&log, &error))?;
        let errors = output.try_clone().map_err(|error| at(&log, &error))?;
        let status = Command::new("timeout")
            .args(["--kill-after=5", SECONDS_MAX, "sh"])
            .arg(scripts.join(script))
            .current_dir(&self.folder)
            .env("PATH", path)
            .env("TESTDIR", format!("{}/", scripts.display()))
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors)
            .status()
            .map_err(|error| format!("cannot start {script}: {error}"))?;
        Ok(match status.code() {
            Some(0) => "pass",
            Some(77) => "skip",
            _ => "fail",
        })
    }
}

impl Drop for Workplace {
    fn drop(&mut self) {
        // A failure is read in the logs.
        if std::env::var_os("KETTLE_KEEP").is_none() {
            let _ = remove_folder(&self.folder);
        }
    }
}

/// A plain server that answers each request with success, as long as this program runs.
fn serve() -> Result<std::net::SocketAddr, String> {
    let listener = TcpListener::bind("127.0.0.1:0");
    let listener = listener.map_err(|error| format!("no port for the backend: {error}"))?;
    let address = listener.local_addr().map_err(|error| error.to_string())?;
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            thread::spawn(move || answer(socket));
        }
    });
    Ok(address)
}

/// To what a client sends first; more is not needed by the scripts.
fn answer(mut socket: TcpStream) {
    let mut request = [0; 4096];
    let _ = socket.set_read_timeout(Some(Duration::from_secs(30)));
    if socket.read(&mut request).is_ok_and(|bytes| bytes > 0) {
        let _ =
            socket.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    }
}

fn files_in(folder: &Path) -> Result<Vec<String>, String> {
    let mut found = files::entries(folder)?;
    found.retain(|path| path.is_file());
    Ok(found.iter().map(|path| files::name(path)).collect())
}

/// The example configuration of the manual, which hitch's build takes out of it for script 8.
fn example(manual: &str) -> String {
    let inside = manual.lines().skip_while(|line| !line.starts_with(".. example-start")).skip(1);
    let inside = inside.take_while(|line| !line.starts_with(".. example-end"));
    let text = inside.filter(|line| line.is_empty() || line.starts_with(' '));
    text.map(|line| format!("{}\n", line.strip_prefix("    ").unwrap_or(line))).collect()
}

/// `07` of `test07-nomatch-abort.sh`.
fn number(script: &str) -> String {
    script.chars().filter(char::is_ascii_digit).take(2).collect()
}

/// The differences of kettle, and their reasons.
const DIFFERENCES: [(&str, &str); 8] = [
    ("14", "`ocsp-verify-staple`: clients verify the signature of what is stapled"),
    ("15", "NPN, which came before ALPN"),
    ("29", NO_BACKEND),
    ("36", VERSION_1),
    ("37", VERSION_1),
    ("38", VERSION_1),
    ("39", VERSION_1),
    ("41", VERSION_1),
];
const NO_BACKEND: &str = "names no backend: a connection that reaches no server ends without close_notify, which its client takes for an error";
const VERSION_1: &str = "its client's certificate is of X.509 version 1";

const HELPERS: &str = "hitch_test.sh";
/// The IPv4 addresses of the server under test: both programs run under the name hitch, or under that of the dynamic linker.
const HOSTS: &str = r#"
hitch_hosts() {
	ss -4Hltnp | grep -e '"hitch"' -e '"kettle' -e '"ld-linux' | awk '{print $4}' | sed 's/127\.0\.0\.1/localhost/' | sort -u
}
"#;
const NEEDED: &[&str] = &["curl", "gcc", "iproute2", "openssl", "xz-utils"];
/// Longer than the slowest of them needs.
const SECONDS_MAX: &str = "90";
/// The content of the cache; another text has it made anew.
const RECIPE: &str = "hitch of trixie, program and source, 1";

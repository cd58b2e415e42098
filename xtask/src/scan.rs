//! `cargo xtask scan`: testssl.sh and sslscan against a running kettle, once as `kettle serve` and once as `kettle run` with an
//! ECDSA and an RSA certificate of an authority made for it. Fails if anything is found that is worse than LOW.

mod report;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use crate::files::{self, Temporary, create_folder};
use crate::process::{Server, free_port};
use crate::{checkout, packages, process};
use report::{Scan, TestsslLine};

/// Runs the scans and prints their summary in Markdown.
pub fn run(arguments: &[String]) -> Result<ExitCode, String> {
    let workspace = checkout::workspace();
    let kettle = match arguments {
        [] => build(&workspace)?,
        [option, path] if option == "--kettle" => PathBuf::from(path),
        _ => return Err("usage: cargo xtask scan [--kettle PROGRAM]".to_owned()),
    };
    packages::ensure_all(NEEDED)?;
    let Temporary(folder) = &Temporary::new(workspace.join("target/scan"))?;
    create_folder(&folder.join("site"))?;
    files::write(folder.join("site/index.html"), "<!doctype html><title>scan</title>\n")?;
    make_certificates(folder)?;
    println!("| scanner | version |\n|---|---|\n{}", versions()?);
    let mut worst_found = false;
    for (title, is_configured) in [("kettle serve", false), ("kettle run", true)] {
        let (_server, port) = start(&kettle, folder, is_configured)?;
        eprintln!("scanning {title}, which takes two minutes");
        let scan = Scan {
            title,
            findings: testssl(folder, port, is_configured)?,
            ciphers: sslscan(port)?,
            is_self_signed: !is_configured,
        };
        println!("{scan}");
        worst_found |= scan.is_failed();
    }
    Ok(if worst_found { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn build(workspace: &Path) -> Result<PathBuf, String> {
    let mut cargo = Command::new("cargo");
    process::run(cargo.current_dir(workspace).args(["build", "--quiet", "--package", "kettle"]))?;
    Ok(workspace.join("target/debug/kettle"))
}

fn versions() -> Result<String, String> {
    let testssl = Command::new("testssl")
        .arg("--version")
        .output()
        .map_err(|error| format!("cannot start testssl: {error}"))?;
    let sslscan = process::read(Command::new("sslscan").args(["--no-colour", "--version"]))?;
    let openssl = process::read(Command::new("openssl").arg("version"))?;
    let banner = String::from_utf8_lossy(&testssl.stdout);
    let version = report::testssl_version(&banner);
    let scan: Vec<&str> = sslscan.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    Ok(format!(
        "| testssl.sh | {version} |\n| sslscan | {} |\n| openssl | {} |\n",
        scan.join(", "),
        openssl.trim()
    ))
}

fn start(kettle: &Path, folder: &Path, is_configured: bool) -> Result<(Server, u16), String> {
    let port = free_port()?;
    let mut command = Command::new(kettle);
    command.current_dir(folder).env("XDG_STATE_HOME", folder.join("state"));
    if is_configured {
        let config = CONFIG.replace("PORT", &port.to_string());
        files::write(folder.join("kettle.toml"), &config)?;
        command.args(["run", "--config", "kettle.toml"]).stderr(Stdio::piped());
    } else {
        command.args(["serve", "site", "--listen", &port.to_string()]).stdout(Stdio::piped());
    }
    // Both say last where TLS is placed, when they listen.
    let (server, _) = Server::start(&mut command, "TLS: ")?;
    Ok((server, port))
}

fn testssl(folder: &Path, port: u16, is_trusted: bool) -> Result<Vec<TestsslLine>, String> {
    let output = folder.join(format!("testssl-{port}.json"));
    let mut command = Command::new("testssl");
    command.args(["--quiet", "--color", "0", "--warnings", "off", "--jsonfile"]).arg(&output);
    if is_trusted {
        command.arg("--add-ca").arg(folder.join("ca.pem"));
    }
    command.arg(format!("localhost:{port}")).stdin(Stdio::null()).stdout(Stdio::null());
    // Its status counts what it dislikes, of which the report says more.
    command.status().map_err(|error| format!("cannot start testssl: {error}"))?;
    let text = std::fs::read_to_string(&output)
        .map_err(|error| format!("testssl left no report in {}: {error}", output.display()))?;
    report::findings(&text)
}

fn sslscan(port: u16) -> Result<Vec<String>, String> {
    let address = format!("127.0.0.1:{port}");
    let text = process::read(Command::new("sslscan").args(["--no-colour", &address]))?;
    Ok(report::ciphers(&text))
}

/// An authority, and a certificate of it for each type of key.
fn make_certificates(folder: &Path) -> Result<(), String> {
    files::write(folder.join("leaf.cnf"), LEAF)?;
    for line in [
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem -days 30 -subj /CN=scan \
         -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign",
        "req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ec.key -out ec.csr -subj /CN=localhost",
        "req -new -newkey rsa:2048 -nodes -keyout rsa.key -out rsa.csr -subj /CN=localhost",
        "x509 -req -in ec.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out ec.pem -days 90 -extfile leaf.cnf",
        "x509 -req -in rsa.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out rsa.pem -days 90 -extfile leaf.cnf",
    ] {
        process::run_quietly(
            Command::new("openssl").current_dir(folder).args(line.split_whitespace()),
        )?;
    }
    Ok(())
}

const NEEDED: &[&str] = &["openssl", "sslscan", "testssl.sh"];

/// testssl.sh wants to know where revocation could be looked up; it does not look.
const LEAF: &str = "\
basicConstraints = critical, CA:FALSE
subjectAltName = DNS:localhost, IP:127.0.0.1
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
crlDistributionPoints = URI:http://localhost/scan.crl
";

/// The headers are what a careful operator sets; kettle sets none that it is not told to.
const CONFIG: &str = r#"
[server]
state_directory = "state"
[[listener]]
address = "127.0.0.1:PORT"
[[site]]
names = ["localhost"]
default = true
[site.hsts]
max_age = "365d"
[site.headers]
X-Content-Type-Options = "nosniff"
X-Frame-Options = "DENY"
Content-Security-Policy = "default-src 'self'"
Referrer-Policy = "no-referrer"
[[site.certificate]]
chain = "ec.pem"
key = "ec.key"
[[site.certificate]]
chain = "rsa.pem"
key = "rsa.key"
[[site.route]]
root = "site"
"#;

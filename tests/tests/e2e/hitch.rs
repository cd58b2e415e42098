//! kettle under the names of hitch and stud: their command lines, their configuration, their words to backends.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Instant;

use kettle_tests::backend::{Backend, read_exactly};
use kettle_tests::certificate::{ClientAuthority, Kind, issue};
use kettle_tests::client::Dialer;
use kettle_tests::environment::{kettle_program, patience, skip};
use kettle_tests::http::Connection;
use kettle_tests::suite::{Suite, TLS12_AES_128, TLS13_AES_128};
use kettle_tests::tool::{Running, Tool};
use rustix::process::{Pid, Signal, kill_process};
use rustls::crypto::aws_lc_rs::cipher_suite;
use tempfile::TempDir;

/// A folder with certificates, and with kettle under two other names.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(TempDir::new().unwrap());
        for name in ["hitch", "stud"] {
            symlink(kettle_program(), place.path(name)).unwrap();
        }
        for name in ["one", "two"] {
            place.pem(name, name);
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Key, chain and parameters in one file, as hitch wants them.
    fn pem(&self, file: &str, name: &str) {
        let issued = issue(&[name], Kind::Rsa);
        let parameters =
            "-----BEGIN DH PARAMETERS-----\nMAYCAQsCAQI=\n-----END DH PARAMETERS-----\n";
        fs::write(self.path(file), issued.key + &issued.chain + parameters).unwrap();
    }

    fn config(&self, text: &str) {
        let folder = self.0.path().to_str().unwrap();
        fs::write(self.path("conf"), text.replace("FOLDER", folder)).unwrap();
    }

    fn tool(&self, program: &str, words: &[&str]) -> Tool {
        let folder = self.0.path().to_str().unwrap();
        let words = words.iter().map(|word| word.replace("FOLDER", folder));
        Tool::new(self.path(program)).args(words)
    }

    fn start(&self, program: &str, words: &[&str], address: SocketAddr) -> Running {
        let running = self.tool(program, words).start();
        wait_until_listening(address);
        running
    }
}

fn wait_until_listening(address: SocketAddr) {
    let deadline = Instant::now() + patience();
    while TcpStream::connect(address).is_err() {
        assert!(Instant::now() < deadline, "nobody listens on {address}");
        std::thread::yield_now();
    }
}

fn free() -> SocketAddr {
    Backend::listen().address()
}

fn bracketed(address: SocketAddr) -> String {
    format!("[{}]:{}", address.ip(), address.port())
}

/// Whether a client that asks for a name gets the certificate that has it.
fn shows(address: SocketAddr, name: &str) -> bool {
    Dialer::default().server_name(name).try_connect(address).is_ok()
}

/// Rights are no subject here: hitch wants a user as root, and is content without one otherwise.
const AS: [&str; 2] = ["--user=nobody", "--group=nogroup"];

#[test]
fn the_command_line_of_stud_runs() {
    let (place, backend, front) = (Place::new(), Backend::listen(), free());
    let comma = |address: SocketAddr| format!("{},{}", address.ip(), address.port());
    let (to, from) = (comma(backend.address()), comma(front));
    let words = format!("-n 2 -f {from} -b {to} -c ALL -B 1000 -C 20000 --write-proxy FOLDER/one");
    let _stud = place.start("stud", &words.split(' ').collect::<Vec<_>>(), front);
    let mut client = Dialer::default().server_name("one").connect(front);
    let own = client.wire.socket.local_addr().unwrap();
    client.send(b"GET").unwrap();
    let (ip, to_ip) = (own.ip(), front.ip());
    let expected = format!("PROXY TCP4 {ip} {to_ip} {} {}\r\nGET", own.port(), front.port());
    let said = read_exactly(&mut backend.accept(), expected.len());
    assert_eq!(String::from_utf8(said).unwrap(), expected);
}

/// What a backend hears: the header without its ports, and the values behind the addresses in their order.
fn heard(backend: &Backend, front: SocketAddr, suite: Suite) -> (Vec<u8>, Vec<u8>) {
    let mut client =
        Dialer::suite(suite).alpn(&["h2", "http/1.1"]).server_name("one").connect(front);
    client.send(b"GET").unwrap();
    let mut socket = backend.accept();
    let head = read_exactly(&mut socket, 16);
    let rest = read_exactly(&mut socket, usize::from(u16::from_be_bytes([head[14], head[15]])));
    assert_eq!(read_exactly(&mut socket, 3), b"GET");
    (head, rest[12..].to_vec())
}

#[test]
fn a_backend_hears_from_us_what_it_hears_from_hitch() {
    if !Path::new("/usr/sbin/hitch").exists() {
        return skip("hitch is not installed");
    }
    let (place, backend) = (Place::new(), Backend::listen());
    let to = format!("--backend={}", bracketed(backend.address()));
    let mut said = Vec::new();
    for is_hitch in [true, false] {
        let front = free();
        let from = format!("--frontend={}", bracketed(front));
        let words = [
            &from,
            &to,
            AS[0],
            AS[1],
            "--write-proxy-v2",
            "--alpn-protos=h2,http/1.1",
            "FOLDER/one",
        ];
        let program = if is_hitch { "/usr/sbin/hitch".into() } else { kettle_program() };
        fs::remove_file(place.path("hitch")).unwrap();
        symlink(program, place.path("hitch")).unwrap();
        let _server = place.start("hitch", &words, front);
        // Of TLS 1.2 the suite for keys of this kind.
        let supported = cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256;
        let suites = [TLS13_AES_128, Suite { supported, ..TLS12_AES_128 }];
        said.push(suites.map(|suite| heard(&backend, front, suite)));
    }
    assert_eq!(said[0], said[1]);
}

#[test]
fn frontends_names_and_client_certificates_are_those_of_the_file() {
    let (place, backend) = (Place::new(), Backend::echoing());
    let (first, second, third) = (free(), free(), free());
    fs::write(place.path("ca"), ClientAuthority::new("staff").pem()).unwrap();
    place.config(&format!(
        "backend = \"{}\"
         pem-file = \"FOLDER/one\"
         pem-file = \"FOLDER/two\"
         frontend = {{ host = \"{}\" port = \"{}\" }}
         frontend = {{ host = \"{}\" port = \"{}\" pem-file = \"FOLDER/one\" sni-nomatch-abort = on }}
         frontend = {{
           host = \"{}\"
           port = \"{}\"
           pem-file = {{ cert = \"FOLDER/one\" client-verify = required client-verify-ca = \"FOLDER/ca\" }}
           pem-file = \"FOLDER/two\" # the default
         }}\n",
        bracketed(backend),
        first.ip(),
        first.port(),
        second.ip(),
        second.port(),
        third.ip(),
        third.port()
    ));
    let unit = ["--user", "nobody", "--group", "nogroup", "--config", "FOLDER/conf", "--quiet"];
    let _hitch = place.start("hitch", &unit, third);
    assert!(shows(first, "one") && shows(first, "two"));
    assert!(shows(second, "one") && !shows(second, "two"));
    let carries = |name: &str| {
        let Ok(mut client) = Dialer::default().server_name(name).try_connect(third) else {
            return false;
        };
        // In TLS 1.3 a client learns only afterwards that its certificate was missed.
        client.send(b"ping").is_ok() && client.receive(&mut [0; 4]).is_ok_and(|bytes| bytes == 4)
    };
    assert!(carries("two") && !carries("one"));
}

#[test]
fn a_test_says_what_a_start_would() {
    let place = Place::new();
    let test = |words: &[&str]| place.tool("hitch", words).output();
    let good = test(&["--test", "FOLDER/one"]);
    assert!(good.status.success() && good.stderr.contains("hitch configuration looks ok."));
    place.config("workrs = 3\n");
    let bad = test(&["--test", "--config=FOLDER/conf", "FOLDER/one"]);
    assert_eq!(bad.status.code(), Some(1));
    assert!(bad.stderr.contains("conf:1:1: `workrs` is not a setting"), "{}", bad.stderr);
    place.config("pem-file = \"FOLDER/none\"\n");
    let missing = test(&["--test", "--config=FOLDER/conf"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(missing.stderr.contains("conf:1:12: cannot read"), "{}", missing.stderr);
    for (words, code) in [(["--help"], 0), (["--version"], 0), (["--BROKEN"], 1)] {
        assert_eq!(test(&words).status.code(), Some(code), "{words:?}");
    }
    assert_eq!(test(&[]).status.code(), Some(1));
}

#[test]
fn a_daemon_leaves_its_number_and_reads_its_file_again() {
    let (place, backend) = (Place::new(), Backend::echoing());
    let (before, after) = (free(), free());
    let config = |front: SocketAddr| {
        place.config(&format!(
            "pem-file = \"FOLDER/one\"\nfrontend = \"{}\"\nbackend = \"{}\"\n",
            bracketed(front),
            bracketed(backend)
        ));
    };
    config(before);
    // Not hitch, which must not stay root, and could then not read these files again.
    let file = place.path("conf");
    let words = ["--config", file.to_str().unwrap(), "--daemon", "--pidfile", "FOLDER/pid"];
    let ended = place.tool("stud", &words).output();
    assert!(ended.status.success(), "{}", ended.stderr);
    let number = fs::read_to_string(place.path("pid")).unwrap();
    let process = Pid::from_raw(number.trim().parse().unwrap()).unwrap();
    assert!(shows(before, "one"));
    config(after);
    kill_process(process, Signal::HUP).unwrap();
    wait_until_listening(after);
    assert!(shows(after, "one"));
    let second = place.tool("stud", &words[..2]).args(["--pidfile"]).args([place.path("pid")]);
    assert_eq!(second.output().status.code(), Some(1), "its number is locked");
    kill_process(process, Signal::TERM).unwrap();
    let deadline = Instant::now() + patience();
    while place.path("pid").exists() {
        assert!(Instant::now() < deadline, "it does not end");
        std::thread::yield_now();
    }
}

#[test]
fn what_is_imported_is_checked_and_read() {
    let place = Place::new();
    place.config("pem-file = \"FOLDER/one\"\nchroot = \"/jail\"\n");
    let text = Tool::kettle(["import", "hitch"]).args([place.path("conf")]).args(["--check"]);
    let text = text.succeed();
    assert!(text.contains("conf:2: `chroot` is not carried over"), "{text}");
    fs::write(place.path("kettle.toml"), &text).unwrap();
    let checked = Tool::kettle(["check"]).args([place.path("kettle.toml")]).succeed();
    assert!(checked.contains("is fine"), "{checked}");
}

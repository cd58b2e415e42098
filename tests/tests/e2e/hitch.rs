//! kettle under the names of hitch and stud: their command lines, their configuration, their words to backends.

mod unit;
mod varnish;

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use kettle_tests::certificate::ClientAuthority;
use kettle_tests::environment::kettle_program;
use kettle_tests::prelude::*;
use kettle_tests::tool::{Running, wait_until_listening};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, geteuid, kill_process, pidfd_open};
use rustix::time::Timespec;
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

fn free() -> SocketAddr {
    unused_address()
}

fn bracketed(address: SocketAddr) -> String {
    format!("[{}]:{}", address.ip(), address.port())
}

/// True if a client that asks for a name gets the certificate that has it.
fn shows(address: SocketAddr, name: &str) -> bool {
    Dialer::default().server_name(name).try_connect(address).is_ok()
}

/// Rights are no subject here: hitch wants a user as root, and is content without one otherwise.
const AS: [&str; 2] = ["--user=nobody", "--group=nogroup"];

#[test]
fn the_command_line_of_stud_runs() {
    let place = Place::new();
    let backend = Backend::listen();
    let front = free();
    let comma = |address: SocketAddr| format!("{},{}", address.ip(), address.port());
    let to = comma(backend.address());
    let from = comma(front);
    let words = format!("-n 2 -f {from} -b {to} -c ALL -B 1000 -C 20000 --write-proxy FOLDER/one");
    let _stud = place.start("stud", &words.split(' ').collect::<Vec<_>>(), front);
    let mut client = Dialer::default().server_name("one").connect(front);
    let own = client.wire.socket.local_addr().unwrap();
    client.send(b"GET").unwrap();
    let ip = own.ip();
    let to_ip = front.ip();
    let expected = format!("PROXY TCP4 {ip} {to_ip} {} {}\r\nGET", own.port(), front.port());
    let said = read_exactly(&mut backend.accept(), expected.len());
    assert_eq!(String::from_utf8(said).unwrap(), expected);
}

/// By ID, which is what a client without tickets has.
#[test]
fn sessions_are_resumed_where_the_command_line_has_room_for_them() {
    let place = Place::new();
    let to = bracketed(Backend::echoing());
    let front = free();
    let from = bracketed(front);
    let words = ["-C", "20000", "-f", &from, "-b", &to, "FOLDER/one"];
    let _stud = place.start("stud", &words, front);
    let address = front.to_string();
    let words = ["s_client", "-connect", &address, "-tls1_2", "-no_ticket", "-reconnect"];
    let said = Tool::new("openssl").args(words).output().text();
    assert_eq!(said.matches("Reused, ").count(), 5, "{said}");
}

/// hitch itself, or kettle by its name, with the same words, and where it listens.
fn introducing(place: &Place, is_hitch: bool, backend: SocketAddr) -> (Running, SocketAddr) {
    let front = free();
    let from = format!("--frontend={}", bracketed(front));
    let to = format!("--backend={}", bracketed(backend));
    let alpn = "--alpn-protos=h2,http/1.1";
    let words = [&from, &to, AS[0], AS[1], "--write-proxy-v2", alpn, "FOLDER/one"];
    let program = if is_hitch { "/usr/sbin/hitch".into() } else { kettle_program() };
    fs::remove_file(place.path("hitch")).unwrap();
    symlink(program, place.path("hitch")).unwrap();
    (place.start("hitch", &words, front), front)
}

/// One of each version for the keys of a [`Place`].
fn suites_for_rsa() -> [Suite; 2] {
    let supported = cipher_suite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256;
    [TLS13_AES_128, Suite { supported, ..TLS12_AES_128 }]
}

/// The words to a backend: the header without its ports, and the values behind the addresses in their order.
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
    let place = Place::new();
    let backend = Backend::listen();
    let mut said = Vec::new();
    for is_hitch in [true, false] {
        let (_server, front) = introducing(&place, is_hitch, backend.address());
        said.push(suites_for_rsa().map(|suite| heard(&backend, front, suite)));
    }
    assert_eq!(said[0], said[1]);
}

#[test]
fn frontends_names_and_client_certificates_are_those_of_the_file() {
    let place = Place::new();
    let backend = Backend::echoing();
    let first = free();
    let second = free();
    let third = free();
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

/// A process that nobody waits for, ended by its number.
struct Daemon(Pid);

impl Daemon {
    /// Starts it, and reads its number from `FOLDER/pid`.
    fn start(place: &Place, program: &str, words: &[&str]) -> (Self, String) {
        let words = [words, &["--daemon", "--pidfile", "FOLDER/pid"]].concat();
        let ended = place.tool(program, &words).output();
        assert!(ended.status.success(), "{}", ended.stderr);
        let number = fs::read_to_string(place.path("pid")).unwrap();
        (Self(Pid::from_raw(number.trim().parse().unwrap()).unwrap()), ended.stderr)
    }

    fn reload(&self) {
        kill_process(self.0, Signal::HUP).unwrap();
    }

    fn end(self) {
        self.end_by(Signal::TERM);
    }

    fn end_by(self, signal: Signal) {
        // Ready once the last thread has ended. Its first one may be a zombie while others still hold what it had open.
        let process = pidfd_open(self.0, PidfdFlags::empty()).unwrap();
        kill_process(self.0, signal).unwrap();
        let patience = Timespec::try_from(patience()).unwrap();
        let mut ended = [PollFd::new(&process, PollFlags::IN)];
        assert_eq!(poll(&mut ended, Some(&patience)).unwrap(), 1, "waited in vain for its end");
    }
}

/// A place with such a configuration, and its frontend.
fn configured(more: &str) -> (Place, SocketAddr) {
    let place = Place::new();
    let front = free();
    configure(&place, front, more);
    (place, front)
}

/// A configuration with this beside a certificate, a frontend and a backend.
fn configure(place: &Place, front: SocketAddr, more: &str) {
    let front = bracketed(front);
    let backend = bracketed(Backend::echoing());
    place.config(&format!(
        "pem-file = \"FOLDER/one\"\nfrontend = \"{front}\"\nbackend = \"{backend}\"\n{more}\n"
    ));
}

#[test]
fn a_daemon_leaves_its_number_and_reads_its_file_again() {
    let place = Place::new();
    let before = free();
    let after = free();
    configure(&place, before, "");
    let file = place.path("conf");
    let words = ["--config", file.to_str().unwrap()];
    let (daemon, _) = Daemon::start(&place, "stud", &words);
    assert!(shows(before, "one"));
    let name = fs::read_to_string(format!("/proc/{}/comm", daemon.0.as_raw_nonzero())).unwrap();
    assert_eq!(name, "stud\n", "what it is called in ps");
    configure(&place, after, "");
    daemon.reload();
    wait_until_listening(after);
    assert!(shows(after, "one"));
    let second = [words[0], words[1], "--pidfile", "FOLDER/pid"];
    assert_eq!(place.tool("stud", &second).output().status.code(), Some(1), "its number is locked");
    daemon.end();
    assert!(!place.path("pid").exists());
}

#[test]
fn nobody_else_chooses_what_a_number_or_a_message_is_written_to() {
    let (place, _front) = configured("");
    fs::write(place.path("victim"), "1").unwrap();
    symlink(place.path("victim"), place.path("link")).unwrap();
    for (words, expected) in [
        (["--pidfile", "FOLDER/link", "--quiet"].as_slice(), "it is a symbolic link"),
        (&["--log-filename", "FOLDER/link"], "it is a symbolic link"),
        (&["--pidfile", "FOLDER/conf"], "it holds something else than a number"),
        (
            &["--log-filename", "FOLDER/log", "--pidfile", "FOLDER/log"],
            "it is the file for messages",
        ),
    ] {
        let words = [&["--config=FOLDER/conf"], words].concat();
        let ended = place.tool("stud", &words).output();
        assert_eq!(ended.status.code(), Some(1));
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    }
    assert_eq!(fs::read_to_string(place.path("victim")).unwrap(), "1");
    assert!(fs::read_to_string(place.path("conf")).unwrap().contains("pem-file"));
}

#[test]
fn a_reload_reads_what_only_root_may_and_binds_below_1024() {
    if !geteuid().is_root() {
        return skip("only root can become another user");
    }
    let place = Place::new();
    let front = free();
    let low = SocketAddr::new(kettle_tests::setup::unused_ip(), 443);
    configure(&place, front, "pem-dir = \"FOLDER/more\"");
    fs::create_dir(place.path("more")).unwrap();
    place.pem("more/three", "three");
    for private in ["", "conf", "one", "two", "more", "more/three"] {
        let mode = if place.path(private).is_dir() { 0o700 } else { 0o600 };
        fs::set_permissions(place.path(private), fs::Permissions::from_mode(mode)).unwrap();
    }
    let words = ["--config=FOLDER/conf", AS[0], AS[1]];
    let (daemon, said) = Daemon::start(&place, "hitch", &words);
    assert!(!said.contains("may not"), "{said}");
    assert!(shows(front, "three"));
    place.pem("more/four", "four");
    fs::set_permissions(place.path("more/four"), fs::Permissions::from_mode(0o600)).unwrap();
    configure(&place, low, "pem-dir = \"FOLDER/more\"\npem-file = \"FOLDER/two\"");
    daemon.reload();
    wait_until_listening(low);
    for name in ["one", "two", "three", "four"] {
        assert!(shows(low, name), "{name}");
    }
    daemon.end();
}

#[test]
fn a_number_that_may_not_be_removed_is_emptied() {
    if !geteuid().is_root() {
        return skip("only root can become another user");
    }
    let (place, _front) = configured("");
    let words = ["--config=FOLDER/conf", AS[0], AS[1]];
    // The file that the first left does not stand in the way of the second.
    for _ in 0..2 {
        let (daemon, _) = Daemon::start(&place, "hitch", &words);
        daemon.end();
        assert_eq!(fs::read_to_string(place.path("pid")).unwrap(), "");
    }
    // Nobody was there to empty this one.
    let (daemon, _) = Daemon::start(&place, "hitch", &words);
    daemon.end_by(Signal::KILL);
    assert_ne!(fs::read_to_string(place.path("pid")).unwrap(), "");
    Daemon::start(&place, "hitch", &words).0.end();
}

#[test]
fn a_start_that_fails_leaves_no_number() {
    let place = Place::new();
    let held = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    configure(&place, held.local_addr().unwrap(), "");
    let words = ["--config=FOLDER/conf", "--daemon", "--pidfile=FOLDER/pid"];
    let ended = place.tool("stud", &words).output();
    assert_eq!(ended.status.code(), Some(1));
    assert!(ended.stderr.contains("is in use"), "{}", ended.stderr);
    assert!(!place.path("pid").exists());
}

#[test]
fn what_does_not_hold_is_told_where_messages_go() {
    let place = Place::new();
    let front = free();
    let later = free();
    configure(&place, front, "chroot = \"/jail\"");
    let words = ["--config=FOLDER/conf", "--quiet", "--log-filename=FOLDER/log"];
    let (daemon, said) = Daemon::start(&place, "stud", &words);
    let count = |text: &str, what: &str| text.matches(what).count();
    let logged = || fs::read_to_string(place.path("log")).unwrap();
    assert_eq!((count(&said, "`chroot` is not"), count(&logged(), "`chroot` is not")), (1, 1));
    assert_eq!(logged().contains("serving as root"), geteuid().is_root());
    configure(&place, later, "chroot = \"/jail\"\nring-slots = 9");
    daemon.reload();
    wait_until("the new setting is told", || logged().contains("`ring-slots` is not"));
    assert_eq!(count(&logged(), "`chroot` is not"), 1, "{}", logged());
    daemon.end();
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

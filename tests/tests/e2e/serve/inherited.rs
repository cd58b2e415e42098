//! Sockets that a server is started with, as systemd does it for a socket unit.

use std::net::{TcpListener, TcpStream};
use std::os::fd::{AsFd, IntoRawFd};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::Path;

use rustix::io::{FdFlags, fcntl_dupfd_cloexec, fcntl_setfd};

use super::*;

/// The words of a program that starts another with these sockets, the first as descriptor 3, for the process `of` it says.
fn with(sockets: &[&dyn AsFd], of: &str) -> Vec<String> {
    let mut script = String::new();
    for (socket, number) in sockets.iter().zip(3..) {
        // Above all that the script makes, and open for good: the server may be started again.
        let inherited = fcntl_dupfd_cloexec(socket.as_fd(), 100).unwrap();
        fcntl_setfd(&inherited, FdFlags::empty()).unwrap();
        script += &format!("exec {number}<&{}; ", inherited.into_raw_fd());
    }
    let count = sockets.len();
    script += &format!("export LISTEN_PID={of} LISTEN_FDS={count} LISTEN_FDNAMES=a; exec \"$@\"");
    ["bash", "-c", &script, "bash"].map(str::to_owned).to_vec()
}

fn started(setup: Setup, words: &[String]) -> Kettle {
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    Kettle::start(setup.launched_by(&words))
}

fn refusal(setup: Setup, words: &[String]) -> String {
    let (_, folder) = setup.lay_out();
    let program = kettle_tests::environment::kettle_program();
    let run = Tool::new(&words[0]).args(&words[1..]).args([program]);
    let ended = run.args(["run", "--config"]).args([folder.config()]).output();
    assert!(!ended.status.success());
    ended.stderr
}

fn listener(address: &str) -> String {
    format!("\n[[listener]]\naddress = \"{address}\"\nhttp2 = false\n")
}

fn unix(path: &Path) -> String {
    format!("unix:{}", path.display())
}

#[test]
fn inherited_sockets_are_their_listeners_and_outlive_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.sock");
    let tcp = TcpListener::bind(unused_address()).unwrap();
    let at_path = UnixListener::bind(&path).unwrap();
    let address = tcp.local_addr().unwrap();
    let listeners = listener(&unix(&path)) + &listener(&address.to_string());
    let setup = Setup::default().set("server", "workers = 3").sizes(&[1]).more(&listeners);
    let mut kettle = started(setup, &with(&[&tcp, &at_path], "$$"));
    let ask = |kettle: &Kettle| {
        let words = ["--fail", "--unix-socket", path.to_str().unwrap()];
        // One after the other: the lines of two workers may come in any order.
        assert_eq!(kettle.curl(&words, "/1").output().stdout, content(1));
        assert_eq!(kettle.entry("/1").text("remote"), "unix:");
        assert_eq!(kettle.curl_at(address, &["--fail"], "/1").output().stdout, content(1));
        assert_eq!(kettle.entry("/1").text("remote"), "127.0.0.1");
    };
    ask(&kettle);
    for keepalive in [60, 90] {
        let text = listener(&address.to_string());
        let other = format!("{text}keepalive = \"{keepalive}s\"\n");
        kettle.folder.change_config(&text, &other);
        assert!(kettle.ctl(&["reload"]).output().status.success());
        ask(&kettle);
        kettle.folder.change_config(&other, &text);
    }
    let elsewhere = unix(&folder.path().join("elsewhere"));
    kettle.folder.change_config(&unix(&path), &elsewhere);
    let refused = kettle.ctl(&["reload"]).output();
    let text = format!("started with a socket for {}, which no listener has", unix(&path));
    assert!(!refused.status.success() && refused.text().contains(&text), "{}", refused.text());
    kettle.folder.change_config(&elsewhere, &unix(&path));

    // Those who come while nobody serves wait for the next one.
    kettle.stop();
    let mut early = [UnixStream::connect(&path).unwrap()];
    let mut over_tcp = TcpStream::connect(address).unwrap();
    for socket in &mut early {
        socket.write_all(&get("/")).unwrap();
    }
    over_tcp.write_all(&get("/")).unwrap();
    kettle.start_again();
    let mut answers = [String::new(), String::new()];
    early[0].read_to_string(&mut answers[0]).unwrap();
    over_tcp.read_to_string(&mut answers[1]).unwrap();
    for answer in answers {
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    }
}

#[test]
fn sockets_that_fit_no_listener_are_a_mistake_at_the_start() {
    let tcp = TcpListener::bind(unused_address()).unwrap();
    let address = tcp.local_addr().unwrap();
    let said = refusal(Setup::default(), &with(&[&tcp], "$$"));
    let expected = format!("started with a socket for {address}, which no listener has");
    assert!(said.contains(&expected), "{said}");

    let datagrams = UnixDatagram::unbound().unwrap();
    let file = std::fs::File::open("/dev/null").unwrap();
    let wrong: [&dyn AsFd; 2] = [&datagrams, &file];
    for wrong in wrong {
        let said = refusal(Setup::default(), &with(&[wrong], "$$"));
        assert!(said.contains("descriptor 3 is no stream socket that listens"), "{said}");
    }
}

#[test]
fn sockets_for_another_process_are_nobodys() {
    let tcp = TcpListener::bind(unused_address()).unwrap();
    let kettle = started(Setup::default().sizes(&[1]), &with(&[&tcp], "1"));
    assert!(kettle.curl(&["--fail", "--output", "/dev/null"], "/1").output().status.success());
}

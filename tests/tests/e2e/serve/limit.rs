//! Clients that take too long or are too many: each wait has an end, and the server goes on.

use std::io;
use std::net::TcpStream;
use std::os::unix::net::UnixDatagram;
use std::sync::mpsc::{self, TryRecvError};
use std::time::Instant;

use kettle_tests::content::LARGE;

use super::*;

#[test]
fn a_handshake_that_comes_byte_by_byte_runs_out_of_time() {
    let kettle = Kettle::start(with_a_file().set("tls", "handshake_timeout = \"1s\""));
    let hello = Dialer::default().begin(kettle.address()).hello();
    let mut wire = Wire::connect(kettle.address());
    wire.socket.set_read_timeout(Some(PACE)).unwrap();
    let cut_off =
        hello.iter().any(|byte| wire.write_all(&[*byte]).is_err() || has_ended(&mut wire));
    assert!(cut_off, "the server waited for all {} bytes", hello.len());
    let timed_out = || kettle.status("/total/handshakes_failed/timed_out").as_u64();
    wait_until("it is counted", || timed_out() >= Some(1));
}

#[test]
fn a_head_that_comes_byte_by_byte_runs_out_of_time() {
    let kettle = Kettle::start(with_a_file().set("limits", "request_timeout = \"1s\""));
    let mut client = kettle.connect(TLS13_AES_128);
    client.wire.socket.set_read_timeout(Some(PACE)).unwrap();
    let start = b"GET /a HTTP/1.1\r\nX: ".iter().copied();
    for byte in start.chain(std::iter::repeat_n(b'x', 500)) {
        client.send(&[byte]).unwrap();
        let mut room = [0; 1_000];
        match client.receive(&mut room) {
            Err(error) if is_timeout(&error) => {}
            Ok(count) => {
                client.beyond().extend_from_slice(&room[..count]);
                break;
            }
            Err(error) => panic!("{error}"),
        }
    }
    client.wire.socket.set_read_timeout(Some(patience())).unwrap();
    assert_eq!(client.response().status, 408);
    assert_eq!(client.end(), End::Orderly);
}

#[test]
fn an_empty_line_behind_a_body_begins_no_request() {
    let limits = with_a_file().set("limits", "request_timeout = \"1s\"\nidle_timeout = \"1m\"");
    let kettle = Kettle::start(limits);
    let mut client = kettle.connect(TLS13_AES_128);
    let fields = "Content-Length: 5\r\n";
    client.send(&[request("POST", "/a", fields), b"aaaaa\r\n".to_vec()].concat()).unwrap();
    assert_eq!(client.response().status, 405);
    client.wire.socket.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
    let unasked = client.receive(&mut [0; 1_000]).unwrap_err();
    assert!(is_timeout(&unasked), "{unasked}");
    client.wire.socket.set_read_timeout(Some(patience())).unwrap();
    assert_eq!(client.get("/a").body, b"content");
}

#[test]
fn a_client_that_reads_nothing_is_cut_off() {
    let setup = Setup::paths(paths_here()).sizes(&[LARGE]);
    let kettle = Kettle::start(setup.set("limits", "write_timeout = \"1s\""));
    for path in paths_here() {
        let dialer = Dialer::suite(TLS13_AES_128).reading_slowly();
        let mut client = dialer.connect(kettle.address_by(path));
        client.send(&get(&format!("/{LARGE}"))).unwrap();
        assert!(!kettle.entry(&format!("/{LARGE}")).is_complete(), "{path}");
        assert_eq!(client.end(), End::Cut, "{path}");
    }
}

#[test]
fn a_connection_ends_after_as_many_requests_as_allowed() {
    let kettle = Kettle::start(with_a_file().set("limits", "requests_per_connection = 3"));
    let mut client = kettle.connect(TLS13_AES_128);
    for connection in [None, None, Some("close")] {
        assert_eq!(client.get("/a").header("connection"), connection);
    }
    assert_eq!(client.end(), End::Orderly);
}

#[test]
fn a_connection_beyond_the_limit_waits_until_another_ends() {
    let kettle = Kettle::start(with_a_file().set("limits", "connections_per_worker = 2"));
    let [first, _second] = [(); 2].map(|()| kettle.connect(TLS13_AES_128));
    let mut third = Dialer::suite(TLS13_AES_128).begin(kettle.address());
    third.tls.write_tls(&mut third.wire).unwrap();
    third.wire.socket.set_read_timeout(Some(PACE)).unwrap();
    let kept_waiting = third.wire.read(&mut [0; 1]).unwrap_err();
    assert!(is_timeout(&kept_waiting), "{kept_waiting}");
    drop(first);
    third.wire.socket.set_read_timeout(Some(patience())).unwrap();
    third.finish_handshake_with(&get("/a"));
    assert_eq!(third.response().body, b"content");
}

#[test]
fn a_server_out_of_descriptors_neither_spins_nor_dies() {
    let kettle = Kettle::start(out_of_descriptors(with_a_file(), &[]));
    let crowd: Vec<_> = (0..80).map(|_| Wire::connect(kettle.address())).collect();
    kettle.messages().wait_for("cannot accept a connection");
    let before = processor_time(&kettle);
    let began = Instant::now();
    // The last of them waits in vain, and we with it.
    let mut last = &crowd.last().unwrap().socket;
    last.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
    assert!(is_timeout(&last.read(&mut [0; 1]).unwrap_err()));
    let spent = processor_time(&kettle) - before;
    // A busy machine makes the wait longer, so the share of it counts: one that spins takes all it gets.
    let most = began.elapsed() / if is_guest() { 2 } else { 10 };
    assert!(spent < most, "{spent:?}, of which {most:?} were allowed");

    drop(crowd);
    assert_eq!(kettle.connect(TLS13_AES_128).get("/a").body, b"content");
}

#[test]
fn a_crowd_at_the_start_leaves_the_server_the_descriptors_to_start_with() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notify");
    let systemd = UnixDatagram::bind(&path).unwrap();
    systemd.set_read_timeout(Some(patience())).unwrap();
    let hears_ready = || {
        let mut message = [0; 16];
        let bytes = systemd.recv(&mut message).unwrap();
        assert_eq!(&message[..bytes], b"READY=1");
    };
    let socket = format!("NOTIFY_SOCKET={}", path.display());
    let setup = with_a_file().set("server", "workers = 4");
    let mut kettle = Kettle::start(out_of_descriptors(setup, &["env", &socket]));
    hears_ready();
    kettle.kill();
    let address = kettle.address();
    let (serves, is_serving) = mpsc::channel::<()>();
    let coming = thread::spawn(move || {
        let mut crowd = Vec::new();
        while is_serving.try_recv() == Err(TryRecvError::Empty) && crowd.len() < 200 {
            crowd.extend(TcpStream::connect(address));
        }
    });
    kettle.start_again();
    kettle.messages().wait_for("cannot accept a connection");
    hears_ready();
    drop(serves);
    coming.join().unwrap();
    assert_eq!(kettle.connect(TLS13_AES_128).get("/a").body, b"content");
}

#[test]
fn descriptors_are_left_for_ctl_and_reloads_unless_the_operator_says_otherwise() {
    let route = |number: usize, root: &str| {
        format!("[[site.route]]\nprefix = \"/{number}\"\nroot = \"{root}\"\n")
    };
    let of_one: String = (0..100).map(|number| route(number, "www")).collect();
    let of_many: String = (0..100).map(|number| route(number, &format!("r/{number}"))).collect();
    // A folder has one descriptor, which a reload shares with the configuration in force.
    for (routes, limit) in [("", 200), (of_one.as_str(), 200), (of_many.as_str(), 328)] {
        let mut setup = with_a_file().set("server", "workers = 1").more(routes);
        for number in 0..100 {
            setup = setup.file(&format!("r/{number}/a"), "content");
        }
        let setup = setup.set("tls", "handshake_timeout = \"5m\"");
        let launcher = ["prlimit", &format!("--nofile={limit}:{limit}")];
        let kettle = Kettle::start(setup.launched_by(&launcher));
        let line = format!("{limit} descriptors (ulimit -n): 1 worker, each with up to 76 connec");
        kettle.messages().wait_for(&line);
        let crowd: Vec<_> = (0..250).map(|_| Wire::connect(kettle.address())).collect();
        kettle.wait_for_status("/total/connections_open", 76);
        assert!(kettle.ctl(&["reload"]).succeed().contains("reloaded"));
        let messages = kettle.messages().text();
        assert!(!messages.contains("cannot accept"), "{messages}");
        drop(crowd);
        assert_eq!(kettle.connect(TLS13_AES_128).get("/a").body, b"content");
    }
}

/// A server that accepts more than it has descriptors for.
fn out_of_descriptors(setup: Setup, launcher: &[&str]) -> Setup {
    let setup = setup.set("limits", "connections_per_worker = 1000");
    setup.launched_by(&[launcher, &["prlimit", "--nofile=64:64"]].concat())
}

#[test]
fn memory_of_a_crowd_that_left_is_given_back() {
    if is_guest() {
        return skip("a guest has no time for a crowd");
    }
    let kettle = Kettle::start(with_a_file().set("tls", "handshake_timeout = \"5m\""));
    let before = own_memory(&kettle);
    let hello = Dialer::default().begin(kettle.address()).hello();
    let crowd: Vec<_> = (0..2_500)
        .map(|_| {
            let mut wire = Wire::connect(kettle.address());
            wire.write_all(&hello).unwrap();
            // The server has done its part of the handshake and waits with all it holds.
            assert_ne!(wire.read(&mut [0; 16]).unwrap(), 0);
            wire
        })
        .collect();
    let with_crowd = own_memory(&kettle);
    assert!(with_crowd > before + 10_000, "{before} to {with_crowd} KiB is no crowd");
    drop(crowd);
    let deadline = Instant::now() + patience();
    while own_memory(&kettle) > before + (with_crowd - before) / 4 {
        assert!(Instant::now() < deadline, "{} of {with_crowd} KiB stay", own_memory(&kettle));
        kettle.wait_until_idle();
    }
}

/// Memory of the process that is nobody else's, in KiB.
fn own_memory(kettle: &Kettle) -> u64 {
    let text = fs::read_to_string(format!("/proc/{}/status", kettle.process())).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// The time of the processors that the process has used, from `/proc/PID/stat`, in clock ticks of 10 ms.
fn processor_time(kettle: &Kettle) -> Duration {
    let text = fs::read_to_string(format!("/proc/{}/stat", kettle.process())).unwrap();
    // `utime` and `stime`; the name before them may hold spaces.
    let after_name = text.rsplit(')').next().unwrap();
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let [user, system] = [fields[11], fields[12]].map(|field| field.parse::<u64>().unwrap());
    Duration::from_millis(10 * (user + system))
}

/// True if the server has closed its side; waits for the socket's timeout to find out.
fn has_ended(wire: &mut Wire) -> bool {
    match wire.read(&mut [0; 100]) {
        Ok(count) => count == 0,
        Err(error) => !is_timeout(&error),
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// The time between two bytes of a slow client.
const PACE: Duration = Duration::from_millis(50);

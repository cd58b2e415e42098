use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kettle_config::{Config, Diagnostic, Position};
use kettle_runtime::metrics::Metrics;
use kettle_runtime::tx_path::switch::TxPathOverride;
use kettle_runtime::tx_path::{Reason, TxPath};
use socket2::{Domain, SockAddr, Socket, Type};
use tokio::sync::mpsc;
use tokio::task::LocalSet;

use super::backends::BackendsStatus;
use super::protocol::{REPLY_BYTES_MAX, Reply, Request, parse_request, to_line};
use super::status::{
    CertificateStatus, CertificatesStatus, Counts, ListenerStatus, SpoolStatus, Status,
};
use super::{AdminSocket, Asked, client};

fn status() -> Status {
    let metrics = Metrics::new(1);
    let worker = &metrics.workers()[0];
    worker.connection_opened();
    worker.response(TxPath::User, 200, 1_536, std::time::Duration::ZERO);
    worker.not_preferred(Reason::KillSwitch);
    worker.refused("cipher_missing");
    for reason in FAILURES {
        worker.handshake_failed(reason);
    }
    let total = Counts::from(&metrics.total());
    Status {
        version: "0.1.0".to_owned(),
        process: 42,
        uptime_seconds: 90_061,
        config: "/etc/kettle.toml".to_owned(),
        listeners: vec![ListenerStatus {
            address: "0.0.0.0:443".to_owned(),
            kind: "https".to_owned(),
            path: Some("auto".to_owned()),
        }],
        tx_path: TxPathOverride::User,
        tls: "TLS: user space — this kernel has no kTLS (CONFIG_TLS is not set); see kettle doctor"
            .to_owned(),
        sandbox: "opens only what was configured at the start (Landlock 7)".to_owned(),
        keeper: String::new(),
        issuer: String::new(),
        reloads_done: 1,
        reloads_refused: 2,
        log_lines_dropped: 3,
        certificates: CertificatesStatus::default(),
        backends: BackendsStatus::default(),
        spool: SpoolStatus { bytes: 3 << 20, bytes_max: 4 << 30, files: 2 },
        total: total.clone(),
        workers: vec![total],
    }
}

#[test]
fn requests_survive_the_way_there() {
    for request in [
        Request::Status,
        Request::Reload,
        Request::Reopen,
        Request::Path { tx_path: TxPathOverride::User },
        Request::Path { tx_path: TxPathOverride::Auto },
        Request::Backends,
        Request::Drain { backend: "a".to_owned(), server: "b".to_owned(), is_draining: true },
        Request::Stop,
    ] {
        assert_eq!(parse_request(&to_line(&request).unwrap()), Ok(request));
    }
}

#[test]
fn requests_look_as_documented() {
    assert_eq!(parse_request(b"{\"command\":\"status\"}\n"), Ok(Request::Status));
    assert_eq!(
        parse_request(br#"{"command":"path","placement":"user"}"#),
        Ok(Request::Path { tx_path: TxPathOverride::User })
    );
}

#[test]
fn anything_else_is_no_request() {
    for line in [
        &b""[..],
        b"status",
        b"{}",
        br#"{"command":"explode"}"#,
        br#"{"command":"path"}"#,
        br#"{"command":"path","placement":"kernel"}"#,
        br#"{"command":"stop"}{"command":"stop"}"#,
        b"\xff\xfe",
    ] {
        assert!(parse_request(line).is_err(), "{line:?}");
    }
}

#[test]
fn replies_survive_the_way_back() {
    for reply in [
        Reply::done("done\nand dusted"),
        Reply::Refused { message: "no".to_owned(), diagnostics: vec!["k.toml:1:2: x".to_owned()] },
        Reply::refused("no"),
        Reply::Status(Box::new(status())),
    ] {
        let line = to_line(&reply).unwrap();
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        assert_eq!(serde_json::from_slice::<Reply>(&line).unwrap(), reply);
    }
}

#[test]
fn an_answer_with_endless_findings_tells_the_first_and_how_many_more() {
    let line = "x".repeat(400);
    let diagnostic = Config::default().diagnostic(Position::NOT_WRITTEN, "", line, None);
    let diagnostic = Diagnostic { path: "/etc/kettle/kettle.toml".into(), ..diagnostic };
    for (found, expected) in [(1_000, 1_000), (1_001, 1_001), (100_000, 1_001)] {
        let reply = Reply::mistaken(&vec![diagnostic.clone(); found]);
        assert!(to_line(&reply).unwrap().len() < REPLY_BYTES_MAX as usize);
        let Reply::Refused { diagnostics, .. } = reply else { panic!("{reply:?}") };
        assert_eq!(diagnostics.len(), expected);
        let last = diagnostics.last().unwrap();
        let more = found - found.min(1_000);
        assert_eq!(last.starts_with(&format!("and {more} more: `kettle check`")), more > 0);
    }
    let warned = Reply::done_with("done".to_owned(), &vec![diagnostic; 100_000]);
    assert!(to_line(&warned).unwrap().len() < REPLY_BYTES_MAX as usize);
}

#[test]
fn certificates_that_end_have_lines_of_their_own() {
    let one = |name: &str, seconds_left| CertificateStatus {
        name: name.to_owned(),
        key: "ecdsa".to_owned(),
        not_after: 1_800_000_000,
        seconds_left,
    };
    let certificates = CertificatesStatus {
        ending: 12,
        soonest: vec![one("a.example", -90_061), one("b.example", 0), one("c.example", 7_200)],
    };
    let screen = Status { certificates, ..status() }.to_string();
    let lines = screen.lines().filter(|line| line.starts_with("certificate"));
    assert_eq!(
        lines.collect::<Vec<_>>(),
        [
            "certificate  a.example (ecdsa) expired 1 d 1 h ago",
            "certificate  b.example (ecdsa) ends in 0 s",
            "certificate  c.example (ecdsa) ends in 2 h 0 min",
            "certificate  9 more end soon or have ended",
        ]
    );
}

#[test]
fn status_is_one_readable_screen() {
    let screen = status().to_string();
    for part in [
        "kettle 0.1.0, process 42, up 1 d 1 h\n",
        "config       /etc/kettle.toml (reloads: 1 done, 2 refused)\n",
        "listening    0.0.0.0:443 https, path auto\n",
        "TLS          user space — this kernel has no kTLS (CONFIG_TLS is not set); see\n",
        "             kettle doctor\n",
        "sandbox      opens only what was configured at the start (Landlock 7)\n",
        "switch       user: no further connection moves into the kernel\n",
        "connections  1 open, 1 accepted\n",
        "responses    1: 200 1\n",
        "  user                         1      1.5 KiB\n",
        "  not as preferred  kill_switch 1\n",
        "handshakes   0, 5 failed\n",
        "  failed            alert_received 1, no_application_protocol 1\n",
        "                    no_common_parameters 1, peer_misbehaved 1\n",
        "  refused           cipher_missing 1\n",
        "log          3 lines lost\n",
    ] {
        assert!(screen.contains(part), "missing {part:?} in\n{screen}");
    }
    assert!(screen.lines().all(|line| line.chars().count() <= 80), "too wide\n{screen}");
}

/// Runs a client on a thread while the socket answers with `reply_to`.
fn exchange<Outcome: Send + 'static>(
    socket: AdminSocket,
    reply_to: impl Fn(Request) -> Reply,
    client: impl FnOnce() -> Outcome + Send + 'static,
) -> Outcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let (sender, mut asked) = mpsc::channel(1);
        let (done, mut is_done) = tokio::sync::oneshot::channel();
        let thread = std::thread::spawn(move || {
            let outcome = client();
            done.send(()).unwrap();
            outcome
        });
        let serving = socket.serve(sender);
        tokio::pin!(serving);
        loop {
            tokio::select! {
                ended = &mut serving => panic!("the socket stopped serving: {ended:?}"),
                Some(Asked { request, reply }) = asked.recv() => {
                    reply.send(reply_to(request)).unwrap();
                }
                _ = &mut is_done => break,
            }
        }
        thread.join().unwrap()
    })
}

#[test]
fn a_request_gets_its_answer_over_the_socket() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ctl");
    let socket = AdminSocket::bind(&path).unwrap();
    let reply_to = |request| match request {
        Request::Status => Reply::Status(Box::new(status())),
        _ => Reply::refused("not now"),
    };
    let replies = exchange(socket, reply_to, move || {
        [Request::Status, Request::Stop].map(|request| client::ask(&path, request).unwrap())
    });
    assert_eq!(replies, [Reply::Status(Box::new(status())), Reply::refused("not now")]);
}

#[test]
fn an_endless_request_is_refused() {
    use std::io::{Read, Write};
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ctl");
    let socket = AdminSocket::bind(&path).unwrap();
    let answer = exchange(
        socket,
        |_| Reply::refused("unreachable"),
        move || {
            let mut stream = std::os::unix::net::UnixStream::connect(path).unwrap();
            stream.write_all(&[b'x'; super::REQUEST_BYTES_MAX]).unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        },
    );
    assert!(answer.contains("this is no request"), "{answer}");
}

#[test]
fn only_the_owner_may_open_the_socket_and_it_goes_with_the_server() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ctl");
    let socket = AdminSocket::bind(&path).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    drop(socket);
    assert!(std::fs::read_dir(directory.path()).unwrap().next().is_none());
}

#[test]
fn a_socket_in_use_is_left_alone_and_a_stale_one_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ctl");
    let socket = AdminSocket::bind(&path).unwrap();
    assert_eq!(AdminSocket::bind(&path).unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
    // The file of a killed server: it stays without anyone behind it.
    let stale = directory.path().join("stale");
    drop(std::os::unix::net::UnixListener::bind(&stale).unwrap());
    assert!(AdminSocket::bind(&stale).is_ok());
    drop(socket);
}

/// A server that hangs, and as many clients as its queue takes.
#[test]
fn a_server_that_accepts_nobody_is_not_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("ctl");
    let listener = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
    listener.bind(&SockAddr::unix(&path).unwrap()).unwrap();
    listener.listen(0).unwrap();
    let waiting = std::iter::repeat_with(|| client::connect(&path, Duration::from_millis(1)));
    let mut queue = Vec::new();
    let mut error = None;
    for connected in waiting.take(8) {
        match connected {
            Ok(stream) => queue.push(stream),
            Err(refused) => error = Some(refused),
        }
    }
    assert!(!queue.is_empty());
    let error = client::AskError::new(&path, error.unwrap());
    assert!(error.to_string().contains("is there and does not answer"), "{error}");
    assert_eq!(AdminSocket::bind(&path).unwrap_err().kind(), std::io::ErrorKind::AddrInUse);
}

#[test]
fn a_file_in_the_socket_s_place_is_not_removed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("precious");
    std::fs::write(&path, "data").unwrap();
    assert!(AdminSocket::bind(&path).is_err());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "data");
}

#[test]
fn a_socket_that_cannot_be_connected_to_is_not_taken_for_a_stale_one() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("datagrams");
    let other = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
    assert!(AdminSocket::bind(&path).is_err());
    let client = std::os::unix::net::UnixDatagram::unbound().unwrap();
    client.send_to(b"still there", &path).unwrap();
    assert_eq!(other.recv(&mut [0; 64]).unwrap(), 11);
}

#[test]
fn a_missing_server_is_named_with_the_way_out() {
    let directory = tempfile::tempdir().unwrap();
    let error = client::ask(&directory.path().join("none"), Request::Status).unwrap_err();
    assert!(error.to_string().contains("start the server"), "{error}");
}

/// The answer of a server to each connection: nothing where it is too busy, `None` where it has gone.
#[test]
fn a_stop_is_waited_for_until_the_server_has_gone() {
    let of = |process| Some(Some(Reply::Status(Box::new(Status { process, ..status() }))));
    let done = Reply::done("stopped");
    let mine = of(1);
    let another = of(2);
    let busy = Some(None);
    let gone = None;
    for answers in [
        vec![mine.clone(), Some(Some(done.clone()))],
        vec![mine.clone(), busy.clone(), mine.clone(), Some(Some(done.clone()))],
        vec![mine.clone(), busy.clone(), mine.clone(), busy.clone(), gone.clone()],
        vec![mine.clone(), busy.clone(), gone.clone()],
        vec![mine.clone(), busy, another],
        vec![mine, gone],
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ctl");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        let asked = answers.len();
        let serve = move || {
            let answers = answers.into_iter().map_while(|answer| answer);
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let mut line = String::new();
                BufReader::new(&stream).read_line(&mut line).unwrap();
                let answer = answer.map(|answer| to_line(&answer).unwrap()).unwrap_or_default();
                stream.write_all(&answer).unwrap();
            }
        };
        let server = std::thread::spawn(serve);
        assert_eq!(client::stop(&path).unwrap(), done, "{asked} connections");
        server.join().unwrap();
    }
    let error = client::stop(std::path::Path::new("/nowhere/ctl")).unwrap_err();
    assert!(error.to_string().contains("start the server"), "{error}");
}

const FAILURES: [&str; 5] = [
    "alert_received",
    "no_application_protocol",
    "no_common_parameters",
    "peer_misbehaved",
    "unexpected_end_of_the_connection",
];

/// So often the moment between two calls of `bind` is seen on any machine with two processors.
const BINDS: usize = 100;

/// True if others could connect to a socket in this folder, which all may enter.
fn has_open_socket(folder: &std::path::Path) -> bool {
    // A file that vanishes while it is looked at was not there.
    std::fs::read_dir(folder).into_iter().flatten().flatten().any(|entry| {
        let metadata = std::fs::symlink_metadata(entry.path()).ok();
        metadata.is_some_and(|metadata| {
            let is_for_others = metadata.permissions().mode() & 0o077 != 0;
            let is_folder = metadata.is_dir() && has_open_socket(&entry.path());
            is_for_others && (metadata.file_type().is_socket() || is_folder)
        })
    })
}

#[test]
fn nobody_else_can_connect_at_any_moment_whatever_the_umask() {
    const IN_CHILD: &str = "KETTLE_TEST_WITHOUT_UMASK";
    let name = "admin::tests::nobody_else_can_connect_at_any_moment_whatever_the_umask";
    if std::env::var_os(IN_CHILD).is_none() {
        // The umask is the whole process's, and other tests make files.
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let output = child.args(["--exact", name]).env(IN_CHILD, "1").output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    rustix::process::umask(rustix::fs::Mode::empty());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("admin.sock");
    let is_done = AtomicBool::new(false);
    let was_open = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut was_open = false;
            while !is_done.load(Ordering::Relaxed) {
                was_open |= has_open_socket(folder.path());
            }
            was_open
        });
        for _ in 0..BINDS {
            drop(AdminSocket::bind(&path).unwrap());
        }
        is_done.store(true, Ordering::Relaxed);
        watcher.join().unwrap()
    });
    assert!(!was_open);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "something is left behind");
}

#[test]
fn of_servers_that_start_at_once_one_gets_the_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ctl");
    for round in 0..BINDS {
        if round % 2 == 0 {
            // As a killed server leaves it.
            drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        }
        let start = std::sync::Barrier::new(2);
        let bind = || {
            start.wait();
            AdminSocket::bind(&path)
        };
        let outcomes = std::thread::scope(|scope| {
            [scope.spawn(bind), scope.spawn(bind)].map(|server| server.join().unwrap())
        });
        let bound = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
        assert_eq!(bound, 1, "round {round}: {outcomes:?}");
        std::os::unix::net::UnixStream::connect(&path).unwrap();
        drop(outcomes);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "round {round}");
    }
}

#[test]
fn a_path_that_is_too_long_is_refused_before_anything_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let room = super::PATH_BYTES_MAX - folder.path().as_os_str().len() - 1;
    let longest = folder.path().join("x".repeat(room));
    drop(AdminSocket::bind(&longest).unwrap());
    let error = AdminSocket::bind(&folder.path().join("x".repeat(room + 1))).unwrap_err();
    assert!(error.to_string().contains("has 108 bytes, and 107 are the most"), "{error}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_server_removes_no_other_servers_socket() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ctl");
    let first = AdminSocket::bind(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let _second = AdminSocket::bind(&path).unwrap();
    drop(first);
    std::os::unix::net::UnixStream::connect(&path).unwrap();
}

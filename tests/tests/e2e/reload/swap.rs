//! A new configuration takes the place of the old one while connections are open, or not at all.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use kettle_tests::certificate::Issued;
use kettle_tests::fuse::{Fuse, Silent};
use rustix::process::{Pid, kill_process};

use super::*;

#[test]
fn a_reload_brings_a_new_certificate_to_new_connections_only() {
    let kettle = Kettle::start(Setup::default().file("www/a", "content"));
    let mut old = kettle.connect(TLS13_AES_128);
    old.get("/a");
    let new = exchange_certificate(&kettle);
    assert!(kettle.ctl(&["reload"]).succeed().contains("reloaded"));
    assert_eq!(kettle.shown_certificate(), new.der.as_ref());
    assert_eq!(old.get("/a").body, b"content");
}

#[test]
fn signals_that_come_during_the_start_wait_until_it_serves() {
    let (_, folder) = Setup::default().lay_out();
    let text = std::fs::read(folder.config()).unwrap();
    std::fs::remove_file(folder.config()).unwrap();
    mkfifoat(CWD, folder.config(), Mode::RUSR | Mode::WUSR).unwrap();
    let mut server = folder.kettle("run").start();
    // Waits until it is about to be read.
    let mut pipe = std::fs::OpenOptions::new().write(true).open(folder.config()).unwrap();
    let process = Pid::from_raw(i32::try_from(server.process()).unwrap()).unwrap();
    for signal in [Signal::HUP, Signal::USR1, Signal::USR2] {
        kill_process(process, signal).unwrap();
    }
    // The reload reads what is there then.
    folder.replace("kettle.toml", &text);
    pipe.write_all(&text).unwrap();
    drop(pipe);
    server.stderr.wait_for("reloaded: 1 site");
    server.stderr.wait_for("SIGUSR2 does nothing here");
    kill_process(process, Signal::TERM).unwrap();
    assert!(server.ended().status.success());
}

/// An operator who renews certificates by a script sees nothing else.
#[test]
fn what_will_not_do_after_a_reload_is_told_to_who_asked_for_it() {
    let kettle = Kettle::start(Setup::default().file("www/a", "content"));
    let other = issue(&["other.example"], Kind::Ecdsa);
    kettle.folder.write_certificate("localhost", &other);
    kettle.folder.change_config("workers = 1", "workers = 2");
    let reload = kettle.ctl(&["reload"]).output();
    assert!(reload.status.success() && reload.text().contains("reloaded"), "{}", reload.text());
    for warning in ["`server.workers` changes at the next start", "localhost"] {
        let told = reload
            .stderr
            .lines()
            .any(|line| line.starts_with("warning: ") && line.contains(warning));
        assert!(told, "{warning}: {}", reload.stderr);
    }
    // As long as that is so.
    let again = kettle.ctl(&["--json", "reload"]).succeed();
    assert!(again.contains("\"warnings\": [") && again.contains("`server.workers`"), "{again}");
    kettle.folder.change_config("workers = 2", "workers = 1");
    let undone = kettle.ctl(&["--json", "reload"]).succeed();
    assert!(!undone.contains("`server.workers`"), "{undone}");
}

#[test]
fn a_hangup_reloads() {
    let kettle = Kettle::start(Setup::default().file("www/a", "content"));
    let new = exchange_certificate(&kettle);
    kettle.signal(Signal::HUP);
    kettle.messages().wait_for("reloaded");
    assert_eq!(kettle.shown_certificate(), new.der.as_ref());
}

#[test]
fn more_may_wait_in_a_socket_that_stays() {
    let kettle = Kettle::start(Setup::default().listener("backlog = 1"));
    kettle.reload_with("backlog = 1", "backlog = 64");
    kettle.signal(Signal::STOP);
    // With room for one, Linux lets two wait and answers no others.
    let connect = |_| TcpStream::connect_timeout(&kettle.address(), patience());
    let waiting: Result<Vec<_>, _> = (0..8).map(connect).collect();
    kettle.signal(Signal::CONT);
    assert!(waiting.is_ok(), "{waiting:?}");
}

/// Accepted they are, since nobody else would; served as far as there is room.
#[test]
fn what_waits_in_a_socket_that_goes_waits_for_room() {
    for stops in [false, true] {
        let setup = Setup::default().file("www/a", "content");
        let kettle = Kettle::start(setup.set("limits", "connections_per_worker = 1"));
        let mut first = kettle.connect(TLS13_AES_128);
        let request = get("/a");
        // One without a request would make room.
        first.send(&request[..10]).unwrap();
        let mut waiting: Vec<_> = (0..3)
            .map(|_| {
                let mut client = Dialer::suite(TLS13_AES_128).begin(kettle.address());
                client.tls.write_tls(&mut client.wire).unwrap();
                client
            })
            .collect();
        if stops {
            kettle.signal(Signal::TERM);
        } else {
            let added = SocketAddr::new(kettle.address().ip(), kettle.address().port() + 10_000);
            kettle.reload_with(&kettle.address().to_string(), &added.to_string());
            let deadline = Instant::now() + patience();
            while TcpStream::connect(kettle.address()).is_ok() {
                assert!(Instant::now() < deadline, "the old address still listens");
            }
            assert_eq!(kettle.status("/total/connections_open"), 1);
            first.send(&request[10..]).unwrap();
            assert_eq!(first.response().body, b"content");
        }
        for client in &mut waiting {
            client.finish_handshake_with(&get("/a"));
            assert_eq!(client.response().body, b"content");
        }
    }
}

#[test]
fn a_configuration_with_a_mistake_leaves_the_old_one_in_force() {
    let kettle = Kettle::start(Setup::default().file("www/a", "content"));
    kettle.folder.change_config("root = \"www\"", "rot = \"www\"");
    let said = kettle.ctl(&["reload"]).fail("`rot` is not a setting");
    assert!(said.contains("old one stays"), "{said}");
    kettle.signal(Signal::HUP);
    kettle.messages().wait_until("a second refusal", |bytes| {
        let text = String::from_utf8_lossy(bytes);
        (text.matches("`rot` is not a setting").count() == 2).then_some(())
    });
    assert_eq!(kettle.connect(TLS13_AES_128).get("/a").body, b"content");
    assert_eq!(kettle.status("/reloads_refused"), 2);
}

/// A server whose certificate lies, from now on, on a disk that never answers.
fn certificate_that_hangs(kettle: &Kettle) -> Option<Fuse> {
    let files = &[("hangs", 1_000, Silent::ReadBeyond(0))];
    let fuse = Fuse::mount_or_skip(kettle.folder.path("mounted"), files)?;
    std::fs::remove_file(kettle.folder.path("localhost.pem")).unwrap();
    let hanging = kettle.folder.path("mounted/hangs");
    std::os::unix::fs::symlink(hanging, kettle.folder.path("localhost.pem")).unwrap();
    Some(fuse)
}

#[test]
fn a_reload_that_waits_for_a_disk_holds_up_nothing_else() {
    let kettle = Kettle::start(Setup::default().file("www/a", "content"));
    let Some(fuse) = certificate_that_hangs(&kettle) else { return };
    let mut first = kettle.ctl(&["reload"]).start();
    fuse.wait_for_unanswered(1);
    assert_eq!(kettle.status("/reloads_refused"), 0);
    kettle.ctl(&["reopen"]).run();
    kettle.ctl(&["path", "user"]).run();
    kettle.signal(Signal::HUP);
    assert_eq!(kettle.status("/reloads_refused"), 0, "two at a time");
    drop(fuse);
    let refused = first.ended();
    assert!(!refused.status.success() && refused.stderr.contains("old one stays"));
    // The files of the reload that was asked for meanwhile are read anew.
    std::fs::remove_file(kettle.folder.path("localhost.pem")).unwrap();
    let new = exchange_certificate(&kettle);
    kettle.ctl(&["reload"]).run();
    assert_eq!(kettle.shown_certificate(), new.der.as_ref());
}

#[test]
fn a_server_whose_reload_waits_for_a_disk_stops() {
    let mut kettle = Kettle::start(Setup::default().file("www/a", "content"));
    let Some(fuse) = certificate_that_hangs(&kettle) else { return };
    kettle.signal(Signal::HUP);
    fuse.wait_for_unanswered(1);
    kettle.ctl(&["stop"]).run();
    // Linux lets no thread end whose request FUSE has taken, and no process before its threads.
    drop(fuse);
    assert!(kettle.ended().status.success());
}

#[test]
fn a_server_that_stops_opens_nothing_anew() {
    let mut kettle = Kettle::start(Setup::paths(&["user"]).sizes(&[4_000_000]));
    let mut client = Dialer::default().reading_slowly().connect(kettle.address());
    client.send(&get("/4000000")).unwrap();
    assert!(client.receive(&mut [0; 1]).unwrap() > 0);
    kettle.signal(Signal::TERM);
    kettle.messages().wait_for("finishing requests");
    assert!(!kettle.ctl(&["reload"]).output().status.success());
    kettle.messages().wait_for("the server is about to end");
    drop(client);
    assert!(kettle.ended().status.success());
}

#[test]
fn a_key_that_does_not_fit_its_certificate_leaves_the_old_ones_in_force() {
    let kettle = Kettle::start(Setup::default().file("www/a", "content"));
    let before = kettle.shown_certificate();
    kettle.folder.write("localhost.pem", issue(&["localhost"], Kind::Ecdsa).chain);
    assert!(!kettle.ctl(&["reload"]).output().status.success());
    assert_eq!(kettle.shown_certificate(), before);
}

#[test]
fn a_reload_opens_new_listeners_and_closes_old_ones() {
    let kettle = Kettle::start(Setup::paths(&["user", "auto"]).file("www/a", "content"));
    let [kept, closed] = kettle.addresses[..] else { panic!() };
    let mut old = Dialer::suite(TLS13_AES_128).connect(closed);
    let added = SocketAddr::new(closed.ip(), closed.port() + 10_000);
    kettle.reload_with(&closed.to_string(), &added.to_string());
    for address in [kept, added] {
        let mut client = Dialer::suite(TLS13_AES_128).connect(address);
        assert_eq!(client.get("/a").body, b"content");
    }
    assert!(TcpStream::connect(closed).is_err());
    // A connection made there stays until its response.
    assert_eq!(old.get("/a").body, b"content");
}

#[test]
fn a_download_outlives_reloads() {
    let kettle = Kettle::start(Setup::paths(paths_here()).sizes(&[LARGE]));
    let dialer = Dialer::suite(TLS13_AES_128).reading_slowly();
    for path in paths_here() {
        let mut client = dialer.connect(kettle.address_by(path));
        client.send(&get(&format!("/{LARGE}"))).unwrap();
        client.response_head();
        let _ = kettle.ctl(&["reload"]).succeed();
        assert_same(&client.receive_exactly(LARGE), &content(LARGE), path);
    }
}

#[test]
fn no_request_fails_while_reloads_go_on() {
    let setup = Setup::paths(paths_here()).sizes(&[100, 70_000]).set("server", "workers = 2");
    let kettle = Kettle::start(setup);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for path in paths_here() {
            let address = kettle.address_by(path);
            let is_over = &is_over;
            scope.spawn(move || {
                let dialer = Dialer::suite(TLS13_AES_128);
                let mut client = dialer.connect(address);
                while !is_over.load(Ordering::Relaxed) {
                    for bytes in [100, 70_000] {
                        let response = client.get(&format!("/{bytes}"));
                        assert_same(&response.body, &content(bytes), path);
                        if response.header("connection") == Some("close") {
                            client = dialer.connect(address);
                        }
                    }
                }
            });
        }
        for _ in 0..scaled(30, 5) {
            let _ = kettle.ctl(&["reload"]).succeed();
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

fn exchange_certificate(kettle: &Kettle) -> Issued {
    let new = issue(&["localhost"], Kind::Ecdsa);
    kettle.folder.write_certificate("localhost", &new);
    new
}

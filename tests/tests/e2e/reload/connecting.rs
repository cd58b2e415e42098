//! Clients that connect in the moment when an address is listened on no more: held off or answered, but never reset.

use std::io::{ErrorKind, Read};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use kettle_tests::environment::Ends;

use super::*;

#[test]
fn a_reload_that_gives_an_address_up_resets_nobody() {
    let kettle = Kettle::start(Setup::default().listener("kind = \"redirect\"").listener(""));
    let address = kettle.address();
    let other = unused_address();
    let answered = while_clients_connect(address, || {
        for _ in 0..scaled(24, 2) {
            let [before, after] = [address, other].map(|it| it.to_string());
            for (from, to) in [(&before, &after), (&after, &before)] {
                kettle.reload_with(from, to);
            }
        }
    });
    assert!(answered > 0);
}

/// As root, and as somebody from whom Linux takes no filter that would hold clients off.
#[test]
fn a_stop_resets_nobody() {
    for user in ["", "user = \"nobody\""] {
        let setup = Setup::default().listener("kind = \"redirect\"").set("server", "workers = 2");
        let mut kettle = Kettle::start(setup.set("server", user));
        let answered = while_clients_connect(kettle.address(), || {
            for _ in 0..scaled(6, 1) {
                kettle.restart();
            }
        });
        assert!(answered > 0);
        kettle.stop();
        let messages = kettle.messages().text();
        assert!(!messages.contains("may be reset"), "{messages}");
    }
}

/// Returns how many were answered by then. Those for which nobody listens, or that are held off, come again.
fn while_clients_connect(address: SocketAddr, work: impl FnOnce()) -> usize {
    let answered = AtomicUsize::new(0);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    answered.fetch_add(usize::from(is_answered(address)), Ordering::Relaxed);
                }
            });
        }
        let _over = Ends(&is_over);
        work();
    });
    answered.into_inner()
}

/// False if there was no connection.
fn is_answered(address: SocketAddr) -> bool {
    let mut connection = match TcpStream::connect_timeout(&address, Duration::from_millis(20)) {
        Ok(connection) => connection,
        Err(error)
            if [ErrorKind::ConnectionRefused, ErrorKind::TimedOut].contains(&error.kind()) =>
        {
            return false;
        }
        Err(error) => panic!("{error}"),
    };
    connection.set_read_timeout(Some(patience())).unwrap();
    connection.write_all(&get("/")).unwrap();
    let mut response = Vec::new();
    connection.read_to_end(&mut response).unwrap();
    assert!(response.starts_with(b"HTTP/1.1 308 "), "{}", String::from_utf8_lossy(&response));
    true
}

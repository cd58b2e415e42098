//! The orderly end: what is under way is finished, for a bounded time.

use std::net::TcpStream;

use rustix::process::Signal;

use kettle_tests::client::{Client, Dialer, End};
use kettle_tests::content::{LARGE, assert_same, content};
use kettle_tests::environment::paths_here;
use kettle_tests::http::{Connection, get};
use kettle_tests::kettle::Kettle;
use kettle_tests::setup::Setup;
use kettle_tests::suite::TLS13_AES_128;

#[test]
fn a_stopping_server_finishes_downloads_and_takes_no_new_connections() {
    let mut kettle = Kettle::start(Setup::paths(paths_here()).sizes(&[LARGE]));
    let mut downloads: Vec<_> = paths_here().iter().map(|path| begin(&kettle, path)).collect();
    let mut idle = kettle.connect_by(paths_here()[0], TLS13_AES_128);
    idle.get("/missing");
    kettle.signal(Signal::TERM);
    kettle.messages().wait_for("finishing requests in flight");
    assert_eq!(idle.end(), End::Orderly);
    assert!(TcpStream::connect(kettle.address()).is_err());
    for client in &mut downloads {
        assert_same(&client.body(LARGE), &content(LARGE), "a download in flight");
        assert_eq!(client.end(), End::Orderly);
    }
    drop(downloads);
    assert!(kettle.ended().status.success());
}

#[test]
fn ctl_stop_returns_when_the_server_has_stopped() {
    let mut kettle = Kettle::start(Setup::default());
    assert!(kettle.ctl(&["stop"]).succeed().contains("stopped"));
    assert!(kettle.ended().status.success());
}

#[test]
fn a_stopping_server_waits_no_longer_than_configured() {
    let setup = Setup::paths(paths_here()).sizes(&[LARGE]);
    let mut kettle = Kettle::start(setup.set("server", "drain_timeout = \"1s\""));
    let mut downloads: Vec<_> = paths_here().iter().map(|path| begin(&kettle, path)).collect();
    kettle.signal(Signal::TERM);
    assert!(kettle.ended().status.success());
    for client in &mut downloads {
        assert_eq!(client.end(), End::Cut);
    }
}

/// A download that waits for its client.
fn begin(kettle: &Kettle, path: &str) -> Client {
    let dialer = Dialer::suite(TLS13_AES_128).reading_slowly();
    let mut client = dialer.connect(kettle.address_by(path));
    client.send(&get(&format!("/{LARGE}"))).unwrap();
    assert_eq!(client.response_head().status, 200);
    client
}

//! Small responses that arrive faster than their disk takes them: their fetches wait, and what arrives is kept.

use std::net::SocketAddr;
use std::thread;

use kettle_tests::client::Dialer;
use kettle_tests::environment::wait_until;
use kettle_tests::http::{Connection, get};
use kettle_tests::setup::{Setup, unused_address};
use kettle_tests::tool::scrape;

use super::{Cached, ok, status};

const OBJECTS: usize = 4_000;
const CLIENTS: usize = 64;
/// Twice as much in all as may wait to be written.
const BODY_BYTES: usize = 16 * 1_024;

/// Asks for each object once; how many came from the store.
fn ask_for_all(address: SocketAddr) -> usize {
    let ask = move |first: usize| {
        let mut client = Dialer::default().connect(address);
        let objects = (first..OBJECTS).step_by(CLIENTS);
        let hits = objects.filter(|number| {
            client.send(&get(&format!("/app/{number}"))).unwrap();
            status(&client.response()).starts_with("kettle; hit")
        });
        hits.count()
    };
    thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS).map(|first| scope.spawn(move || ask(first))).collect();
        clients.into_iter().map(|client| client.join().unwrap()).sum()
    })
}

#[test]
fn what_arrives_faster_than_the_disk_takes_it_is_kept() {
    let metrics = unused_address();
    // Each object takes its disk a millisecond at least.
    let slow = ["strace", "-f", "-qq", "--seccomp-bpf", "-o", "/dev/null", "-e", "trace=linkat"];
    let slow = [&slow[..], &["-e", "inject=linkat:delay_enter=1000", "setpriv"]].concat();
    let launcher = [&slow[..], &["--pdeathsig", "KILL"]].concat();
    let setup = Setup::default().metrics(metrics).launched_by(&launcher);
    let cached = Cached::set_up(setup, "", "", "");
    let address = cached.kettle.address();
    cached.backend.answer_all(&ok("Cache-Control: max-age=1000\r\n", &"x".repeat(BODY_BYTES)));
    assert_eq!(ask_for_all(address), 0);
    let kept = format!("kettle_cache_objects{{store=\"main\"}} {OBJECTS}\n");
    wait_until(&kept, || scrape(metrics).contains(&kept));
    assert!(ask_for_all(address) >= OBJECTS * 99 / 100);
    let counted = scrape(metrics);
    assert!(counted.contains("kettle_cache_store_errors_total{store=\"main\"} 0\n"), "{counted}");
}

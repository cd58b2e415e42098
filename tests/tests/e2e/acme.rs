//! Certificates that kettle fetches itself, from pebble.

use std::path::PathBuf;

use kettle_tests::environment::wait_until;
use kettle_tests::kettle::Kettle;
use kettle_tests::pebble::{Pebble, PebbleSetup};
use kettle_tests::setup::Setup;
use kettle_tests::tool::Tool;

/// A server whose site has no certificate but what it fetches from this authority, with more settings of `[site.acme]`.
fn fetching(pebble: &PebbleSetup, more: &str) -> Setup {
    Setup::default()
        .without_certificate()
        .listener_at(pebble.tls(), "http2 = false")
        .listener_at(pebble.http(), "kind = \"http\"\nsites = [\"localhost\"]")
        .site(&format!("[site.acme]\n{more}"))
        .file("www/hello", "hello")
        .more(&pebble.table("pebble", ""))
}

/// The site by a client that trusts nobody but pebble.
fn get(kettle: &Kettle, pebble: &Pebble) -> Tool {
    let root = kettle.folder.path("pebble-root.pem");
    std::fs::write(&root, pebble.root()).unwrap();
    let address = kettle.address();
    Tool::new("curl")
        .args(["--silent", "--show-error", "--cacert"])
        .args([root])
        .args(["--resolve", &format!("localhost:{}:{}", address.port(), address.ip())])
        .args([format!("https://localhost:{}/hello", address.port())])
}

fn current(kettle: &Kettle) -> PathBuf {
    std::fs::read_link(kettle.folder.path("state/acme/certificates/localhost/current")).unwrap()
}

/// Waits until the certificate of the folder is in force.
fn wait_until_served(kettle: &Kettle, pebble: &Pebble) {
    kettle.messages().wait_for("certificate of localhost is there");
    wait_until("the certificate is in force", || get(kettle, pebble).output().status.success());
}

#[test]
fn a_site_gets_its_first_certificate_by_a_handshake() {
    let setup = PebbleSetup::default();
    let Some(pebble) = setup.start_or_skip() else { return };
    let kettle = Kettle::start(fetching(&setup, "challenges = [\"tls-alpn-01\"]"));
    wait_until_served(&kettle, &pebble);
    assert_eq!(get(&kettle, &pebble).succeed(), "hello");
    let said = kettle.messages().text();
    assert!(said.contains("pebble, 90 days, tls-alpn-01"), "{said}");
}

#[test]
fn a_site_gets_its_first_certificate_over_http() {
    let setup = PebbleSetup::default();
    let Some(pebble) = setup.start_or_skip() else { return };
    let kettle = Kettle::start(fetching(&setup, "challenges = [\"http-01\"]"));
    wait_until_served(&kettle, &pebble);
    assert_eq!(get(&kettle, &pebble).succeed(), "hello");
    assert!(kettle.messages().text().contains("pebble, 90 days, http-01"));
}

#[test]
fn a_restart_orders_nothing() {
    let setup = PebbleSetup::default();
    let Some(pebble) = setup.start_or_skip() else { return };
    let mut kettle = Kettle::start(fetching(&setup, ""));
    wait_until_served(&kettle, &pebble);
    let before = current(&kettle);
    // Even if it has forgotten all but the certificate; then it says that it looked.
    std::fs::remove_file(kettle.folder.path("state/acme/orders/localhost/standing.json")).unwrap();
    kettle.restart();
    assert_eq!(get(&kettle, &pebble).succeed(), "hello");
    kettle.messages().wait_for("pebble wants localhost renewed");
    assert_eq!(current(&kettle), before);
    assert_eq!(pebble.lines_with("Added order"), 1);
}

#[test]
fn a_short_certificate_is_renewed_three_times_without_a_failed_handshake() {
    let setup = PebbleSetup::default().lifetime(36);
    let Some(pebble) = setup.start_or_skip() else { return };
    let kettle = Kettle::start(fetching(&setup, ""));
    wait_until_served(&kettle, &pebble);
    let mut seen = vec![current(&kettle)];
    while seen.len() < 4 {
        assert_eq!(get(&kettle, &pebble).succeed(), "hello");
        let now = current(&kettle);
        if !seen.contains(&now) {
            seen.push(now);
        }
    }
}

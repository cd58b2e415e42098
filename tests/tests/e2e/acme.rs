//! Certificates that kettle fetches itself, from pebble.

mod bounds;
mod failures;
mod kills;
mod programs;
mod records;
mod rows;
mod ways;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kettle_tests::front::{Act, Front};
use kettle_tests::pebble::{Pebble, PebbleSetup};
use kettle_tests::prelude::*;
use rustix::process::{Pid, Signal, geteuid, kill_process};
use serde_json::{Value, json};

/// A server whose site has no certificate but what it fetches from this authority, with more settings of `[site.acme]`.
fn fetching(pebble: &PebbleSetup, more: &str) -> Setup {
    fetching_from(pebble, more, &pebble.table("pebble", ""))
}

/// The same with the authority that this table says.
fn fetching_from(pebble: &PebbleSetup, more: &str, table: &str) -> Setup {
    Setup::default()
        .without_certificate()
        .listener_at(pebble.tls(), "http2 = false")
        .listener_at(pebble.http(), "kind = \"http\"\nsites = [\"localhost\"]")
        .site(&format!("[site.acme]\n{more}"))
        .file("www/hello", "hello")
        .more(table)
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

/// Puts one text in the place of another in the configuration, and has the server take that. In the same file: the state folder lies
/// beside it, and the sandbox opens no other one there.
fn reload_with(kettle: &Kettle, old: &str, new: &str) {
    let text = std::fs::read_to_string(kettle.folder.config()).unwrap();
    assert!(text.contains(old), "there is no `{old}` in\n{text}");
    std::fs::write(kettle.folder.config(), text.replace(old, new)).unwrap();
    let _ = kettle.ctl(&["reload"]).succeed();
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
    // Nothing is written any more once it knows when to renew.
    wait_until("it has asked", || failures::standing(&kettle)["window"].is_object());
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

#[test]
fn names_that_were_validated_before_are_not_validated_again() {
    let setup = PebbleSetup::default().lifetime(16).environment("PEBBLE_AUTHZREUSE", "100");
    let Some(pebble) = setup.start_or_skip() else { return };
    let kettle = Kettle::start(fetching(&setup, ""));
    wait_until_served(&kettle, &pebble);
    kettle.messages().wait_for("16 s, validated before");
}

#[test]
fn an_account_is_tied_to_one_that_is_there_already() {
    let key = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";
    let setup = PebbleSetup::default().set(&format!(
        "\"externalAccountBindingRequired\": true, \"externalAccountMACKeys\": {{\"kid-1\": \"{key}\"}}"
    ));
    let Some(pebble) = setup.start_or_skip() else { return };
    let kettle = Kettle::start(fetching(&setup, ""));
    kettle.messages().wait_for("externalAccountRequired");
    let more = "external_account = { id = \"kid-1\", key_file = \"eab.key\" }";
    let own = fetching_from(&setup, "", &setup.table("pebble", more)).file("eab.key", key);
    drop(kettle);
    let kettle = Kettle::start(own);
    wait_until_served(&kettle, &pebble);
}

#[test]
fn a_profile_is_one_that_the_authority_has() {
    let setup = PebbleSetup::default();
    let Some(pebble) = setup.start_or_skip() else { return };
    let of = |profile: &str| {
        let more = format!("profile = \"{profile}\"");
        Kettle::start(fetching_from(&setup, "", &setup.table("pebble", &more)))
    };
    let unknown = of("eternal");
    unknown.messages().wait_for("has no profile `eternal`; it has");
    drop(unknown);
    let known = of("shortlived");
    wait_until_served(&known, &pebble);
    assert!(known.messages().text().contains("pebble, 6 days"));
}

#[test]
fn two_servers_with_one_state_folder_order_once_and_both_show_it() {
    let setup = PebbleSetup::default();
    let Some(pebble) = setup.start_or_skip() else { return };
    let first = Kettle::start(fetching(&setup, ""));
    let state = first.folder.path("state");
    let table = setup.table("pebble", "");
    let second = Setup::default()
        .without_certificate()
        .set("server", &format!("state_directory = \"{}\"", state.display()))
        .site("[site.acme]")
        .file("www/hello", "hello")
        .more(&table);
    let second = Kettle::start(second);
    second.messages().wait_for("another server fetches certificates into this state folder");
    wait_until_served(&first, &pebble);
    wait_until("the other shows it", || get(&second, &pebble).output().status.success());
    assert_eq!(pebble.lines_with("Added order"), 1);
}

#[test]
fn an_issuer_that_is_killed_is_told_of_and_the_server_serves_on() {
    let setup = PebbleSetup::default();
    let Some(pebble) = setup.start_or_skip() else { return };
    let metrics = unused_address();
    let kettle = Kettle::start(fetching(&setup, "").metrics(metrics));
    wait_until_served(&kettle, &pebble);
    let has_next = || scrape(metrics).contains("kettle_acme_next_attempt_seconds{site=");
    wait_until("the next step is told", has_next);
    kettle.wait_for_status("/issuer", "running");
    let issuer = child_of(child_of(kettle.process(), "kettle-warden"), "kettle-issuer");
    kill_process(Pid::from_raw(issuer.cast_signed()).unwrap(), Signal::KILL).unwrap();
    kettle.wait_for_status("/issuer", "not running; it is started again within a minute");
    assert!(!has_next(), "nobody knows");
    assert_eq!(get(&kettle, &pebble).succeed(), "hello");
}

#[test]
fn a_warden_that_is_killed_is_told_of_at_once_and_the_server_serves_on() {
    let setup = PebbleSetup::default();
    let Some(pebble) = setup.start_or_skip() else { return };
    let kettle = Kettle::start(fetching(&setup, ""));
    wait_until_served(&kettle, &pebble);
    kettle.wait_for_status("/issuer", "running");
    let warden = child_of(kettle.process(), "kettle-warden");
    let issuer = child_of(warden, "kettle-issuer");
    kill_process(Pid::from_raw(warden.cast_signed()).unwrap(), Signal::KILL).unwrap();
    kettle.wait_for_status("/issuer", "gone: certificates are not renewed; restart kettle");
    kettle.messages().wait_for("the process that fetches certificates is gone");
    wait_until("the issuer is gone, too", || !std::fs::exists(format!("/proc/{issuer}")).unwrap());
    let said = kettle.ctl(&["acme", "status"]).output();
    assert!(said.stderr.contains("does not run"), "{}{}", said.text(), said.stderr);
    assert_eq!(get(&kettle, &pebble).succeed(), "hello");
}

#[test]
fn an_issuer_that_hangs_is_told_of_and_goes_on_where_it_was() {
    let setup = PebbleSetup::default();
    let Some(pebble) = setup.start_or_skip() else { return };
    let kettle = Kettle::start(fetching(&setup, ""));
    wait_until_served(&kettle, &pebble);
    let issuer = child_of(child_of(kettle.process(), "kettle-warden"), "kettle-issuer");
    let issuer = Pid::from_raw(issuer.cast_signed()).unwrap();
    kill_process(issuer, Signal::STOP).unwrap();
    let said = kettle.ctl(&["acme", "status"]).output();
    assert!(said.stderr.contains("has too much to do"), "{}{}", said.text(), said.stderr);
    // All else goes on, certificates that are put there by hand as well.
    assert_eq!(get(&kettle, &pebble).succeed(), "hello");
    let _ = kettle.ctl(&["reload"]).succeed();
    kill_process(issuer, Signal::CONT).unwrap();
    wait_until("it answers", || kettle.ctl(&["acme", "status"]).output().status.success());
}

#[test]
fn a_reload_that_names_more_has_a_certificate_for_all_names_ordered() {
    let setup = PebbleSetup::default();
    let Some(pebble) = setup.start_or_skip() else { return };
    let kettle = Kettle::start(fetching(&setup, ""));
    wait_until_served(&kettle, &pebble);
    let before = current(&kettle);
    reload_with(&kettle, "names = [\"localhost\"]", "names = [\"localhost\", \"www.example\"]");
    wait_until("the new certificate is there", || current(&kettle) != before);
    let ask = |name: &str| {
        let root = kettle.folder.path("pebble-root.pem");
        let port = kettle.address().port();
        let ip = kettle.address().ip();
        Tool::new("curl")
            .args(["--silent", "--show-error", "--cacert"])
            .args([root])
            .args(["--resolve", &format!("{name}:{port}:{ip}")])
            .args([format!("https://{name}:{port}/hello")])
            .output()
    };
    wait_until("it is in force", || ask("www.example").status.success());
    assert!(ask("localhost").status.success());
}

#[test]
fn a_reload_does_not_bring_the_first_authority() {
    let setup = PebbleSetup::default();
    let kettle = Kettle::start(Setup::default());
    let config = std::fs::read_to_string(kettle.folder.config()).unwrap();
    kettle.folder.replace("kettle.toml", config + &setup.table("pebble", ""));
    let said = kettle.ctl(&["reload"]).output();
    assert!(!said.status.success());
    let text = format!("{}{}", said.text(), said.stderr);
    assert!(text.contains("since its start it has no issuer"), "{text}");
}

#[test]
fn an_issuer_of_a_server_that_gives_root_up_gives_it_up_too() {
    if !geteuid().is_root() {
        return skip("only root can give root up");
    }
    let setup = PebbleSetup::default();
    let Some(pebble) = setup.start_or_skip() else { return };
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let state = folder.path().join("state").display().to_string();
    let as_nobody = fetching(&setup, "")
        .set("server", "user = \"nobody\"")
        .set("server", &format!("state_directory = \"{state}\""));
    let kettle = Kettle::start(as_nobody);
    wait_until_served(&kettle, &pebble);
    let warden = child_of(kettle.process(), "kettle-warden");
    let status = format!("/proc/{}/status", child_of(warden, "kettle-issuer"));
    let status = std::fs::read_to_string(status).unwrap();
    let value = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().split_whitespace().collect::<Vec<_>>()
    };
    assert!(value("Uid:").iter().all(|uid| *uid != "0"), "{status}");
    assert_eq!(value("CapPrm:"), ["0000000000000000"]);
    assert_eq!(value("NoNewPrivs:"), ["1"]);
    // A reload has it read the configuration as root once more.
    kettle
        .folder
        .change_config("names = [\"localhost\"]", "names = [\"localhost\", \"www.example\"]");
    let link = format!("{state}/acme/certificates/localhost/current");
    let current = || std::fs::read_link(&link).unwrap();
    let before = current();
    let _ = kettle.ctl(&["reload"]).succeed();
    wait_until("the new certificate is there", || current() != before);
}

#[test]
fn an_operator_has_a_certificate_renewed_and_revoked() {
    let setup = PebbleSetup::default();
    let Some(pebble) = setup.start_or_skip() else { return };
    let kettle = Kettle::start(fetching(&setup, "reuse_key = true"));
    wait_until_served(&kettle, &pebble);
    let file = |name: &str| {
        let path = format!("state/acme/certificates/localhost/current/{name}");
        std::fs::read_to_string(kettle.folder.path(&path)).unwrap()
    };
    let before = current(&kettle);
    let key = file("key.pem");
    // As long as its authority is asked for something, it is refused.
    let does = |word: &str| kettle.ctl(&["acme", word, "localhost"]).output().status.success();
    wait_until("it may be renewed", || does("renew"));
    wait_until("it is renewed", || current(&kettle) != before);
    assert_eq!(file("key.pem"), key);
    let before = current(&kettle);
    wait_until("it may be revoked", || does("revoke"));
    wait_until("another one is there", || current(&kettle) != before);
    assert_ne!(file("key.pem"), key);
    assert_eq!(pebble.lines_with("POST /revoke-cert -> calling handler()"), 1);
}

/// The process of this name that another one has forked.
fn child_of(parent: u32, name: &str) -> u32 {
    let path = format!("/proc/{parent}/task/{parent}/children");
    let children = std::fs::read_to_string(path).unwrap();
    let mut children = children.split_whitespace().map(|child| child.parse().unwrap());
    let is_named = |child: &u32| {
        std::fs::read_to_string(format!("/proc/{child}/comm")).is_ok_and(|comm| comm.trim() == name)
    };
    children.find(is_named).unwrap()
}

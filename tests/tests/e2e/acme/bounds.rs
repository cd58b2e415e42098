//! The acts to which neither an authority nor an operator can bring a server: order over and over, ask for ever, lose what it
//! has.

use super::failures::{STANDING, behind_front, failure, pause, problem, standing};
use super::*;

/// Changes what is known of the site while nobody looks.
pub(super) fn change_standing(kettle: &mut Kettle, change: impl FnOnce(&mut Value)) {
    kettle.signal(Signal::KILL);
    // Somebody else may have killed it.
    assert!(!kettle.ended().status.success());
    // Its issuer, which may be writing, goes a moment later.
    let lock = std::fs::File::open(kettle.folder.path("state/acme-accounts/lock")).unwrap();
    wait_until("its issuer has gone", || lock.try_lock().is_ok());
    let mut known = standing(kettle);
    change(&mut known);
    std::fs::write(kettle.folder.path(STANDING), known.to_string()).unwrap();
    drop(lock);
    kettle.start_again();
}

/// A directory whose `newNonce` is no URI, on which the client of the protocol panics.
fn directory_without_nonces() -> Act {
    let url = "https://127.0.0.1/x";
    let body =
        json!({ "newNonce": "no uri at all", "newAccount": url, "newOrder": url }).to_string();
    let length = body.len();
    Act::Say(format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    ))
}

#[test]
fn a_job_that_panics_is_a_failure_like_others() {
    let mut asked_before = false;
    let rule = move |asked: &str| match asked {
        "GET /dir" if !std::mem::replace(&mut asked_before, true) => directory_without_nonces(),
        _ => Act::Pass,
    };
    let Some((pebble, _front, setup)) = behind_front(&PebbleSetup::default(), rule) else { return };
    let kettle = Kettle::start(setup);
    let said = failure(&kettle);
    assert!(said.contains("the attempt broke off"), "{said}");
    wait_until("it is noted", || kettle.folder.path(STANDING).is_file());
    assert!((40..=72).contains(&pause(&kettle)), "{}", pause(&kettle));
    // The site is not under way for ever.
    let _ = kettle.ctl(&["acme", "renew", "localhost"]).succeed();
    wait_until_served(&kettle, &pebble);
}

#[test]
fn a_patience_that_no_clock_can_count_is_two_days() {
    let rule = |asked: &str| match asked {
        "POST /order-plz" => {
            problem("429 No", "rateLimited", "retry-after: 18446744073709551615\r\n")
        }
        _ => Act::Pass,
    };
    let Some((_pebble, front, setup)) = behind_front(&PebbleSetup::default(), rule) else { return };
    let kettle = Kettle::start(setup);
    assert!(failure(&kettle).contains("rateLimited"));
    wait_until("it is noted", || kettle.folder.path(STANDING).is_file());
    assert!((172_000..=172_800).contains(&pause(&kettle)), "{}", pause(&kettle));
    // An operator does not change that.
    let _ = kettle.ctl(&["acme", "forget", "localhost"]).succeed();
    let said = kettle.ctl(&["acme", "renew", "localhost"]).succeed();
    assert!(said.contains("and not before"), "{said}");
    assert_eq!(front.asked("POST /order-plz"), 1);
}

#[test]
fn a_rehearsal_without_a_test_directory_is_refused() {
    let setup = PebbleSetup::default();
    let Some(pebble) = setup.start_or_skip() else { return };
    let kettle = Kettle::start(fetching(&setup, ""));
    wait_until_served(&kettle, &pebble);
    let said = kettle.ctl(&["acme", "renew", "localhost", "--rehearse"]).output();
    assert!(!said.status.success());
    assert!(said.stderr.contains("the authority `pebble` has no directory for rehearsals"));
    assert_eq!(pebble.lines_with("Added order"), 1);
}

#[test]
fn many_sites_have_one_account() {
    let setup = PebbleSetup::default();
    let Some(pebble) = setup.start_or_skip() else { return };
    let site = |number: usize| {
        format!(
            "[[site]]\nnames = [\"s{number}.example\"]\n[site.acme]\n[[site.route]]\nroot = \".\"\n"
        )
    };
    let sites: String = (0..6).map(site).collect();
    let table = setup.table("pebble", "") + &sites;
    let kettle = Kettle::start(fetching_from(&setup, "", &table));
    wait_until_served(&kettle, &pebble);
    (0..6).for_each(|number| {
        kettle.messages().wait_for(&format!("certificate of s{number}.example is there"));
    });
    assert_eq!(pebble.lines_with("POST /sign-me-up -> calling handler()"), 1);
}

#[test]
fn a_name_that_fails_for_a_day_does_not_take_the_others_certificate_down() {
    let setup = PebbleSetup::default();
    let Some(pebble) = setup.start_or_skip() else { return };
    let mut kettle = Kettle::start(fetching(&setup, ""));
    wait_until_served(&kettle, &pebble);
    let before = current(&kettle);
    pebble.lead("www.example", Some("127.255.255.254"));
    reload_with(&kettle, "names = [\"localhost\"]", "names = [\"localhost\", \"www.example\"]");
    wait_until("it fails", || kettle.messages().text().contains("no certificate for localhost: "));
    let failing = "/failing/www.example";
    wait_until("it is noted", || standing(&kettle).pointer(failing).is_some());
    let at_once =
        |known: &mut Value| *known.pointer_mut("/failures/wait_until").unwrap() = Value::Null;
    change_standing(&mut kettle, |known| {
        at_once(known);
        let failing = known.pointer_mut(failing).unwrap();
        let since = failing["since"]["secs_since_epoch"].as_u64().unwrap();
        failing["since"]["secs_since_epoch"] = json!(since - 86_400);
        failing["times"] = json!(5);
    });
    let is_out = || standing(&kettle).pointer("/failing/www.example/is_out") == Some(&json!(true));
    wait_until("it is left out", is_out);
    assert_eq!(current(&kettle), before);
    assert_eq!(get(&kettle, &pebble).succeed(), "hello");
    change_standing(&mut kettle, |known| known["is_asked_for"] = json!(true));
    let known = kettle.ctl(&["acme", "status"]).output();
    assert!(!known.status.success());
    assert!(known.text().contains("WITHOUT www.example: www.example by "), "{}", known.text());
    kettle.messages().wait_for("the certificate of localhost is ordered without www.example");
    change_standing(&mut kettle, at_once);
    wait_until("the other name has a new one", || current(&kettle) != before);
    let without = current(&kettle);

    pebble.lead("www.example", None);
    wait_until("all is noted", || {
        standing(&kettle).pointer("/is_asked_for") == Some(&json!(false))
    });
    change_standing(&mut kettle, |known| {
        known["failing"]["www.example"]["tried"]["secs_since_epoch"] = json!(0);
    });
    kettle.messages().wait_for("www.example validates again");
    wait_until("one with both is there", || current(&kettle) != without);
    assert!(kettle.ctl(&["acme", "status"]).output().status.success());
}

#[test]
fn a_key_of_another_kind_is_not_used_again() {
    let setup = PebbleSetup::default();
    let Some(pebble) = setup.start_or_skip() else { return };
    let kettle = Kettle::start(fetching(&setup, "reuse_key = true"));
    wait_until_served(&kettle, &pebble);
    let before = current(&kettle);
    reload_with(&kettle, "reuse_key = true", "reuse_key = true\nkey_type = \"ecdsa-p384\"");
    wait_until("another one is there", || current(&kettle) != before);
    let chain = kettle.folder.path("state/acme/certificates/localhost/current/chain.pem");
    let shown = kettle_tests::tool::Tool::new("openssl")
        .args(["x509", "-noout", "-text", "-in"])
        .args([chain])
        .succeed();
    assert!(shown.contains("ASN1 OID: secp384r1"), "{shown}");
    wait_until("it is in force", || get(&kettle, &pebble).output().status.success());
    assert_eq!(pebble.lines_with("Added order"), 2);
}

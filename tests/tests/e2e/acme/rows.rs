//! More rows of what can happen: slow and broken answers, certificates that nobody ordered, a disk that takes nothing, and what an
//! authority may want at any time.

use std::process::Stdio;
use std::sync::OnceLock;
use std::time::Instant;

use kettle_tests::certificate::issue_for_key;
use kettle_tests::mounted::Mounted;

use super::bounds::change_standing;
use super::failures::{behind_front, failure, pause, problem, restart_at_once, standing};
use super::*;

/// A rule that does this to what is asked for first whose method and path begin so.
fn once(point: &'static str, act: Act) -> impl FnMut(&str) -> Act + Send + 'static {
    let mut done = false;
    move |asked: &str| {
        let is_first = asked.starts_with(point) && !std::mem::replace(&mut done, true);
        if is_first { act.clone() } else { Act::Pass }
    }
}

#[test]
fn an_answer_that_is_cut_is_none_and_what_was_ordered_goes_on() {
    for (point, orders) in
        [("GET /dir", 1), ("POST /sign-me-up", 1), ("POST /order-plz", 2), ("POST /certZ/", 1)]
    {
        let rule = once(point, Act::LoseEnd);
        let Some((pebble, front, setup)) = behind_front(&PebbleSetup::default(), rule) else {
            return;
        };
        let mut kettle = Kettle::start(setup);
        let said = failure(&kettle);
        assert!(said.contains("cannot be reached"), "{point}: {said}");
        restart_at_once(&mut kettle);
        wait_until_served(&kettle, &pebble);
        assert_eq!(front.asked("POST /order-plz"), orders, "{point}");
        assert_eq!(front.asked("POST /finalize-order/"), 1, "{point}");
    }
}

#[test]
fn orders_do_not_wait_behind_questions_that_are_not_answered() {
    let rule = |asked: &str| match asked.contains("/renewalInfo") {
        true => Act::Hold { is_passed: false },
        false => Act::Pass,
    };
    let Some((_pebble, front, setup)) = behind_front(&PebbleSetup::default(), rule) else { return };
    // More than are asked for at once.
    let site = |n| {
        let route = "route = [{ root = \"www\" }]";
        format!("[[site]]\nnames = [\"n{n}.test\"]\nacme = {{}}\n{route}\n")
    };
    let sites = (0..11).map(site);
    let _kettle = Kettle::start(setup.more(&sites.collect::<String>()));
    wait_until("all are there", || front.asked("POST /certZ/") == 12);
}

#[test]
fn the_directory_is_fetched_once_for_many_questions() {
    let Some((_pebble, front, setup)) = behind_front(&PebbleSetup::default(), |_| Act::Pass) else {
        return;
    };
    let site = |n| {
        let route = "route = [{ root = \"www\" }]";
        format!("[[site]]\nnames = [\"n{n}.test\"]\nacme = {{}}\n{route}\n")
    };
    let _kettle = Kettle::start(setup.more(&(0..3).map(site).collect::<String>()));
    wait_until("all have asked when to renew", || front.asked("GET /draft-ietf-acme") >= 4);
    assert_eq!(front.asked("GET /dir"), 1);
}

#[test]
fn an_authority_that_is_slow_is_waited_for() {
    let rule = |_: &str| Act::PassLate(Duration::from_millis(300));
    let Some((pebble, front, setup)) = behind_front(&PebbleSetup::default(), rule) else { return };
    let kettle = Kettle::start(setup);
    wait_until_served(&kettle, &pebble);
    assert_eq!(front.asked("POST /order-plz"), 1);
}

#[test]
fn an_authority_that_says_nothing_is_given_up_after_half_a_minute() {
    let rule = once("POST /order-plz", Act::Hold { is_passed: false });
    let Some((_pebble, front, setup)) = behind_front(&PebbleSetup::default(), rule) else { return };
    let kettle = Kettle::start(setup);
    wait_until("it has asked", || front.asked("POST /order-plz") == 1);
    let asked = Instant::now();
    let deadline = asked + Duration::from_secs(30) + patience();
    // Meanwhile it serves, and says what it does.
    let status = kettle.ctl(&["acme", "status"]).output();
    assert!(status.text().contains("under way"), "{}", status.text());
    while !kettle.messages().text().contains("no certificate for localhost: ") {
        assert!(Instant::now() < deadline);
        std::thread::yield_now();
    }
    assert!(asked.elapsed() > Duration::from_secs(20), "{:?}", asked.elapsed());
    assert!(failure(&kettle).contains("/order-plz cannot be reached"), "{}", failure(&kettle));
}

#[test]
fn a_directory_whose_urls_are_not_https_is_not_followed() {
    let url = "http://127.0.0.1:1/x";
    let body = json!({ "newNonce": url, "newAccount": url, "newOrder": url }).to_string();
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close", body.len());
    let answer = format!("{head}\r\n\r\n{body}");
    let rule = move |_: &str| Act::Say(answer.clone());
    let Some((_pebble, _front, setup)) = behind_front(&PebbleSetup::default(), rule) else {
        return;
    };
    let said = failure(&Kettle::start(setup));
    assert!(said.contains("it is no https:// URL"), "{said}");
}

#[test]
fn a_certificate_that_is_not_what_was_ordered_is_not_taken_and_not_soon_ordered_again() {
    type Make = fn(&str) -> String;
    let cases: [(Make, &str); 4] = [
        (|key| issue_for_key(&["other.example"], key, (2020, 4096)).chain, "is not for localhost"),
        (|key| issue_for_key(&["localhost"], key, (4095, 4096)).chain, "is not valid yet"),
        (|key| issue_for_key(&["localhost"], key, (2020, 2021)).chain, "has expired"),
        (|_| issue(&["localhost"], Kind::Ecdsa).chain, "cannot be used"),
    ];
    for (make, reason) in cases {
        let state = Arc::new(OnceLock::<PathBuf>::new());
        let of_rule = Arc::clone(&state);
        let mut is_done = false;
        let rule = move |asked: &str| {
            if !asked.starts_with("POST /certZ/") || std::mem::replace(&mut is_done, true) {
                return Act::Pass;
            }
            wait_until("the folder is known", || of_rule.get().is_some());
            let key = of_rule.get().unwrap().join("acme/orders/localhost/key.pem");
            let chain = make(&fs::read_to_string(key).unwrap());
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/pem-certificate-chain";
            let length = chain.len();
            Act::Say(format!(
                "{head}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{chain}"
            ))
        };
        let Some((pebble, front, setup)) = behind_front(&PebbleSetup::default(), rule) else {
            return;
        };
        let kettle = Kettle::start(setup);
        state.set(kettle.folder.path("state")).unwrap();
        let said = failure(&kettle);
        assert!(said.contains(reason), "{said}");
        wait_until("it is noted", || standing(&kettle)["failures"]["count"] == 1);
        assert!((17_000..=26_000).contains(&pause(&kettle)), "{}", pause(&kettle));
        let folder = kettle.folder.path("state/acme/certificates/localhost");
        assert_eq!(fs::read_dir(folder).unwrap().count(), 0, "{reason}");
        assert_eq!(front.asked("POST /order-plz"), 1);
        // An operator may know better.
        let _ = kettle.ctl(&["acme", "renew", "localhost"]).succeed();
        wait_until_served(&kettle, &pebble);
        assert_eq!(front.asked("POST /order-plz"), 2);
    }
}

/// Tests a state that takes nothing from the moment on when the certificate is fetched, by `stop`, until `go_on`.
fn cannot_be_written(state: PathBuf, stop: impl Fn() + Send + 'static, go_on: impl Fn()) {
    let mut is_done = false;
    let rule = move |asked: &str| {
        if asked.starts_with("POST /certZ/") && !std::mem::replace(&mut is_done, true) {
            stop();
        }
        Act::Pass
    };
    let Some((pebble, front, own)) = behind_front(&PebbleSetup::default(), rule) else { return };
    let own = own.set("server", &format!("state_directory = \"{}\"", state.display()));
    let kettle = Kettle::start(own);
    let said = failure(&kettle);
    assert!(said.contains("the state folder: "), "{said}");
    assert!(!state.join("acme/certificates/localhost/current").exists());
    let refused = kettle.ctl(&["acme", "renew", "localhost"]).output();
    assert!(refused.stderr.contains("the state folder cannot be written"), "{}", refused.stderr);
    let status = kettle.ctl(&["acme", "status"]).output();
    assert!(status.text().contains("retry"), "{}", status.text());
    go_on();
    let _ = kettle.ctl(&["acme", "renew", "localhost"]).succeed();
    wait_until_served(&kettle, &pebble);
    assert_eq!(front.asked("POST /order-plz"), 1);
    assert_eq!(front.asked("POST /finalize-order/"), 1);
}

#[test]
fn a_full_disk_keeps_the_order_which_goes_on_when_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let mounted = Mounted::at(folder.path().into(), "tmpfs", "size=256k", Stdio::null());
    let Ok(_mounted) = mounted else { return skip("no tmpfs can be mounted here") };
    let ballast = folder.path().join("ballast");
    let filled = ballast.clone();
    cannot_be_written(
        folder.path().to_owned(),
        // As much as there is room for.
        move || assert!(fs::write(&filled, vec![0; 1 << 20]).is_err()),
        || fs::remove_file(&ballast).unwrap(),
    );
}

#[test]
fn a_folder_that_may_only_be_read_keeps_the_order_which_goes_on_when_it_may_be_written() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().to_owned();
    let allow = move |mode: u32| {
        for name in ["certificates", "orders/localhost"] {
            let path = state.join("acme").join(name);
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    let forbid = allow.clone();
    cannot_be_written(folder.path().to_owned(), move || forbid(0o500), || allow(0o700));
}

#[test]
fn one_nonce_of_five_rejected_hinders_nothing() {
    let setup = PebbleSetup::default().environment("PEBBLE_WFE_NONCEREJECT", "20");
    let Some(pebble) = setup.start_or_skip() else { return };
    let mut kettle = Kettle::start(fetching(&setup, ""));
    // Three in turn may be rejected all the same, and the next try goes on.
    for _ in 0..6 {
        let said = kettle.messages().wait_until("an end", |bytes| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            let has_ended = ["no certificate for localhost: ", "certificate of localhost is there"];
            has_ended.iter().any(|end| text.contains(end)).then_some(text)
        });
        if said.contains("certificate of localhost is there") {
            return wait_until_served(&kettle, &pebble);
        }
        assert!(said.contains("badNonce"), "{said}");
        wait_until("it is noted", || standing(&kettle)["failures"]["count"].as_u64() > Some(0));
        restart_at_once(&mut kettle);
    }
    panic!("six tries led to nothing");
}

#[test]
fn nine_nonces_of_ten_rejected_are_a_failure_with_its_reason() {
    let setup = PebbleSetup::default().environment("PEBBLE_WFE_NONCEREJECT", "90");
    let Some(_pebble) = setup.start_or_skip() else { return };
    let kettle = Kettle::start(fetching(&setup, ""));
    let said = failure(&kettle);
    assert!(said.contains("badNonce"), "{said}");
    wait_until("it is noted", || standing(&kettle)["failures"]["count"] == 1);
    assert!((40..=72).contains(&pause(&kettle)), "{}", pause(&kettle));
}

#[test]
fn a_renewal_window_that_is_moved_is_followed() {
    let setup = PebbleSetup::default();
    let Some(pebble) = setup.start_or_skip() else { return };
    let mut kettle = Kettle::start(fetching(&setup, ""));
    wait_until_served(&kettle, &pebble);
    kettle.messages().wait_for("pebble wants localhost renewed");
    let before = current(&kettle);
    let chain = kettle.folder.path("state/acme/certificates/localhost/current/chain.pem");
    let window = json!({ "start": "2026-01-01T00:00:00Z", "end": "2026-01-02T00:00:00Z" });
    let answer = json!({ "suggestedWindow": window }).to_string();
    let body = json!({ "Certificate": fs::read_to_string(chain).unwrap(), "ARIResponse": answer });
    let _ = pebble.manage(&["--data", &body.to_string()], "/set-renewal-info/");
    // As if six hours had passed.
    change_standing(&mut kettle, |known| {
        known["window"]["ask_again"]["secs_since_epoch"] = json!(0);
    });
    wait_until("it is renewed", || current(&kettle) != before);
    assert_eq!(pebble.lines_with("Added order"), 2);
    // A time that is past is believed once: the next one keeps its own time.
    kettle.messages().wait_for("certificate of localhost is there");
    assert!(get(&kettle, &pebble).output().status.success());
}

#[test]
fn an_authority_is_not_asked_more_often_than_it_says() {
    let own = PebbleSetup::default().set("\"retryAfter\": {\"authz\": 2, \"order\": 2}");
    let Some((pebble, front, setup)) = behind_front(&own, |_: &str| Act::Pass) else { return };
    let began = Instant::now();
    let kettle = Kettle::start(setup);
    wait_until_served(&kettle, &pebble);
    // It says so by a date as well, which has whole seconds.
    assert!(began.elapsed() > Duration::from_secs(1), "{:?}", began.elapsed());
    let asked = front.asked("POST /my-order/");
    let most = began.elapsed().as_secs() / 2 + 2;
    assert!(asked as u64 <= most, "{asked} questions in {:?}", began.elapsed());
}

#[test]
fn the_next_authority_is_asked_after_three_failures_in_turn() {
    let setup = PebbleSetup::default();
    let Some(pebble) = setup.start_or_skip() else { return };
    let front = Front::start(unused_address(), setup.address(), |_: &str| Act::Cut);
    let tables = setup.table_at("broken", &front.directory(), "") + &setup.table("pebble", "");
    let mut kettle = Kettle::start(fetching_from(&setup, "", &tables));
    failure(&kettle);
    for count in 1..=2 {
        wait_until("it is noted", || standing(&kettle)["failures"]["count"] == count);
        restart_at_once(&mut kettle);
        failure(&kettle);
    }
    wait_until("it is noted", || standing(&kettle)["failures"]["count"] == 3);
    assert_eq!(standing(&kettle)["failures"]["authority"], 1);
    assert_eq!(pebble.lines_with("Added order"), 0);
    restart_at_once(&mut kettle);
    wait_until_served(&kettle, &pebble);
    assert_eq!(front.asked("GET /dir"), 3);
    assert!(kettle.messages().text().contains("is there: pebble, "));
}

/// With a directory for rehearsals, and the number of orders that were sent there.
fn with_rehearsals(own: &PebbleSetup) -> Option<(Pebble, Front, Setup)> {
    let pebble = own.start_or_skip()?;
    let front = Front::start(unused_address(), own.address(), |_: &str| Act::Pass);
    let more = format!("test_directory = \"{}\"", front.directory());
    let setup = fetching_from(own, "", &own.table("pebble", &more));
    Some((pebble, front, setup))
}

#[test]
fn a_name_that_does_not_validate_is_told_of_and_rehearsed_by_the_next_challenge() {
    let own = PebbleSetup::default();
    let Some((pebble, front, setup)) = with_rehearsals(&own) else { return };
    pebble.lead("localhost", Some("127.255.255.254"));
    let mut kettle = Kettle::start(setup);
    // The address that the authority used, the kind of challenge, and its reason.
    let said = failure(&kettle);
    for part in ["localhost by tls-alpn-01", "127.255.255.254", "urn:ietf:params:acme:error:"] {
        assert!(said.contains(part), "{part} in {said}");
    }
    wait_until("it is noted", || standing(&kettle)["failures"]["count"] == 1);
    restart_at_once(&mut kettle);
    let said = failure(&kettle);
    assert!(said.contains("localhost by http-01"), "{said}");
    assert_eq!(front.asked("POST /order-plz"), 1);
    wait_until("it is noted", || standing(&kettle)["failures"]["count"] == 2);
    pebble.lead("localhost", None);
    restart_at_once(&mut kettle);
    wait_until_served(&kettle, &pebble);
    assert_eq!(front.asked("POST /order-plz"), 2);
    assert_eq!(front.asked("POST /finalize-order/"), 0);
}

#[test]
fn a_certificate_that_is_late_is_an_error_and_red() {
    let mut orders = 0;
    let rule = move |asked: &str| {
        orders += usize::from(asked == "POST /order-plz");
        let is_refused = asked == "POST /order-plz" && orders > 1;
        if is_refused { problem("500 Broken", "serverInternal", "") } else { Act::Pass }
    };
    let own = PebbleSetup::default().lifetime(24);
    let Some((pebble, _front, setup)) = behind_front(&own, rule) else { return };
    let mut kettle = Kettle::start(setup);
    wait_until_served(&kettle, &pebble);
    assert!(kettle.ctl(&["acme", "status"]).output().status.success());
    failure(&kettle);
    wait_until("it is late", || {
        let said = kettle.ctl(&["acme", "status"]).output();
        said.status.code() == Some(1) && said.text().contains("LATE: retry at")
    });
    let said = kettle.ctl(&["status"]).succeed();
    assert!(said.contains("certificate  localhost (ecdsa) e"), "{said}");
    restart_at_once(&mut kettle);
    kettle.messages().wait_for("the certificate of localhost ends on ");
    kettle.messages().wait_for("and was not renewed: ");
    let folder = kettle.folder.path("state/acme/certificates/localhost/current");
    assert!(folder.is_dir());
}

#[test]
fn a_site_that_goes_away_loses_nothing_and_is_not_renewed() {
    let own = PebbleSetup::default();
    let Some(pebble) = own.start_or_skip() else { return };
    let other =
        "[[site]]\nnames = [\"other.example\"]\n[site.acme]\n[[site.route]]\nroot = \"www\"\n";
    let table = own.table("pebble", "");
    let kettle = Kettle::start(fetching_from(&own, "", &format!("{table}{other}")));
    wait_until_served(&kettle, &pebble);
    kettle.messages().wait_for("certificate of other.example is there");
    reload_with(&kettle, other, "");
    wait_until("it is no longer fetched", || {
        let status = kettle.ctl(&["acme", "status"]).output();
        status.status.success() && !status.text().contains("other.example")
    });
    assert!(kettle.folder.path("state/acme/certificates/other.example/current/key.pem").is_file());
    assert_eq!(pebble.lines_with("POST /revoke-cert"), 0);
    assert_eq!(pebble.lines_with("Added order"), 2);
}

#[test]
fn the_lock_of_a_server_that_is_killed_is_taken_by_the_other() {
    let own = PebbleSetup::default();
    let Some(pebble) = own.start_or_skip() else { return };
    let mut first = Kettle::start(fetching(&own, ""));
    wait_until_served(&first, &pebble);
    let state = first.folder.path("state");
    let second = Setup::default()
        .without_certificate()
        .listener_at(unused_address(), "http2 = false")
        .set("server", &format!("state_directory = \"{}\"", state.display()))
        .site("[site.acme]")
        .file("www/hello", "hello")
        .more(&own.table("pebble", ""));
    let second = Kettle::start(second);
    second.messages().wait_for("another server fetches certificates into this state folder");
    first.kill();
    let renews = || second.ctl(&["acme", "renew", "localhost"]).output().status.success();
    wait_until("it fetches in its place", renews);
}

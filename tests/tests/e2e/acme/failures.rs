//! An authority that misbehaves: each row of what can happen, by a front before pebble.

use std::sync::atomic::AtomicI32;

use super::*;

pub(super) const STANDING: &str = "state/acme/orders/localhost/standing.json";

/// A server that fetches from pebble behind a front with this rule.
pub(super) fn behind_front(
    setup: &PebbleSetup,
    rule: impl FnMut(&str) -> Act + Send + 'static,
) -> Option<(Pebble, Front, Setup)> {
    let pebble = setup.start_or_skip()?;
    let front = Front::start(unused_address(), setup.address(), rule);
    let table = setup.table_at("pebble", &front.directory(), "");
    Some((pebble, front, fetching_from(setup, "", &table)))
}

/// A problem document as an answer.
pub(super) fn problem(status: &str, kind: &str, fields: &str) -> Act {
    problem_saying("so it is", status, kind, fields)
}

fn problem_saying(detail: &str, status: &str, kind: &str, fields: &str) -> Act {
    let body =
        format!("{{\"type\": \"urn:ietf:params:acme:error:{kind}\", \"detail\": \"{detail}\"}}");
    let length = body.len();
    Act::Say(format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/problem+json\r\ncontent-length: {length}\r\n{fields}\
         connection: close\r\n\r\n{body}"
    ))
}

pub(super) fn standing(kettle: &Kettle) -> Value {
    let text = std::fs::read_to_string(kettle.folder.path(STANDING)).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The time nothing is tried, in seconds.
pub(super) fn pause(kettle: &Kettle) -> u64 {
    let until = standing(kettle).pointer("/failures/wait_until/secs_since_epoch").unwrap().as_u64();
    let until = UNIX_EPOCH + Duration::from_secs(until.unwrap());
    until.duration_since(SystemTime::now()).unwrap().as_secs()
}

/// Waits for the first failure, and gives what was said of it.
pub(super) fn failure(kettle: &Kettle) -> String {
    kettle.messages().wait_until("a failure", |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let (_, rest) = text.split_once("no certificate for localhost: ")?;
        rest.split_once('\n').map(|(line, _)| line.to_owned())
    })
}

/// Has a server forget how long it wanted to wait, while it is not there.
pub(super) fn restart_at_once(kettle: &mut Kettle) {
    kettle.kill();
    let mut known = standing(kettle);
    *known.pointer_mut("/failures/wait_until").unwrap() = Value::Null;
    std::fs::write(kettle.folder.path(STANDING), known.to_string()).unwrap();
    kettle.start_again();
}

#[test]
fn an_authority_that_breaks_off_is_tried_again_after_a_minute() {
    let rule = |_: &str| Act::Cut;
    let Some((_pebble, _front, setup)) = behind_front(&PebbleSetup::default(), rule) else {
        return;
    };
    let kettle = Kettle::start(setup);
    let said = failure(&kettle);
    assert!(said.contains("/dir cannot be reached"), "{said}");
    wait_until("it is noted", || kettle.folder.path(STANDING).is_file());
    assert!((40..=72).contains(&pause(&kettle)), "{}", pause(&kettle));
}

#[test]
fn an_authority_with_an_error_of_its_own_is_tried_again_after_a_minute() {
    let rule = |asked: &str| match asked {
        "POST /order-plz" => problem("500 Broken", "serverInternal", ""),
        _ => Act::Pass,
    };
    let Some((_pebble, front, setup)) = behind_front(&PebbleSetup::default(), rule) else { return };
    let kettle = Kettle::start(setup);
    let said = failure(&kettle);
    assert!(said.contains("so it is (urn:ietf:params:acme:error:serverInternal)"), "{said}");
    assert!((40..=72).contains(&pause(&kettle)));
    assert_eq!(front.asked("POST /order-plz"), 1);
}

#[test]
fn a_rate_limit_counts_as_long_as_the_authority_says() {
    let rule = |asked: &str| match asked {
        "POST /order-plz" => problem("429 Too Many", "rateLimited", "retry-after: 7200\r\n"),
        _ => Act::Pass,
    };
    let Some((_pebble, _front, setup)) = behind_front(&PebbleSetup::default(), rule) else {
        return;
    };
    let kettle = Kettle::start(setup);
    assert!(failure(&kettle).contains("rateLimited"));
    assert!((7_100..=7_200).contains(&pause(&kettle)), "{}", pause(&kettle));
}

#[test]
fn an_answer_without_end_and_a_redirect_are_not_taken() {
    let elsewhere =
        "HTTP/1.1 302 Found\r\nlocation: /other\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    for (act, reason) in [
        (Act::Flood, "longer than 256 KiB"),
        (Act::Say(elsewhere.to_owned()), "redirects are not followed"),
        (
            Act::Say(
                "HTTP/1.1 503 No\r\ncontent-length: 2\r\nconnection: close\r\n\r\nno".to_owned(),
            ),
            "answers 503",
        ),
    ] {
        let rule = move |_: &str| act.clone();
        let Some((_pebble, front, setup)) = behind_front(&PebbleSetup::default(), rule) else {
            return;
        };
        let kettle = Kettle::start(setup);
        let said = failure(&kettle);
        assert!(said.contains(reason), "{said}");
        assert_eq!(front.asked("GET /other"), 0);
    }
}

#[test]
fn a_nonce_that_is_rejected_is_replaced_at_once() {
    let mut rejected = false;
    let rule = move |asked: &str| {
        let first = asked == "POST /order-plz" && !std::mem::replace(&mut rejected, true);
        if first { problem("400 Bad", "badNonce", "") } else { Act::Pass }
    };
    let Some((pebble, front, setup)) = behind_front(&PebbleSetup::default(), rule) else { return };
    let kettle = Kettle::start(setup);
    wait_until_served(&kettle, &pebble);
    assert_eq!(front.asked("POST /order-plz"), 2);
}

#[test]
fn nonces_that_are_rejected_always_are_a_failure_like_others() {
    let rule = |asked: &str| match asked {
        "POST /order-plz" => problem("400 Bad", "badNonce", ""),
        _ => Act::Pass,
    };
    let Some((_pebble, _front, setup)) = behind_front(&PebbleSetup::default(), rule) else {
        return;
    };
    let kettle = Kettle::start(setup);
    assert!(failure(&kettle).contains("badNonce"));
    assert!((40..=72).contains(&pause(&kettle)));
}

#[test]
fn a_certificate_that_was_replaced_already_is_renewed_all_the_same() {
    let mut orders = 0;
    let rule = move |asked: &str| {
        orders += usize::from(asked == "POST /order-plz");
        let is_second = asked == "POST /order-plz" && orders == 2;
        if is_second { problem("409 Conflict", "alreadyReplaced", "") } else { Act::Pass }
    };
    let setup = PebbleSetup::default().lifetime(16);
    let Some((pebble, front, setup)) = behind_front(&setup, rule) else { return };
    let kettle = Kettle::start(setup);
    wait_until_served(&kettle, &pebble);
    let before = current(&kettle);
    wait_until("the certificate is renewed", || current(&kettle) != before);
    assert_eq!(front.asked("POST /order-plz"), 3);
    assert!(!kettle.messages().text().contains("no certificate for"));
}

#[test]
fn an_order_that_was_finalized_goes_on_after_a_kill_with_the_same_key() {
    let mut lost = false;
    let rule = move |asked: &str| {
        let first =
            asked.starts_with("POST /finalize-order/") && !std::mem::replace(&mut lost, true);
        if first { Act::LoseAnswer } else { Act::Pass }
    };
    let Some((pebble, front, setup)) = behind_front(&PebbleSetup::default(), rule) else { return };
    let mut kettle = Kettle::start(setup);
    failure(&kettle);
    let key = std::fs::read(kettle.folder.path("state/acme/orders/localhost/key.pem")).unwrap();
    restart_at_once(&mut kettle);
    wait_until_served(&kettle, &pebble);
    assert_eq!(front.asked("POST /order-plz"), 1);
    assert_eq!(front.asked("POST /finalize-order/"), 1);
    let kept = kettle.folder.path("state/acme/certificates/localhost/current/key.pem");
    assert_eq!(std::fs::read(kept).unwrap(), key);
    assert!(!kettle.folder.path("state/acme/orders/localhost/key.pem").exists());
}

#[test]
fn an_account_that_is_gone_is_made_anew() {
    for gone in [
        problem("400 Bad", "accountDoesNotExist", ""),
        problem_saying("account is deactivated", "401 No", "unauthorized", ""),
    ] {
        let mut refused = false;
        let rule = move |asked: &str| {
            let first = asked == "POST /order-plz" && !std::mem::replace(&mut refused, true);
            if first { gone.clone() } else { Act::Pass }
        };
        let Some((pebble, front, setup)) = behind_front(&PebbleSetup::default(), rule) else {
            return;
        };
        let mut kettle = Kettle::start(setup);
        let said = failure(&kettle);
        assert!(said.contains("another account is made"), "{said}");
        restart_at_once(&mut kettle);
        wait_until_served(&kettle, &pebble);
        assert_eq!(front.asked("POST /sign-me-up"), 2);
    }
}

#[test]
fn terms_that_have_changed_are_for_the_operator() {
    let rule = |asked: &str| match asked {
        "POST /order-plz" => problem("403 Forbidden", "userActionRequired", ""),
        _ => Act::Pass,
    };
    let Some((_pebble, _front, setup)) = behind_front(&PebbleSetup::default(), rule) else {
        return;
    };
    let kettle = Kettle::start(setup);
    assert!(failure(&kettle).contains("userActionRequired"));
    assert!((68_000..=104_000).contains(&pause(&kettle)), "{}", pause(&kettle));
}

#[test]
fn a_server_that_is_killed_at_any_point_of_an_order_goes_on_with_it() {
    for (point, is_passed, orders) in [
        ("POST /sign-me-up", true, 1),
        ("POST /order-plz", true, 2),
        ("POST /authZ/", true, 1),
        ("POST /chalZ/", false, 1),
        ("POST /finalize-order/", false, 1),
        ("POST /finalize-order/", true, 1),
        ("POST /my-order/", true, 1),
        ("POST /certZ/", true, 1),
    ] {
        let process = Arc::new(AtomicI32::new(0));
        let killed = Arc::clone(&process);
        let mut is_done = false;
        let rule = move |asked: &str| {
            if !asked.starts_with(point) || std::mem::replace(&mut is_done, true) {
                return Act::Pass;
            }
            // It may ask before the test knows its number.
            wait_until("its number is known", || killed.load(Ordering::SeqCst) != 0);
            let process = Pid::from_raw(killed.load(Ordering::SeqCst)).unwrap();
            kill_process(process, Signal::KILL).unwrap();
            // An answer of any kind might come before the end of the issuer.
            Act::Hold { is_passed }
        };
        let Some((pebble, front, setup)) = behind_front(&PebbleSetup::default(), rule) else {
            return;
        };
        let mut kettle = Kettle::start(setup);
        process.store(kettle.process().cast_signed(), Ordering::SeqCst);
        assert!(!kettle.ended().status.success(), "it is not killed at {point}");
        kettle.start_again();
        wait_until_served(&kettle, &pebble);
        assert_eq!(front.asked("POST /order-plz"), orders, "{point}");
    }
}

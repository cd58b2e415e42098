//! A server that is killed in the middle of a renewal leaves the site its old certificate, and the order goes on: a second one
//! is sent only where nobody can know of the first, or the authority has voided it.

use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

use super::bounds::change_standing;
use super::failures::behind_front;
use super::*;

/// Where an order is when somebody is killed: as this is asked for, before the authority gets it or after that, and how many orders
/// there are in the end at most.
const POINTS: [(&str, bool, usize); 12] = [
    ("POST /order-plz", false, 1),
    // That it was made nobody has heard.
    ("POST /order-plz", true, 2),
    ("POST /authZ/", false, 1),
    ("POST /authZ/", true, 1),
    ("POST /chalZ/", false, 1),
    // It looks while nobody answers, and the order is void.
    ("POST /chalZ/", true, 2),
    ("POST /finalize-order/", false, 1),
    ("POST /finalize-order/", true, 1),
    ("POST /my-order/", false, 1),
    ("POST /my-order/", true, 1),
    ("POST /certZ/", false, 1),
    ("POST /certZ/", true, 1),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Victim {
    Issuer,
    Warden,
    Server,
    Authority,
}

/// Renews a certificate once for each of these points, and kills somebody at it.
fn kill_at(victim: Victim, points: impl Iterator<Item = (&'static str, bool, usize)>) {
    let armed = Arc::new(Mutex::new(None::<(&str, bool, u32)>));
    let is_dead = Arc::new(AtomicBool::new(false));
    let of_rule = Arc::clone(&armed);
    let dead = Arc::clone(&is_dead);
    let rule = move |asked: &str| {
        let mut armed = of_rule.lock().unwrap();
        if !armed.is_some_and(|(point, ..)| asked.starts_with(point)) {
            let is_gone = victim == Victim::Authority && dead.load(Ordering::SeqCst);
            return if is_gone { Act::Cut } else { Act::Pass };
        }
        let Some((_, is_passed, process)) = armed.take() else { return Act::Pass };
        if victim != Victim::Authority {
            kill_process(Pid::from_raw(process.cast_signed()).unwrap(), Signal::KILL).unwrap();
        }
        dead.store(true, Ordering::SeqCst);
        match (victim, is_passed) {
            (Victim::Authority, true) => Act::LoseAnswer,
            (Victim::Authority, false) => Act::Cut,
            // An answer of any kind might come before the end.
            _ => Act::Hold { is_passed },
        }
    };
    let Some((pebble, _front, setup)) = behind_front(&PebbleSetup::default(), rule) else { return };
    let mut kettle = Kettle::start(setup);
    wait_until_served(&kettle, &pebble);
    for (point, is_passed, orders) in points {
        let before = current(&kettle);
        let ordered = pebble.lines_with("Added order");
        let server = kettle.process();
        let warden = child_of(server, "kettle-warden");
        let process = match victim {
            Victim::Issuer => child_of(warden, "kettle-issuer"),
            Victim::Warden => warden,
            Victim::Server | Victim::Authority => server,
        };
        is_dead.store(false, Ordering::SeqCst);
        *armed.lock().unwrap() = Some((point, is_passed, process));
        // It is refused while the authority is asked for something.
        let renew = || kettle.ctl(&["acme", "renew", "localhost"]).output().status.success();
        wait_until("it is renewed", renew);
        wait_until("somebody is killed", || is_dead.load(Ordering::SeqCst));
        if victim != Victim::Server {
            assert_eq!(get(&kettle, &pebble).succeed(), "hello", "{point} {is_passed}");
        }
        assert_eq!(current(&kettle), before, "{point} {is_passed}");
        change_standing(&mut kettle, |known| {
            *known.pointer_mut("/failures/wait_until").unwrap() = Value::Null;
            // These are more than anybody has in a day.
            known["budget"] = json!({});
            is_dead.store(false, Ordering::SeqCst);
        });
        assert_eq!(get(&kettle, &pebble).succeed(), "hello", "{point} {is_passed}");
        wait_until("the renewal goes on", || current(&kettle) != before);
        let ordered = pebble.lines_with("Added order") - ordered;
        assert!((1..=orders).contains(&ordered), "{ordered} orders, {point} {is_passed}");
    }
    assert_eq!(get(&kettle, &pebble).succeed(), "hello");
}

#[test]
fn an_issuer_that_is_killed_at_any_point_costs_nothing() {
    kill_at(Victim::Issuer, POINTS.into_iter());
}

#[test]
fn a_warden_that_is_killed_costs_nothing() {
    kill_at(Victim::Warden, POINTS.into_iter().step_by(2));
}

#[test]
fn a_server_that_is_killed_at_any_point_costs_nothing() {
    kill_at(Victim::Server, POINTS.into_iter().skip(1).step_by(2));
}

#[test]
fn an_authority_that_is_killed_at_any_point_costs_nothing() {
    kill_at(Victim::Authority, POINTS.into_iter());
}

use super::*;

fn state(is_checked: bool) -> ServerState {
    ServerState::new(&ServerAddress::parse("127.0.0.1:9").unwrap(), is_checked)
}

fn tolerance(fails: u32) -> Tolerance {
    Tolerance { fails, fail_time: Duration::from_secs(10) }
}

fn refused() -> Failure {
    Failure::new(Outcome::Refused, "no")
}

#[tokio::test(start_paused = true)]
async fn only_failures_close_together_take_a_server_out() {
    let state = state(false);
    let start = Instant::now();
    let fail_at = |second| {
        let now = start + Duration::from_secs(second);
        state.connect_failed(&refused(), tolerance(3), now)
    };
    assert!(![0, 8, 16, 24].into_iter().any(fail_at));
    assert!(fail_at(25), "24, 25 and 16 lie within ten seconds");
    let now = |second| start + Duration::from_secs(second);
    assert!(state.is_out(now(25)) && state.is_out(now(34)));
    assert!(!state.is_out(now(35)));
    assert!(!fail_at(36), "three are needed again")
}

#[test]
fn fails_of_zero_take_nobody_out() {
    let state = state(true);
    for _ in 0..100 {
        assert!(!state.connect_failed(&refused(), tolerance(0), Instant::now()));
    }
    assert_eq!(state.standing(Instant::now()), Standing::In);
}

#[test]
fn with_checks_a_failing_server_stays_out_until_one_is_passed() {
    let state = state(true);
    let now = Instant::now();
    assert!(state.connect_failed(&refused(), tolerance(1), now));
    assert!(!state.connect_failed(&refused(), tolerance(1), now), "no news");
    let much_later = now + Duration::from_hours(1);
    assert_eq!(state.standing(much_later), Standing::Out { bad_in_a_row: 2 });
    assert!(state.check_passed(5));
    assert_eq!(state.standing(now), Standing::In);
}

#[test]
fn a_connection_is_proof_enough() {
    let state = state(true);
    let now = Instant::now();
    assert!(!state.connect_succeeded());
    assert!(state.connect_failed(&refused(), tolerance(1), now));
    assert!(state.connect_succeeded());
    assert_eq!(state.standing(now), Standing::In);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_let_a_kept_connection_die_is_fickle_for_ten_minutes() {
    let state = state(false);
    let start = Instant::now();
    let at = |seconds| start + Duration::from_secs(seconds);
    assert!(!state.is_fickle(start));
    state.kept_died(at(5));
    assert!(state.is_fickle(at(5)) && state.is_fickle(at(604)));
    assert!(!state.is_fickle(at(605)));
    state.kept_died(at(700));
    assert!(state.is_fickle(at(1_299)) && !state.is_fickle(at(1_300)));
}

#[test]
fn checks_count_in_a_row() {
    let state = state(false);
    let now = Instant::now();
    let fall = 3;
    let rise = 2;
    let is_in = || state.standing(now) == Standing::In;
    for _ in 0..2 {
        assert!(!state.check_failed(&refused(), fall));
        assert!(!state.check_failed(&refused(), fall));
        assert!(!state.check_passed(rise) && is_in());
    }
    assert!(!state.check_failed(&refused(), fall));
    assert!(!state.check_failed(&refused(), fall));
    assert!(state.check_failed(&refused(), fall) && !is_in());
    assert!(!state.check_failed(&refused(), fall), "no news");
    assert!(!state.check_passed(rise) && !is_in());
    assert!(!state.check_failed(&refused(), fall) && !is_in());
    assert!(!state.check_passed(rise) && !is_in());
    assert!(state.check_passed(rise) && is_in());
}

#[test]
fn a_connection_does_not_overrule_checks() {
    let state = state(false);
    assert!(state.check_failed(&refused(), 1));
    assert!(!state.connect_succeeded());
    assert_eq!(state.standing(Instant::now()), Standing::Out { bad_in_a_row: 0 });
}

#[test]
fn a_limit_is_exact_for_many_threads() {
    let state = state(false);
    let taken: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| (0..1_000).filter(|_| state.reserve(Some(777))).count()))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!((taken, state.connections()), (777, 777));
    state.release();
    assert!(state.reserve(Some(777)) && !state.reserve(Some(777)) && state.reserve(None));
}

#[test]
fn addresses_stay_when_a_lookup_fails() {
    let state = ServerState::new(&ServerAddress::parse("db.example:1").unwrap(), false);
    let now = Instant::now();
    assert_eq!(state.standing(now), Standing::Pending);
    assert!(state.not_found(&refused()));
    assert_eq!(state.standing(now), Standing::Unusable);
    let found = ["192.0.2.1:1".parse().unwrap(), "192.0.2.2:1".parse().unwrap()];
    assert!(state.found_at(&found) && !state.found_at(&found));
    assert!(!state.not_found(&refused()));
    assert_eq!(*state.addresses(), found);
    assert_eq!(state.standing(now), Standing::In);
}

#[test]
fn the_first_failure_is_told_and_then_one_a_minute() {
    let state = state(false);
    let start = Instant::now();
    let tells_at = |second| state.tells_failure(start + Duration::from_secs(second));
    assert!(tells_at(0) && !tells_at(1) && !tells_at(59) && tells_at(60) && !tells_at(61));
}

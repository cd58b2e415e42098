use super::*;

#[test]
fn date_line_is_an_imf_fixdate_with_its_name() {
    let line = DateLine::new();
    let moment = UNIX_EPOCH + Duration::from_secs(784_111_777);
    assert_eq!(&line.at(moment)[..], b"date: Sun, 06 Nov 1994 08:49:37 GMT\r\n");
}

#[test]
fn date_line_follows_the_second() {
    let line = DateLine::new();
    let moment = UNIX_EPOCH + Duration::from_secs(784_111_777);
    let first = line.at(moment);
    assert_eq!(line.at(moment + Duration::from_millis(999)), first);
    assert_eq!(
        &line.at(moment + Duration::from_secs(1))[..],
        b"date: Sun, 06 Nov 1994 08:49:38 GMT\r\n"
    );
}

#[test]
fn coarse_clocks_move_with_the_precise_ones() {
    let wall = CoarseClock.wall();
    let precise = SystemTime::now();
    let apart = precise.duration_since(wall).unwrap_or_default();
    assert!(apart < Duration::from_secs(1), "{apart:?}");
    let earlier = CoarseClock.monotonic();
    assert!(earlier > Duration::ZERO);
    // A tick of the kernel later.
    while CoarseClock.monotonic() <= earlier {
        std::hint::spin_loop();
    }
}

#[test]
fn what_was_never_done_was_long_ago() {
    let hour = Duration::from_hours(1);
    let now = Instant::now();
    assert!(is_long_ago(None, hour) && is_long_ago(Some(now), Duration::ZERO));
    assert!(!is_long_ago(Some(now), hour));
}

#[test]
fn a_moment_before_1970_has_a_date_line() {
    let line = DateLine::new();
    let before = line.at(UNIX_EPOCH - Duration::from_secs(1));
    assert!(before.starts_with(b"date: ") && before.ends_with(b" GMT\r\n"));
    assert_eq!(line.at(UNIX_EPOCH - Duration::from_secs(9)), before);
}

#[test]
fn a_message_is_due_once_a_second() {
    let message = OnceASecond::default();
    let begun = Instant::now();
    let is_due = |milliseconds| message.is_due(begun + Duration::from_millis(milliseconds));
    assert_eq!(
        [0, 1, 999, 1_000, 1_999, 5_000].map(is_due),
        [true, false, false, true, false, true]
    );
}

#[test]
fn a_message_of_all_workers_is_due_once_a_minute() {
    let message = OnceAMinute::default();
    let begun = Instant::now();
    let due = [0, 0, 59, 61, 61, 120, 122].map(|seconds| {
        let now = begun + Duration::from_secs(seconds);
        message.is_due(now)
    });
    assert_eq!(due, [true, false, false, true, false, false, true]);
}

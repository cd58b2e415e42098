use super::*;
use crate::client::outcome::{Delivered, Handshakes};

fn success(due: Instant, took: Duration) -> Success {
    let end = due + took;
    Success { due, first_byte: due + took / 2, end, body_bytes: 10, is_hashed: false }
}

#[test]
fn what_was_due_in_the_warm_up_does_not_count() {
    let start = Instant::now();
    let mut recorder = Recorder::new(Duration::from_secs(1)).unwrap();
    let took = Duration::from_millis(2);
    recorder.succeeded(&success(start, took));
    recorder.count_from(start + Duration::from_secs(1), None);
    recorder.succeeded(&success(start + Duration::from_millis(999), took));
    recorder.succeeded(&success(start + Duration::from_millis(1_000), took));
    recorder.failed(start, Failure::Reset);
    assert_eq!((recorder.live.succeeded, recorder.live.failed), (3, 1));
    let from = start + Duration::from_secs(1);
    let outcome = outcome(&[recorder], vec![], from, None, Duration::from_secs(1)).unwrap();
    assert_eq!((outcome.attempted, outcome.succeeded, outcome.body_bytes), (1, 1, 10));
    assert_eq!(outcome.elapsed, took);
}

#[test]
fn threads_add_up_and_seconds_go_by_due_times() {
    let from = Instant::now();
    let recorders = [100, 300].map(|milliseconds| {
        let mut recorder = Recorder::new(Duration::from_secs(1)).unwrap();
        recorder.count_from(from, None);
        // Due in the first second, over in the second.
        recorder.succeeded(&success(
            from + Duration::from_millis(950),
            Duration::from_millis(milliseconds),
        ));
        recorder.failed(from + Duration::from_millis(1_500), Failure::Timeout);
        recorder.refused(from + Duration::from_millis(1_500));
        recorder
    });
    let until = Some(from + Duration::from_secs(2));
    let outcome = outcome(&recorders, vec![], from, until, Duration::from_secs(1)).unwrap();
    let first = Second { succeeded: 2, failed: 0, latency_us: 400_000.0 };
    let second = Second { succeeded: 0, failed: 4, latency_us: 0.0 };
    assert_eq!(outcome.seconds, [first, second]);
    assert_eq!(outcome.failures.into_iter().collect::<Vec<_>>(), [("overload", 2), ("timeout", 2)]);
    assert_eq!((outcome.latency.len(), outcome.attempted), (2, 6));
}

#[test]
fn a_full_handshake_that_was_to_resume_is_noticed() {
    let from = Instant::now();
    let mut recorder = Recorder::new(Duration::from_secs(1)).unwrap();
    recorder.count_from(from, None);
    for (resumed, was_to_resume) in [
        (Resumption::Full, false),
        (Resumption::Full, true),
        (Resumption::Ticket, true),
        (Resumption::SessionId, true),
    ] {
        let took = Duration::from_millis(1);
        recorder.handshaken(
            from,
            &Handshaken { took, resumed, was_to_resume, early_data: false, wire_bytes: 1_000 },
        );
    }
    let counts = Handshakes {
        full: 2,
        by_ticket: 1,
        by_session_id: 1,
        full_bytes: 2_000,
        resumed_bytes: 2_000,
        not_resumed: 1,
        ..Handshakes::default()
    };
    assert_eq!(recorder.counted.handshakes, counts);
}

#[test]
fn a_rate_is_of_answers_that_came_within_the_time() {
    let [from, until] = [1, 2].map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut recorder = Recorder::new(Duration::from_secs(1)).unwrap();
    recorder.count_from(from, Some(until));
    let took = Duration::from_millis(100);
    // Before the time, into it, within it, out of it.
    for end in [from - took / 2, from + took / 2, from + took * 2, until + took / 2] {
        recorder.succeeded(&success(end - took, took));
    }
    let outcome = outcome(&[recorder], vec![], from, Some(until), took).unwrap();
    assert_eq!(outcome.delivered, Delivered { answers: 2, body_bytes: 20 });
    assert_eq!((outcome.succeeded, outcome.late_answers), (2, 1));
}

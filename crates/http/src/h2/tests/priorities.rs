//! PRIORITY_UPDATE (RFC 9218 §7.1): for streams under way, over, and to come.

use super::client::*;
use crate::h2::connection::*;
use crate::h2::frame::*;

/// Urgency, and whether it is incremental.
fn updated(connection: &Connection, stream: u32) -> Option<(u8, bool)> {
    connection.updated_priority(stream).map(|it| (it.urgency, it.is_incremental))
}

#[test]
fn an_update_counts_until_the_next_one() {
    let mut connection = with_request(&[("priority", "u=5")]);
    assert_eq!(updated(&connection, 1), None);
    for (value, expected) in [
        ("u=0", (0, false)),
        ("i", (3, true)),
        ("", (3, false)),
        // A value that cannot be read is as if it were not there.
        ("\"u=1", (3, false)),
        ("u=1, u=\u{e4}", (1, false)),
        ("u=9;;;,,, i=2", (3, false)),
    ] {
        // The highest bit of the number means nothing.
        assert_eq!(answer(&mut connection, &priority_update(0x8000_0001, value)), []);
        assert_eq!(updated(&connection, 1), Some(expected), "{value}");
    }
    assert_eq!(connection.end(), None);
}

#[test]
fn an_update_before_its_request_is_kept_for_it() {
    let mut connection = begun();
    let said = [priority_update(5, "u=7"), priority_update(5, "u=1"), priority_update(3, "u=6")];
    say(&mut connection, &said.concat());
    say(&mut connection, &request(1, 0, &[]));
    say(&mut connection, &request(5, 0, &[]));
    assert_eq!([1, 3, 5].map(|it| updated(&connection, it)), [None, None, Some((1, false))]);
    // The third one never begins.
    assert_eq!((connection.to_come.capacity(), connection.end()), (0, None));
}

#[test]
fn no_more_is_kept_than_there_may_be_streams() {
    let mut connection = with_request(&[]);
    for stream in [3, 5, 7, 3, 5, 7] {
        say(&mut connection, &priority_update(stream, "u=1"));
    }
    assert_eq!((connection.to_come.len(), connection.end()), (3, None));
    // One that begins is not counted twice.
    say(&mut connection, &[request(3, 0, &[]), priority_update(3, "u=2")].concat());
    assert_eq!((connection.to_come.len(), connection.end()), (2, None));
    let frames = answer(&mut connection, &priority_update(9, "u=1"));
    assert_eq!(goaways(&frames), [(3, ErrorCode::PROTOCOL_ERROR)]);
    // Before any has begun.
    let mut connection = begun();
    for stream in [1, 3, 5, 7] {
        say(&mut connection, &priority_update(stream, "u=1"));
    }
    assert_eq!((connection.to_come.len(), connection.end()), (4, None));
    let frames = answer(&mut connection, &priority_update(9, "u=1"));
    assert_eq!(goaways(&frames), [(0, ErrorCode::PROTOCOL_ERROR)]);
}

#[test]
fn an_update_for_what_is_over_is_passed_over() {
    let mut connection = begun();
    say(&mut connection, &[request(1, 1, &[]), request(5, 1, &[])].concat());
    connection.send_head(1, 200, b"", true).unwrap();
    say(&mut connection, &priority_update(1, "u=1"));
    connection.release(1);
    connection.reset(5, ErrorCode::CANCEL);
    taken(&mut connection);
    for stream in [1, 3, 5] {
        assert_eq!(answer(&mut connection, &priority_update(stream, "u=1")), []);
    }
    connection.release(5);
    say(&mut connection, &priority_update(5, "u=1"));
    assert_eq!((connection.to_come.len(), connection.end()), (0, None));
    assert_eq!(updated(&connection, 3), None);
}

#[test]
fn who_serves_the_stream_is_woken() {
    let mut connection = with_request(&[]);
    let woken = std::sync::Arc::new(Woken::default());
    let waker = std::sync::Arc::clone(&woken).into();
    connection.wait(1, &std::task::Context::from_waker(&waker));
    say(&mut connection, &priority_update(1, "u=1"));
    assert!(woken.0.load(std::sync::atomic::Ordering::Relaxed));
}

/// True once somebody was woken.
#[derive(Default)]
pub struct Woken(pub std::sync::atomic::AtomicBool);

impl std::task::Wake for Woken {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

#[test]
fn a_client_is_told_that_the_old_priorities_mean_nothing_and_says_so_once() {
    let mut connection = Connection::new(SETTINGS_USED);
    let own = taken(&mut connection);
    let setting = [&NO_RFC7540_PRIORITIES.to_be_bytes()[..], &1_u32.to_be_bytes()].concat();
    assert!(own[0].payload.chunks(6).any(|it| it == setting));
    let same = settings(&[(NO_RFC7540_PRIORITIES, 1)]);
    say(&mut connection, &[PREFACE.to_vec(), same.clone(), same, settings(&[])].concat());
    assert_eq!(connection.end(), None);
    say(&mut connection, &settings(&[(NO_RFC7540_PRIORITIES, 0)]));
    assert_eq!(connection.end(), Some(ConnectionEnd::Error(ErrorCode::PROTOCOL_ERROR)));
}

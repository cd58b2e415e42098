use super::super::frame::PRIORITY;
use super::*;

fn head(kind: u8) -> FrameHead {
    FrameHead { payload_bytes: 0, kind, flags: 0, stream: 1 }
}

#[test]
fn too_many_of_a_kind_are_named() {
    for (kind, count_max, word) in [
        (RST_STREAM, RESETS_MAX, "rapid_reset"),
        (SETTINGS, SETTINGS_MAX, "settings_flood"),
        (PING, FRAMES_MAX, "ping_flood"),
        (WINDOW_UPDATE, FRAMES_MAX, "window_update_flood"),
        (PRIORITY, FRAMES_MAX, "priority_flood"),
        (0xfe, FRAMES_MAX, "priority_flood"),
        (DATA, EMPTY_DATA_MAX, "small_data_flood"),
    ] {
        let mut flood = Flood::default();
        for _ in 0..count_max {
            flood.count(head(kind));
        }
        assert_eq!(flood.excess(), None, "{word}");
        flood.count(head(kind));
        assert_eq!(flood.excess(), Some(word));
    }
}

#[test]
fn data_that_carries_or_ends_something_is_no_flood() {
    let mut flood = Flood::default();
    for _ in 0..10 * EMPTY_DATA_MAX {
        flood.count(FrameHead { payload_bytes: 1, ..head(DATA) });
        flood.count(FrameHead { flags: END_STREAM, ..head(DATA) });
    }
    assert_eq!(flood.excess(), None);
}

#[test]
fn counting_begins_anew_after_a_while() {
    let mut flood = Flood::default();
    let mut reset_often = |ticks| {
        flood.tick(ticks, 0);
        (0..140).for_each(|_| flood.count(head(RST_STREAM)));
        flood.excess()
    };
    for ticks in [1, WINDOW_TICKS, 2 * WINDOW_TICKS] {
        assert_eq!(reset_often(ticks), None);
    }
    assert_eq!(reset_often(2 * WINDOW_TICKS + 1), Some("rapid_reset"));
}

#[test]
fn who_receives_much_may_say_so_often() {
    let mut flood = Flood::default();
    (0..3_000).for_each(|_| flood.count(head(WINDOW_UPDATE)));
    for (frames, word) in [(1_900, Some("window_update_flood")), (2_000, None)] {
        flood.tick(1, frames * SENT_BYTES_PER_FRAME);
        assert_eq!(flood.excess(), word);
    }
    flood.tick(WINDOW_TICKS, 2_000 * SENT_BYTES_PER_FRAME);
    (0..=FRAMES_MAX).for_each(|_| flood.count(head(WINDOW_UPDATE)));
    assert_eq!(flood.excess(), Some("window_update_flood"));
}

#[test]
fn each_data_frame_may_be_answered_for_both_windows_however_small_it_is() {
    let mut flood = Flood::default();
    for _ in 0..10 * FRAMES_MAX {
        flood.count_sent_data();
        (0..2).for_each(|_| flood.count(head(WINDOW_UPDATE)));
        assert_eq!(flood.excess(), None);
    }
    (0..=FRAMES_MAX).for_each(|_| flood.count(head(WINDOW_UPDATE)));
    assert_eq!(flood.excess(), Some("window_update_flood"));
    // They make up for nothing else.
    (0..=FRAMES_MAX).for_each(|_| flood.count(head(PING)));
    assert_eq!(flood.excess(), Some("ping_flood"));
}

#[test]
fn what_a_client_was_sent_may_be_answered_much_later_and_once() {
    let mut flood = Flood::default();
    let sent_bytes = 4 << 20;
    let update = |flood: &mut Flood, count: u32| {
        (0..count).for_each(|_| flood.count(head(WINDOW_UPDATE)));
        flood.excess()
    };
    flood.tick(WINDOW_TICKS, 0);
    (0..256).for_each(|_| flood.count_sent_data());
    // A client in Go takes 4,096 bytes at a time out of its buffers, and says so for the stream and for the connection.
    flood.tick(2 * WINDOW_TICKS, sent_bytes);
    assert_eq!(update(&mut flood, 2_048), None);
    // It goes on for as long as it likes, until it has answered all.
    let left = u32::try_from(sent_bytes / SENT_BYTES_PER_FRAME).unwrap() + 2 * 256 - 2_048;
    flood.tick(100 * WINDOW_TICKS, sent_bytes);
    assert_eq!(update(&mut flood, left), None);
    for windows in [1_000, 1_001, 2_000] {
        flood.tick(windows * WINDOW_TICKS, sent_bytes);
        assert_eq!(update(&mut flood, FRAMES_MAX), None);
    }
    assert_eq!(update(&mut flood, 1), Some("window_update_flood"));
}

#[test]
fn updates_that_answer_nothing_have_their_limit_however_long_a_connection_lasts() {
    let mut flood = Flood::default();
    for windows in 1..1_000 {
        flood.tick(windows * WINDOW_TICKS, 0);
        (0..FRAMES_MAX).for_each(|_| flood.count(head(WINDOW_UPDATE)));
        assert_eq!(flood.excess(), None);
    }
    flood.count(head(WINDOW_UPDATE));
    assert_eq!(flood.excess(), Some("window_update_flood"));
}

#[test]
fn priorities_may_come_with_requests() {
    let mut flood = Flood::default();
    (0..FRAMES_MAX + 100).for_each(|_| flood.count(head(PRIORITY)));
    assert_eq!(flood.excess(), Some("priority_flood"));
    (0..50).for_each(|_| flood.count_request());
    assert_eq!(flood.excess(), None);
}

#[test]
fn resets_are_held_against_requests_that_are_not_taken_back() {
    let mut flood = Flood::default();
    // One of two is taken back, without end.
    for _ in 0..2_000 {
        flood.count_request();
        flood.count_request();
        flood.count(head(RST_STREAM));
        assert_eq!(flood.excess(), None);
    }
    for _ in 0..RESETS_MAX {
        flood.count_request();
        flood.count(head(RST_STREAM));
    }
    assert_eq!(flood.excess(), None);
    flood.count_request();
    flood.count(head(RST_STREAM));
    assert_eq!(flood.excess(), Some("rapid_reset"));
}

use super::*;

fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags, 0, 0, 0, 1], payload].concat()
}

/// What comes of this frame so often, in pieces of `step` bytes.
fn observed(frame: &[u8], count: usize, step: usize) -> Option<&'static str> {
    let mut flood = Flood::default();
    let bytes = [&[0; PREFACE_BYTES][..], &frame.repeat(count)].concat();
    bytes.chunks(step).filter_map(|piece| flood.observe(piece, 1, 0)).last()
}

#[test]
fn too_many_of_a_kind_are_named_however_they_arrive() {
    for (kind, payload, count_max, word) in [
        (RST_STREAM, &[0; 4][..], RESETS_MAX, "rapid_reset"),
        (SETTINGS, &[], SETTINGS_MAX, "settings_flood"),
        (PING, &[0; 8], FRAMES_MAX, "ping_flood"),
        (WINDOW_UPDATE, &[0; 4], FRAMES_MAX, "window_update_flood"),
        (2, &[0; 5], FRAMES_MAX, "priority_flood"),
        (0xfe, &[1; 300], FRAMES_MAX, "priority_flood"),
    ] {
        let frame = frame(kind, 0, payload);
        let count_max = usize::try_from(count_max).unwrap();
        for step in [1, 7, 4_096] {
            assert_eq!(observed(&frame, count_max, step), None, "{word}");
            assert_eq!(observed(&frame, count_max + 1, step), Some(word));
        }
    }
}

#[test]
fn counting_begins_anew_after_a_while() {
    let resets = frame(RST_STREAM, 0, &[0; 4]).repeat(60);
    let mut flood = Flood::default();
    assert_eq!(flood.observe(&[0; PREFACE_BYTES], 0, 0), None);
    for ticks in [1, WINDOW_TICKS, 2 * WINDOW_TICKS] {
        assert_eq!(flood.observe(&resets, ticks, 0), None);
    }
    assert_eq!(flood.observe(&resets, 2 * WINDOW_TICKS + 1, 0), Some("rapid_reset"));
}

#[test]
fn who_receives_much_may_say_so_often() {
    let updates = frame(WINDOW_UPDATE, 0, &[0; 4]).repeat(3_000);
    let mut flood = Flood::default();
    assert_eq!(flood.observe(&[0; PREFACE_BYTES], 0, 0), None);
    assert_eq!(flood.observe(&updates, 1, 2_000 * SENT_BYTES_PER_FRAME), None);
    assert_eq!(
        flood.observe(&updates, 2, 2_000 * SENT_BYTES_PER_FRAME),
        Some("window_update_flood")
    );
}

#[test]
fn fields_are_under_way_until_their_last_frame() {
    let mut flood = Flood::default();
    flood.observe(&[0; PREFACE_BYTES], 0, 0);
    for (kind, flags, is_under_way) in
        [(HEADERS, 0, true), (CONTINUATION, 0, true), (CONTINUATION, END_HEADERS, false)]
    {
        flood.observe(&frame(kind, flags, &[0; 10]), 0, 0);
        assert_eq!(flood.is_in_fields(), is_under_way);
    }
}

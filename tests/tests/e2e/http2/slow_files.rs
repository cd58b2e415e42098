//! Files whose disk does not answer: what they wait for keeps nothing from the other streams of their connection.

use std::collections::BTreeMap;

use kettle_tests::fuse::{Fuse, Silent};

use super::*;

/// As many as use up all the memory for pieces of files.
const FILES: &[(&str, usize, Silent)] = &[
    ("0", BODY_BYTES, HANGS_LATER),
    ("1", BODY_BYTES, HANGS_LATER),
    ("2", BODY_BYTES, HANGS_LATER),
    ("3", BODY_BYTES, HANGS_LATER),
    ("4", BODY_BYTES, HANGS_LATER),
    ("5", BODY_BYTES, HANGS_LATER),
    ("6", BODY_BYTES, HANGS_LATER),
    ("7", BODY_BYTES, HANGS_LATER),
];
const BODY_BYTES: usize = 1 << 20;
const BEGINNING_BYTES: usize = 256 * 1024;
/// Of a connection, at first.
const WINDOW_BYTES: usize = 65_535;
/// So much that the others hang long before its end.
const QUICK_BYTES: usize = 8 << 20;
const HANGS_LATER: Silent = Silent::ReadBeyond(BEGINNING_BYTES as u64);

/// The lengths of the frames that each stream had.
type Had = BTreeMap<u32, Vec<usize>>;

fn start() -> Option<(Kettle, Fuse)> {
    let setup = over_http2().set("limits", "disk_timeout = \"5m\"");
    let kettle = Kettle::start(setup.sizes(&[QUICK_BYTES]));
    let fuse = Fuse::mount_or_skip(kettle.folder.path("www/mounted"), FILES)?;
    Some((kettle, fuse))
}

fn had_bytes(had: &Had, stream: u32) -> usize {
    had.get(&stream).map_or(0, |sizes| sizes.iter().sum())
}

fn next_data(frames: &mut Frames, had: &mut Had) -> Frame {
    loop {
        let frame = frames.next().expect("the connection goes on");
        assert_ne!(frame.kind, GOAWAY, "{:?}", frame.payload);
        if frame.kind == DATA {
            had.entry(frame.stream).or_default().push(frame.payload.len());
            return frame;
        }
    }
}

fn give_back(frames: &mut Frames, stream: u32, bytes: usize) {
    if bytes > 0 {
        let more = u32::try_from(bytes).unwrap().to_be_bytes();
        frames.send(&frame(WINDOW_UPDATE, 0, stream, &more));
    }
}

/// All of a body that needs no thread, with the lengths of its frames. The window of the connection has so many bytes left, and is
/// given back at once where it would be less than the protocol's own.
fn quick_body(frames: &mut Frames, stream: u32, mut window_bytes: usize) -> Vec<usize> {
    frames.send(&get(stream, &format!("/{QUICK_BYTES}")));
    let mut had = Had::new();
    let mut body = Vec::new();
    loop {
        let frame = next_data(frames, &mut had);
        window_bytes -= frame.payload.len();
        let used_bytes = WINDOW_BYTES.saturating_sub(window_bytes).min(frame.payload.len());
        give_back(frames, 0, used_bytes);
        window_bytes += used_bytes;
        if frame.stream == stream {
            body.extend_from_slice(&frame.payload);
            if frame.flags & END_STREAM != 0 {
                assert_same(&body, &content(QUICK_BYTES), "beside files that hang");
                return had.remove(&stream).unwrap();
            }
            give_back(frames, stream, frame.payload.len());
        }
    }
}

#[test]
fn files_that_hang_take_nothing_of_the_window_of_their_connection() {
    let Some((kettle, fuse)) = start() else { return };
    let mut frames = Frames::connect(&kettle, &[(INITIAL_WINDOW_SIZE, 1 << 20)]);
    // Enough for both to get as far as they come.
    give_back(&mut frames, 0, 2 * BODY_BYTES);
    frames.send(&[get(1, "/mounted/0"), get(3, "/mounted/1")].concat());
    let mut had = Had::new();
    while [1, 3].into_iter().any(|stream| had_bytes(&had, stream) < BEGINNING_BYTES / 4) {
        let _ = next_data(&mut frames, &mut had);
    }
    fuse.wait_for_unanswered(2);
    let had_bytes: usize = had.values().flatten().sum();
    let sizes = quick_body(&mut frames, 5, WINDOW_BYTES + 2 * BODY_BYTES - had_bytes);
    // Four full frames leave 35 of 65,535 bytes for one more.
    let small = sizes.iter().filter(|bytes| **bytes < 1_000).count();
    assert!(small < sizes.len() / 2, "{small} of {} frames are small", sizes.len());
}

#[test]
fn files_that_hang_hold_up_nobody_who_needs_no_disk() {
    let Some((kettle, _fuse)) = start() else { return };
    let mut frames = Frames::connect(&kettle, &[(INITIAL_WINDOW_SIZE, 10_000)]);
    give_back(&mut frames, 0, 4 * QUICK_BYTES);
    // Each begins before any of them hangs.
    let mut had = Had::new();
    for place in 0..FILES.len() {
        let stream = 2 * u32::try_from(place).unwrap() + 1;
        frames.send(&get(stream, &format!("/mounted/{place}")));
        while had_bytes(&had, stream) < 10_000 {
            let _ = next_data(&mut frames, &mut had);
        }
    }
    frames.send(&initial_window(1 << 20));
    let had_bytes: usize = had.values().flatten().sum();
    let _ = quick_body(&mut frames, 101, WINDOW_BYTES + 4 * QUICK_BYTES - had_bytes);
}

//! Priorities (RFC 9218): what a page needs first comes first, whatever was asked for before it.

use super::*;

const STYLE_BYTES: usize = 400_000;

/// Asks for something of this priority.
fn ask(frames: &mut Frames, stream: u32, path: &str, priority: &str) {
    let fields = fields("GET", path, &[("priority", priority)]);
    frames.send(&frame(HEADERS, END_HEADERS | END_STREAM, stream, &fields));
}

/// A client that reads only when it wants to, with windows for all there is.
fn wide(kettle: &Kettle) -> Frames {
    let dialer = Dialer::default().reading_slowly();
    let mut frames = Frames::begin(dialer, kettle, &[(INITIAL_WINDOW_SIZE, WINDOW_MAX)]);
    frames.send(&update(0, WINDOW_MAX - 65_535));
    frames
}

#[test]
fn a_style_sheet_overtakes_ten_images() {
    let image_bytes = scaled(8 << 20, 4 << 20);
    let setup = over_http2().without_memory();
    let kettle = Kettle::start(setup.sizes(&[image_bytes, STYLE_BYTES]));
    let mut frames = wide(&kettle);
    for number in 0..10 {
        ask(&mut frames, 2 * number + 1, &format!("/{image_bytes}"), "u=5, i");
    }
    kettle.wait_for_status("/total/http2_streams", 10);
    ask(&mut frames, 21, &format!("/{STYLE_BYTES}"), "u=0");
    kettle.wait_for_status("/total/http2_streams", 11);
    let mut style = Vec::new();
    let mut beside_bytes = 0;
    loop {
        let data = frames.next_of(DATA);
        if data.stream != 21 {
            beside_bytes += if style.is_empty() { 0 } else { data.payload.len() };
            continue;
        }
        style.extend(data.payload);
        if data.flags & END_STREAM != 0 {
            break;
        }
    }
    assert_eq!(style, content(STYLE_BYTES));
    // In turns it would be ten times as much as the sheet.
    assert!(beside_bytes < 4 * STYLE_BYTES, "{beside_bytes} bytes of images beside it");
    // Nobody is forgotten.
    for number in 1..10 {
        frames.send(&cancel(2 * number + 1));
    }
    while {
        let data = frames.next_of(DATA);
        data.stream != 1 || data.flags & END_STREAM == 0
    } {}
    assert!(kettle.entry(&format!("/{STYLE_BYTES}")).is_complete());
}

#[test]
fn what_is_of_use_only_as_a_whole_comes_one_after_the_other() {
    let setup = over_http2().without_memory();
    let kettle = Kettle::start(setup.sizes(&[1 << 20, 8 << 20]));
    let mut frames = wide(&kettle);
    // The response before them is more than the sockets hold.
    ask(&mut frames, 1, "/8388608", "u=1");
    kettle.wait_for_status("/total/http2_streams", 1);
    for stream in [3, 5, 7, 9] {
        ask(&mut frames, stream, "/1048576", "u=4");
    }
    kettle.wait_for_status("/total/http2_streams", 5);
    let mut ended = Vec::new();
    while ended.len() < 5 {
        let data = frames.next_of(DATA);
        if data.flags & END_STREAM != 0 {
            ended.push(data.stream);
        }
    }
    assert_eq!(ended, [1, 3, 5, 7, 9]);
}

/// An update comes later, of a response that is under way or waits, or before its request.
#[test]
fn an_update_moves_a_response_in_the_line() {
    let image_bytes = scaled(16 << 20, 8 << 20);
    let setup = over_http2().without_memory();
    let kettle = Kettle::start(setup.sizes(&[image_bytes, STYLE_BYTES]));
    let update = |stream: u32, value: &str| {
        let payload = [&stream.to_be_bytes()[..], value.as_bytes()].concat();
        frame(PRIORITY_UPDATE, 0, 0, &payload)
    };
    for (place, (before, after, expected)) in (0..).zip([
        (None, None, [1, 3]),
        (None, Some((3, "u=0")), [3, 1]),
        (None, Some((1, "u=7")), [3, 1]),
        (Some((3, "u=0")), None, [3, 1]),
    ]) {
        let mut frames = wide(&kettle);
        let said = before.map(|(stream, value)| update(stream, value));
        frames.send(&said.unwrap_or_default());
        ask(&mut frames, 1, &format!("/{image_bytes}"), "u=4");
        kettle.wait_for_status("/total/http2_streams", 2 * place + 1);
        ask(&mut frames, 3, &format!("/{STYLE_BYTES}"), "u=5");
        kettle.wait_for_status("/total/http2_streams", 2 * place + 2);
        frames.send(&after.map(|(stream, value)| update(stream, value)).unwrap_or_default());
        let mut ended = Vec::new();
        while ended.len() < 2 {
            let data = frames.next_of(DATA);
            if data.flags & END_STREAM != 0 {
                ended.push(data.stream);
            }
        }
        assert_eq!(ended, expected, "{before:?} {after:?}");
    }
}

#[test]
fn with_narrow_windows_and_priorities_of_all_kinds_each_response_comes() {
    let setup = over_http2().without_memory();
    let kettle = Kettle::start(setup.sizes(&[200_000]));
    for window in [65_535, 1_000_000] {
        let mut frames = Frames::connect(&kettle, &[(INITIAL_WINDOW_SIZE, window)]);
        let kinds = ["u=0", "u=7", "u=7, i", "", "u=9", "i", "u=3;x, i=?0", "\"", "u=1, u=6"];
        for (stream, kind) in (1..).step_by(2).zip(kinds) {
            ask(&mut frames, stream, "/200000", kind);
        }
        let mut left = kinds.len();
        while left > 0 {
            let data = frames.next_of(DATA);
            left -= usize::from(data.flags & END_STREAM);
            if !data.payload.is_empty() {
                let more = u32::try_from(data.payload.len()).unwrap().to_be_bytes();
                frames.send(&frame(WINDOW_UPDATE, 0, data.stream, &more));
                frames.send(&frame(WINDOW_UPDATE, 0, 0, &more));
            }
        }
    }
}

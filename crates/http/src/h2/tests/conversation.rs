//! Whatever is said in whatever order, and however it arrives.

use proptest::collection::vec;
use proptest::prelude::*;

use super::client::*;
use crate::h2::connection::*;
use crate::h2::frame::*;
use crate::h2::*;

/// The next act.
#[derive(Clone, Debug)]
enum Act {
    Said(Vec<u8>),
    Read(u32),
    Answer(u32, u16, bool),
    Send(u32, usize, bool),
    Trailers(u32),
    Reset(u32, u32),
    Release(u32),
    Leave,
}

fn stream() -> impl Strategy<Value = u32> {
    (0_u32..8).prop_map(|place| 2 * place + 1)
}

/// Frames as a client that knows the protocol sends them, not always when it should.
fn said() -> impl Strategy<Value = Vec<u8>> {
    let flags = prop_oneof![Just(0_u8), Just(END_STREAM)];
    let length =
        prop_oneof![Just(None), (0_usize..200).prop_map(|length| Some(length.to_string()))];
    prop_oneof![
        4 => (stream(), flags.clone(), length).prop_map(|(stream, flags, length)| {
            let more: Vec<_> = length.iter().map(|it| ("content-length", &**it)).collect();
            request(stream, flags, &more)
        }),
        1 => (stream(), 0_usize..30).prop_map(|(stream, cut)| {
            let block = request_block(&[]);
            let (front, rest) = block.split_at(cut.min(block.len()));
            let continued = frame(CONTINUATION, END_HEADERS, stream, rest);
            [frame(HEADERS, 0, stream, front), continued].concat()
        }),
        4 => (stream(), flags.clone(), 0_usize..300).prop_map(|it| data(it.0, it.1, it.2)),
        3 => (stream(), flags, 0_usize..99, any::<u8>()).prop_map(|it| padded(it.0, it.1, it.2, it.3)),
        1 => stream().prop_map(|stream| frame(HEADERS, 5, stream, &block(&[("a", "b")]))),
        1 => stream().prop_map(rst),
        2 => (0_u32..16, 1_u32..5_000).prop_map(|(stream, bytes)| window_update(stream, bytes)),
        1 => (0_u32..70_000).prop_map(|bytes| settings(&[(INITIAL_WINDOW_SIZE, bytes)])),
        1 => any::<[u8; 8]>().prop_map(|payload| frame(PING, 0, 0, &payload)),
        1 => Just(frame(PING, ACK, 0, LEAVING_PING)),
        1 => (stream(), vec(any::<u8>(), 4..7)).prop_map(|it| frame(PRIORITY, 0, it.0, &it.1)),
        1 => Just(frame(GOAWAY, 0, 0, &[0; 8])),
    ]
}

fn anything() -> impl Strategy<Value = Vec<u8>> {
    let payload = vec(any::<u8>(), 0..40);
    prop_oneof![
        8 => said(),
        3 => (0_u8..12, any::<u8>(), 0_u32..17, payload.clone())
            .prop_map(|(kind, flags, stream, payload)| frame(kind, flags, stream, &payload)),
        1 => payload,
    ]
}

fn acts(said: impl Strategy<Value = Vec<u8>>) -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        12 => said.prop_map(Act::Said),
        3 => stream().prop_map(Act::Read),
        2 => (stream(), prop_oneof![Just(103), Just(200)], any::<bool>())
            .prop_map(|it| Act::Answer(it.0, it.1, it.2 && it.1 == 200)),
        3 => (stream(), 0_usize..30_000, any::<bool>()).prop_map(|it| Act::Send(it.0, it.1, it.2)),
        1 => stream().prop_map(Act::Trailers),
        1 => (stream(), 0_u32..12).prop_map(|it| Act::Reset(it.0, it.1)),
        2 => stream().prop_map(Act::Release),
        1 => Just(Act::Leave),
    ];
    vec(act, 0..80)
}

/// The outcome of a conversation.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    frames: Vec<Frame>,
    window_bytes: i64,
    requests: Vec<(u32, Vec<u8>, bool, bool)>,
    read: Vec<(u32, String)>,
    end: Option<ConnectionEnd>,
}

/// Plays it, with everything that is said in pieces of these sizes.
fn play(acts: &[Act], sizes: &[usize]) -> Outcome {
    let mut connection = begun();
    let mut output = Vec::new();
    let mut requests = Vec::new();
    let mut read = Vec::new();
    let mut sizes = sizes.iter().copied().cycle();
    for act in acts {
        match act {
            Act::Said(bytes) => {
                let mut left = &bytes[..];
                while !left.is_empty() {
                    let piece;
                    (piece, left) = left.split_at(sizes.next().unwrap().clamp(1, left.len()));
                    let before = connection.output().len();
                    say(&mut connection, piece);
                    // A DATA frame of two bytes may cost three windows and a reset.
                    let grown = connection.output().len() - before;
                    assert!(grown <= OUTPUT_FACTOR * (piece.len() + HEAD_BYTES + 2) + 17);
                    assert_bounded(&connection);
                }
                while let Some(it) = connection.next_request() {
                    requests.push((it.stream, it.text.lines, it.outcome.is_ok(), it.is_whole));
                }
            }
            Act::Read(stream) => {
                read.push((*stream, format!("{:?}", incoming(&mut connection, *stream))));
            }
            act => serve(&mut connection, act),
        }
        assert_bounded(&connection);
        output.append(connection.output());
    }
    let mut frames = frames(&output);
    // The bytes that are gone of a frame may be told at once or in parts: the window of all streams is compared as a whole.
    frames.retain(|it| it.kind != WINDOW_UPDATE || it.stream != 0);
    let end = connection.end();
    // If it ends in the middle of a frame, more or less of that was looked at.
    let window_bytes = if end.is_none() { window_bytes(&connection) } else { 0 };
    Outcome { frames, window_bytes, requests, read, end }
}

fn serve(connection: &mut Connection, act: &Act) {
    match *act {
        Act::Answer(stream, status, is_end) => {
            let _ = connection.send_head(stream, status, b"a: b\r\n", is_end);
        }
        Act::Send(stream, bytes, is_end) => {
            let bytes = bytes.min(PAYLOAD_BYTES_MAX);
            let before = (connection.send_bytes, connection.room(stream));
            let Ok(head) = connection.data_head(stream, bytes, is_end) else {
                return assert_eq!((connection.send_bytes, connection.room(stream)), before);
            };
            assert!(bytes == 0 || matches!(before.1, Ok(Room::Bytes(room)) if bytes <= room));
            connection.output().extend(head);
            connection.output.resize(connection.output.len() + bytes, 0);
        }
        Act::Trailers(stream) => {
            let _ = connection.send_trailers(stream, b"c: d\r\n");
        }
        // Nobody serves a stream that has not begun.
        Act::Reset(stream, code) if stream <= connection.last_stream => {
            connection.reset(stream, ErrorCode(code));
        }
        Act::Release(stream) => connection.release(stream),
        Act::Leave => connection.leave(),
        _ => {}
    }
}

/// The rules that hold at every moment.
fn assert_bounded(connection: &Connection) {
    let unread_bytes: usize = connection.streams.iter().map(|it| it.held_bytes()).sum();
    assert!(connection.receive_window.bytes >= 0);
    assert!(connection.streams.iter().all(|it| it.receive_window.bytes >= 0));
    assert!(connection.streams.iter().all(|it| it.held_bytes() <= 1_000));
    assert!(connection.streams.is_sorted_by_key(|it| it.number));
    assert!(connection.payload.len() <= PAYLOAD_BYTES_MAX);
    assert!(connection.requests.len() <= connection.streams.len());
    assert!(connection.left_behind.len() <= 256);
    assert!(connection.streams.iter().filter(|it| it.is_open()).count() <= 4);
    let block_bytes = connection.block.as_ref().map_or(0, |block| block.bytes.len());
    assert!(block_bytes <= PAYLOAD_BYTES_MAX.max(4 * SETTINGS_USED.head_bytes_max));
    if connection.end().is_none() && connection.frames.is_between() {
        let all_bytes = window_bytes(connection) + i64::try_from(unread_bytes).unwrap();
        assert_eq!(all_bytes, 70_000);
    }
}

const OUTPUT_FACTOR: usize = 5;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn anything_in_any_order_keeps_within_bounds(acts in acts(anything()), size in 1_usize..2_000) {
        play(&acts, &[size]);
    }

    #[test]
    fn bytes_that_mean_nothing_keep_within_bounds(bytes in vec(any::<u8>(), 0..400), cut in 0_usize..=24) {
        let mut connection = Connection::new(SETTINGS_USED);
        say(&mut connection, &[&PREFACE[..cut], &bytes[..]].concat());
        prop_assert!(connection.output().len() <= 100 + OUTPUT_FACTOR * bytes.len());
        prop_assert!(cut == 24 || bytes.is_empty() || connection.end().is_some() || bytes[0] == PREFACE[cut]);
    }

    #[test]
    fn a_conversation_is_the_same_however_it_arrives(
        acts in acts(anything()),
        sizes in vec(1_usize..400, 1..20),
    ) {
        let whole = play(&acts, &[usize::MAX]);
        prop_assert_eq!(&play(&acts, &[1]), &whole);
        prop_assert_eq!(&play(&acts, &sizes), &whole);
    }
}

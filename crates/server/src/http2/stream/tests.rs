mod heads;

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};

use kettle_http::h2::{self, Settings};
use kettle_tls::stream::Stream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::relay::tests::stage::{Tls13, locally, offloads, tls_pair};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A GET, its method, scheme and path from the static table.
fn get(stream: u32) -> Vec<u8> {
    frame(1, 5, stream, b"\x82\x87\x84\x01\x01a")
}

/// A connection on which the client has said this, and the client.
async fn connection(said: &[u8]) -> (Rc<Http2Io>, Box<Stream>) {
    let (near, mut far) = tls_pair(Tls13).await;
    let settings = Settings {
        streams_max: 100,
        stream_window_bytes: 65_535,
        connection_window_bytes: 65_535,
        head_bytes_max: 16_384,
    };
    let io = Rc::new(Http2Io::new(
        near,
        h2::Connection::new(settings),
        Rc::new(offloads()),
        Rc::default(),
    ));
    far.write_all(&[PREFACE, said].concat()).await.unwrap();
    far.flush().await.unwrap();
    let expected = said.iter().filter(|byte| **byte == 0x82).count();
    let mut begun = 0;
    while begun < expected {
        let heard = poll_fn(|context| {
            io.begin_turn(context, 0);
            io.poll_receive(context)
        });
        heard.await.unwrap();
        begun += io.with_frames(|it| std::iter::from_fn(|| it.next_request()).count());
    }
    (io, far)
}

fn room(stream: &Http2Stream, place: &mut Option<QueuePlace>, bytes: usize) -> Option<usize> {
    let mut context = Context::from_waker(Waker::noop());
    match stream.poll_room(&mut context, place, Priority::UNSAID, bytes) {
        Poll::Ready(room) => Some(room.unwrap()),
        Poll::Pending => None,
    }
}

fn memory<'s>(
    stream: &'s Http2Stream,
    place: &mut Option<QueuePlace>,
    waker: &Waker,
) -> Poll<Result<ReadMemory<'s>, StreamClosed>> {
    let mut context = Context::from_waker(waker);
    let priority = Priority { is_incremental: false, ..Priority::UNSAID };
    stream.poll_read_memory(&mut context, place, priority, PIECE_BYTES)
}

#[tokio::test]
async fn windows_are_whole_again_after_responses_that_nobody_takes() {
    locally(async {
        let streams = [1, 3, 5, 7, 9];
        let (io, _client) = connection(&streams.map(get).concat()).await;
        for number in streams {
            let stream = Http2Stream::new(Rc::clone(&io), number);
            stream.send_head(200, b"", false).unwrap();
            assert_eq!(room(&stream, &mut None, PIECE_BYTES), Some(PIECE_BYTES));
            // It is taken back while the file is read.
            let reset = frame(3, 0, number, &8_u32.to_be_bytes());
            io.with_frames(|frames| frames.receive(&reset, 0, 0));
            assert_eq!(stream.send(&[0; PIECE_BYTES], true), Err(StreamClosed));
        }
        io.with_frames(|frames| frames.receive(&get(11), 0, 0));
        let stream = Http2Stream::new(Rc::clone(&io), 11);
        stream.send_head(200, b"", false).unwrap();
        let mut sent_bytes = 0;
        while let Some(room_bytes) = room(&stream, &mut None, PIECE_BYTES) {
            sent_bytes += room_bytes;
            stream.send(&vec![0; room_bytes], false).unwrap();
        }
        assert_eq!(sent_bytes, 65_535);
    })
    .await;
}

#[tokio::test]
async fn what_threads_read_is_bounded_and_takes_nothing_of_the_windows() {
    locally(async {
        let numbers: Vec<u32> = (0..12).map(|place| 2 * place + 1).collect();
        let said: Vec<u8> = numbers.iter().flat_map(|number| get(*number)).collect();
        let (io, _client) = connection(&said).await;
        let streams: Vec<_> =
            numbers.iter().map(|number| Http2Stream::new(Rc::clone(&io), *number)).collect();
        streams.iter().for_each(|stream| stream.send_head(200, b"", false).unwrap());
        let wakes = Arc::new(Wakes::default());
        let mut places = [const { None }; 12];
        let waker = Waker::from(Arc::clone(&wakes));
        let mut read = Vec::new();
        for (stream, place) in streams[..8].iter().zip(&mut places) {
            let Poll::Ready(Ok(memory)) = memory(stream, place, &waker) else { panic!() };
            read.push(memory);
        }
        assert!(memory(&streams[10], &mut places[10], &waker).is_pending());
        assert!(memory(&streams[9], &mut places[9], &waker).is_pending());
        // A stream that needs no thread is in nobody's way.
        for sent_bytes in [PIECE_BYTES, PIECE_BYTES, 65_535 - 2 * PIECE_BYTES] {
            assert_eq!(room(&streams[11], &mut None, PIECE_BYTES), Some(sent_bytes));
            streams[11].send(&vec![0; sent_bytes], false).unwrap();
        }
        assert_eq!(wakes.0.load(Ordering::Relaxed), 0);
        drop(read.pop());
        assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
        // In the order in which they were asked for.
        assert!(memory(&streams[10], &mut places[10], &waker).is_pending());
        let first = memory(&streams[9], &mut places[9], &waker);
        assert!(matches!(first, Poll::Ready(Ok(_))));
        drop((first, read));
        // Nor is one that is taken back.
        io.with_frames(|it| it.receive(&frame(3, 0, 21, &8_u32.to_be_bytes()), 0, 0));
        let gone = memory(&streams[10], &mut places[10], &waker);
        assert!(matches!(gone, Poll::Ready(Err(StreamClosed))));
        assert_eq!(io.read_bytes.get(), 0);
    })
    .await;
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A connection whose client takes nothing, with as much held for it as may be, a stream that goes on, and the client.
pub(crate) async fn blocked() -> (Rc<Http2Io>, Http2Stream, Box<Stream>) {
    let window = 0x7fff_ffff_u32;
    let settings = frame(4, 0, 0, &[&[0, 4][..], &window.to_be_bytes()].concat());
    let update = frame(8, 0, 0, &(window - 65_535).to_be_bytes());
    let (io, client) = connection(&[settings, update, get(1)].concat()).await;
    let stream = Http2Stream::new(Rc::clone(&io), 1);
    stream.send_head(200, b"", false).unwrap();
    let mut place = None;
    let mut idle_turns = 0;
    while idle_turns < 100 {
        let written_bytes = stream.written_bytes();
        while let Some(room_bytes) = room(&stream, &mut place, SMALL_PIECE_BYTES) {
            stream.send(&vec![0; room_bytes], false).unwrap();
        }
        let flushed = io.poll_flush(&mut Context::from_waker(Waker::noop()));
        let is_idle = flushed.is_pending() && stream.written_bytes() == written_bytes;
        idle_turns = if is_idle { idle_turns + 1 } else { 0 };
        tokio::task::yield_now().await;
    }
    (io, stream, client)
}

/// It leaves little of what may be held.
const SMALL_PIECE_BYTES: usize = 4_000;

/// Fewer are no flood for how much a blocked client was sent. Answers to them are more than is held for it besides.
const PINGS: usize = 4_500;

async fn ping(client: &mut Stream) {
    client.write_all(&frame(6, 0, 0, &[0; 8]).repeat(PINGS)).await.unwrap();
    client.flush().await.unwrap();
}

#[tokio::test]
async fn a_client_that_takes_nothing_and_goes_on_talking_holds_little() {
    locally(async {
        let (io, _stream, mut client) = blocked().await;
        let taken = io.taken_so_far();
        let before_bytes = io.held_bytes();
        ping(&mut client).await;
        let mut context = Context::from_waker(Waker::noop());
        let mut idle_turns = 0;
        while idle_turns < 100 {
            io.begin_turn(&context, 0);
            let heard = io.poll_receive(&mut context);
            idle_turns += u32::from(heard.is_pending());
            assert!(io.poll_flush(&mut context).is_pending());
            tokio::task::yield_now().await;
        }
        assert!(io.with_frames(|frames| frames.end()).is_none());
        assert_eq!(io.taken_so_far(), taken);
        assert!(io.was_unheard(), "there is room for {before_bytes} bytes and all answers");
        let held_bytes = io.held_bytes();
        assert!(held_bytes < 200_000, "{held_bytes} bytes for a client that takes nothing");
    })
    .await;
}

#[tokio::test]
async fn a_client_that_takes_all_in_the_turn_in_which_it_became_too_much_is_listened_to_again() {
    locally(async {
        let (io, _stream, mut client) = blocked().await;
        ping(&mut client).await;
        let wakes = Arc::new(Wakes::default());
        let waker = Waker::from(Arc::clone(&wakes));
        let driver = Context::from_waker(&waker);
        let mut context = Context::from_waker(Waker::noop());
        loop {
            io.begin_turn(&driver, 0);
            assert!(!io.was_unheard());
            while io.poll_receive(&mut context).is_ready() {}
            if io.was_unheard() {
                break;
            }
            io.end_turn();
            tokio::task::yield_now().await;
        }
        let mut taken = vec![0; PIECE_BYTES];
        while io.poll_flush(&mut context).is_pending() {
            assert_ne!(client.read(&mut taken).await.unwrap(), 0);
        }
        assert_eq!(wakes.0.load(Ordering::Relaxed), 0);
        io.end_turn();
        assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
    })
    .await;
}

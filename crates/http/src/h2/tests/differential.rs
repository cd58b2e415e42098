//! The `h2` crate as the client: whatever its windows, every body arrives whole, in both directions.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::{LocalSet, spawn_local};

use super::client::{incoming, window_bytes};
use crate::h2::frame::PAYLOAD_BYTES_MAX;
use crate::h2::*;

/// The fate of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Its body comes back, with its trailers.
    Echo,
    /// The same behind interim heads.
    Interim,
    /// It is answered before its body has come.
    Early,
    /// The server resets it when its body begins.
    Refused,
    /// The client takes it back in the middle of its body.
    TakenBack,
}

#[derive(Clone, Debug)]
struct Asked {
    kind: Kind,
    pieces: Vec<usize>,
    has_trailers: bool,
}

/// A response on its way.
#[derive(Default)]
struct Response {
    kind: Option<Kind>,
    has_head: bool,
    left: Vec<u8>,
    trailers: Option<Vec<u8>>,
}

fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![
        4 => Just(Kind::Echo),
        1 => Just(Kind::Interim),
        1 => Just(Kind::Early),
        1 => Just(Kind::Refused),
        1 => Just(Kind::TakenBack),
    ]
}

fn asked() -> impl Strategy<Value = Asked> {
    (kinds(), vec(0_usize..20_000, 0..6), any::<bool>())
        .prop_map(|(kind, pieces, has_trailers)| Asked { kind, pieces, has_trailers })
}

/// Our side of the wire, until the client closes it.
async fn serve(wire: DuplexStream, settings: Settings) -> Connection {
    let (mut receiving, mut sending) = tokio::io::split(wire);
    let mut connection = Connection::new(settings);
    let mut responses = BTreeMap::<u32, Response>::new();
    // However small its windows are, this client is not to be taken for a flood.
    let mut ticks = 0;
    let mut buffer = vec![0; 7_001];
    loop {
        let due = connection.output().clone();
        tokio::select! {
            received = receiving.read(&mut buffer) => match received.unwrap_or(0) {
                0 => return connection,
                bytes => {
                    ticks += 10;
                    connection.receive(&buffer[..bytes], ticks, 0);
                    assert_eq!(connection.end(), None);
                }
            },
            sent = sending.write(&due), if !due.is_empty() => match sent {
                Ok(bytes) => drop(connection.output().drain(..bytes)),
                Err(_) => return connection,
            },
        }
        while let Some(request) = connection.next_request() {
            assert_eq!(request.outcome, Ok(()));
            let text = String::from_utf8(request.text.lines).unwrap();
            let all = [Kind::Echo, Kind::Interim, Kind::Early, Kind::Refused, Kind::TakenBack];
            let kind = all.into_iter().find(|kind| text.contains(&format!("x-kind: {kind:?}\r\n")));
            responses.insert(request.stream, Response { kind, ..Response::default() });
        }
        responses.retain(|number, response| {
            let goes_on = answer(&mut connection, *number, response);
            if !goes_on {
                connection.release(*number);
            }
            goes_on
        });
    }
}

/// Goes on with a response; `false` if that was all.
fn answer(connection: &mut Connection, number: u32, response: &mut Response) -> bool {
    let kind = response.kind.unwrap();
    if !response.has_head {
        if kind == Kind::Interim {
            connection.send_head(number, 103, b"link: a\r\n", false).unwrap();
        }
        if connection.send_head(number, 200, b"a: b\r\n", false).is_err() {
            return false;
        }
        response.has_head = true;
        if kind == Kind::Early {
            (response.left, response.trailers) = (vec![b'e'; 30_000], Some(Vec::new()));
        }
    }
    while response.trailers.is_none() {
        match incoming(connection, number) {
            Poll::Ready(Ok(Incoming::Data(_))) if kind == Kind::Refused => {
                connection.reset(number, ErrorCode::CANCEL);
                return false;
            }
            Poll::Ready(Ok(Incoming::Data(data))) => response.left.extend(data),
            Poll::Ready(Ok(Incoming::End(trailers))) => response.trailers = Some(trailers.unwrap()),
            Poll::Ready(Err(_)) => return false,
            Poll::Pending => break,
        }
    }
    while !response.left.is_empty() {
        let bytes = match connection.room(number) {
            Ok(Room::Bytes(bytes)) => bytes.min(response.left.len()).min(PAYLOAD_BYTES_MAX),
            Ok(_) => return true,
            Err(_) => return false,
        };
        let head = connection.data_head(number, bytes, false).unwrap();
        let data: Vec<_> = response.left.drain(..bytes).collect();
        connection.output().extend(head.iter().chain(&data));
    }
    match &response.trailers {
        None => true,
        Some(lines) if lines.is_empty() => {
            let head = connection.data_head(number, 0, true).unwrap();
            connection.output().extend(head);
            false
        }
        Some(lines) => connection.send_trailers(number, lines).is_err(),
    }
}

/// One request of the client, and what has to come of it.
async fn ask(mut client: ::h2::client::SendRequest<Bytes>, asked: Asked) {
    poll_fn(|context| client.poll_ready(context)).await.unwrap();
    let request = http::Request::post("https://a/").header("x-kind", format!("{:?}", asked.kind));
    let (response, mut body) = client.send_request(request.body(()).unwrap(), false).unwrap();
    let whole: Vec<u8> = (0..asked.pieces.iter().sum()).map(|place: usize| place as u8).collect();
    let kind = asked.kind;
    let mut left = Bytes::from(whole.clone());
    let send = async move {
        for (place, bytes) in asked.pieces.iter().enumerate() {
            let mut piece = left.split_to(*bytes);
            while !piece.is_empty() {
                body.reserve_capacity(piece.len());
                let room = poll_fn(|context| body.poll_capacity(context)).await;
                let Some(Ok(room)) = room else { return };
                if body.send_data(piece.split_to(room.min(piece.len())), false).is_err() {
                    return;
                }
            }
            if kind == Kind::TakenBack && place == 1 {
                return body.send_reset(::h2::Reason::CANCEL);
            }
        }
        let trailers = http::HeaderMap::from_iter([("c".parse().unwrap(), "d".parse().unwrap())]);
        // A server that wants none of it may have said so.
        let _ = match asked.has_trailers {
            true => body.send_trailers(trailers),
            false => body.send_data(Bytes::new(), true),
        };
    };
    let hear = async move {
        let mut body = response.await?.into_body();
        let mut heard = Vec::new();
        while let Some(data) = body.data().await {
            let data = data?;
            heard.extend_from_slice(&data);
            body.flow_control().release_capacity(data.len())?;
        }
        Ok::<_, ::h2::Error>((heard, body.trailers().await?))
    };
    let ((), heard) = tokio::join!(send, hear);
    match kind {
        Kind::Echo | Kind::Interim => {
            let (heard, trailers) = heard.unwrap();
            assert!(heard == whole);
            assert_eq!(trailers.is_some_and(|it| it["c"] == "d"), asked.has_trailers);
        }
        Kind::Early => assert_eq!(heard.unwrap().0, vec![b'e'; 30_000]),
        Kind::Refused if !whole.is_empty() => {
            assert_eq!(heard.unwrap_err().reason(), Some(::h2::Reason::CANCEL));
        }
        Kind::Refused | Kind::TakenBack => {}
    }
}

async fn converse(all: Vec<Asked>, settings: Settings, window_bytes_of_client: u32) {
    let (ours, theirs) = tokio::io::duplex(9_000);
    let serving = spawn_local(serve(ours, settings));
    let mut builder = ::h2::client::Builder::new();
    builder.initial_window_size(window_bytes_of_client);
    let (client, mut wire) = builder.handshake::<_, Bytes>(theirs).await.unwrap();
    let mut pings = wire.ping_pong().unwrap();
    let wire = spawn_local(wire);
    // Windows smaller than usual can be kept to by those only who know them.
    pings.ping(::h2::Ping::opaque()).await.unwrap();
    let asking: Vec<_> =
        all.into_iter().map(|asked| spawn_local(ask(client.clone(), asked))).collect();
    drop(client);
    for it in asking {
        it.await.unwrap();
    }
    wire.await.unwrap().unwrap();
    let connection = serving.await.unwrap();
    assert_eq!(connection.end(), None);
    assert!(connection.streams.is_empty());
    if connection.frames.is_between() && connection.block.is_none() {
        assert_eq!(window_bytes(&connection), i64::from(settings.connection_window_bytes));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn bodies_arrive_whole_whatever_the_windows(
        all in vec(asked(), 1..20),
        streams_max in 1_u32..20,
        stream_window_bytes in 1_u32..40_000,
        connection_more_bytes in 0_u32..40_000,
        client_bytes in prop_oneof![100_u32..2_000, 2_000_u32..80_000],
    ) {
        let settings = Settings {
            streams_max,
            stream_window_bytes: stream_window_bytes.max(200),
            connection_window_bytes: 65_535 + connection_more_bytes,
            head_bytes_max: 16_384,
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let conversation = converse(all, settings, client_bytes);
        // Longer than any conversation takes: one that stands still is a mistake.
        let whole = async { tokio::time::timeout(Duration::from_secs(60), conversation).await };
        LocalSet::new().block_on(&runtime, whole).unwrap();
    }
}

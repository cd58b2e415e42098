//! The examples that come with packages, tried: from their first route on they are as they stand there.

use super::*;

const LIVE_STREAM: &str = include_str!("../../../../packaging/examples/live-stream.toml");
const WEBSOCKET: &str = include_str!("../../../../packaging/examples/websocket.toml");

/// Returns the part of an example behind the certificates of its site, from this line on.
fn example(text: &str, from: &str) -> String {
    text[text.find(from).unwrap()..].to_owned()
}

#[test]
fn a_live_stream_changes_and_its_segments_are_shared_while_they_are_made() {
    let backend = Backend::listen();
    let folder = TempDir::new().unwrap();
    let routes = example(LIVE_STREAM, "[[site.route]]")
        .replace("127.0.0.1:8080", &backend.address().to_string())
        .replace("/var/cache/kettle", folder.path().to_str().unwrap());
    let kettle = Kettle::start(Setup::default().more(&routes));
    let mut viewer = Dialer::default().connect(kettle.address());
    let mut origin = None;
    // A playlist that is to be asked for each time is the origin's latest.
    for playlist in ["#EXTM3U\n1.m4s\n", "#EXTM3U\n1.m4s\n2.m4s\n"] {
        viewer.send(&get("/live/stream.m3u8")).unwrap();
        let response = format!(
            "HTTP/1.1 200 OK\r\nCache-Control: no-cache\r\nETag: \"{0}\"\r\nContent-Length: {0}\r\n\r\n{playlist}",
            playlist.len()
        );
        answer(backend.asked(&mut origin), &response);
        assert_eq!(viewer.response().body, playlist.as_bytes());
    }
    // A segment that is being made: who comes later gets at once what is there of it.
    viewer.send(&get("/live/segments/2.m4s")).unwrap();
    let origin = backend.asked(&mut origin);
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    answer(origin, &format!("{head}6\r\nfirst,\r\n"));
    assert_eq!(viewer.response_head().status, 200);
    assert_eq!(viewer.receive_exactly(9), b"6\r\nfirst,");
    let mut late = kettle.ask(&get("/live/segments/2.m4s"));
    assert_eq!(late.response_head().status, 200);
    assert_eq!(late.receive_exactly(9), b"6\r\nfirst,");
    origin.write_all(b"4\r\nlast\r\n0\r\n\r\n").unwrap();
    for client in [&mut viewer, &mut late] {
        assert_eq!(client.receive_exactly(16), b"\r\n4\r\nlast\r\n0\r\n\r\n");
    }
}

#[test]
fn a_websocket_application_gets_frames_as_they_are() {
    let backend = Backend::listen();
    let routes = example(WEBSOCKET, "[[site.route]]\nprefix = \"/socket\"");
    let one_server = routes.rfind("[[backend.server]]").unwrap();
    let routes = routes[..one_server].replace("127.0.0.1:3000", &backend.address().to_string());
    let kettle = Kettle::start(Setup::default().more(&routes));
    let mut client = Dialer::default().connect(kettle.address());
    // The key and its answer are those of RFC 6455 §1.3, the frames those of §5.7.
    let asking = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                  Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
    client.send(&request("GET", "/socket", asking)).unwrap();
    let mut server = backend.accept();
    assert!(read_head(&mut server).contains("dGhlIHNhbXBsZSBub25jZQ=="));
    let agreed = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                  Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
    server.write_all(agreed.as_bytes()).unwrap();
    let response = client.response_head();
    assert_eq!(response.header("sec-websocket-accept"), Some("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
    let hello = b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58";
    client.send(hello).unwrap();
    assert_eq!(read_exactly(&mut server, hello.len()), hello);
    server.write_all(b"\x81\x05Hello").unwrap();
    assert_eq!(client.receive_exactly(7), b"\x81\x05Hello");
}

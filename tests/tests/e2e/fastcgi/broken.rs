//! Applications that break off, lie or have no time.

use std::net::Shutdown;

use kettle_tests::application::{asked, end, errors, output, whole, written};

use super::*;

/// Each case is what comes back in place of a response, and the log's word for it.
#[test]
fn what_is_no_response_is_answered_with_502() {
    let head = output(b"Content-Type: a/b\n\n");
    let mut other_request = head.clone();
    other_request[3] = 2;
    let mut other_version = head.clone();
    other_version[0] = 2;
    for (sent, word) in [
        (vec![], "closed_early"),
        (output(b"Content-Type: a/b\n"), "closed_early"),
        (end(0), "not_answered"),
        ([errors(b"it died"), end(0)].concat(), "not_answered"),
        ([output(b"Content-Type"), end(0)].concat(), "not_answered"),
        (end(3), "not_answered"),
        (end(9), "malformed"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec(), "malformed"),
        (written(9, b""), "malformed"),
        (written(3, b"nine long"), "malformed"),
        (other_request, "malformed"),
        (other_version, "malformed"),
        (output(b"Status: 101\n\n"), "status"),
        (output(b"HTTP/1.1 200 OK\n\n"), "field_name"),
        (output(b"X-Accel-Redirect: /secret\n\n"), "x_accel_redirect"),
        (output(&[b'x'; 65_000]), "closed_early"),
        ([output(&[b'x'; 65_000]), output(&[b'x'; 65_000])].concat(), "head_too_large"),
    ] {
        let (kettle, application) = one_program("", "", "");
        let mut client = asked_for(&kettle, "/a.php");
        let mut socket = application.accept();
        let _ = asked(&mut socket);
        // It may refuse all of it before the end.
        let _ = socket.write_all(&sent);
        let _ = socket.shutdown(Shutdown::Write);
        let response = client.response();
        assert_eq!(response.status, 502, "{word}");
        let entry = kettle.entry("/a.php");
        assert_eq!(entry.text("upstream_failure"), word);
        assert!(!entry.has("upstream_retries"), "{word}");
    }
}

#[test]
fn a_body_that_is_not_whole_is_cut() {
    for (length, sent) in [
        ("", vec![output(b"abc")]),
        ("", vec![output(b"abc"), output(b"")]),
        ("", vec![output(b"abc"), b"\x01\x06".to_vec()]),
        ("Content-Length: 4\n", vec![output(b"abc"), end(0)]),
        ("Content-Length: 4\n", vec![output(b"abc")]),
    ] {
        let (kettle, application) = one_program("", "", "");
        let mut client = asked_for(&kettle, "/a.php");
        let mut socket = application.accept();
        let _ = asked(&mut socket);
        socket.write_all(&output(format!("{length}X: y\n\n").as_bytes())).unwrap();
        socket.write_all(&sent.concat()).unwrap();
        socket.shutdown(Shutdown::Write).unwrap();
        assert_eq!(client.response_head().status, 200);
        assert_eq!(client.end(), End::Cut, "{length:?} {sent:?}");
        assert!(!kettle.entry("/a.php").is_complete());
    }
}

/// More than was announced is no part of the response, and the connection is of no more use.
#[test]
fn what_comes_behind_a_response_is_dropped() {
    let (kettle, application) = one_program("", "", "keep_alive = 4");
    let mut client = Dialer::default().connect(kettle.address());
    let more: [Vec<u8>; 3] = [
        whole("Content-Length: 2\n\nokand more"),
        [whole("Content-Length: 2\n\nok"), output(b"Status: 500\n\n")].concat(),
        [output(b"Content-Length: 2\n\nok"), output(b"later"), end(0)].concat(),
    ];
    for sent in more {
        client.send(&request("GET", "/a.php", "")).unwrap();
        let mut socket = application.accept();
        let _ = asked(&mut socket);
        socket.write_all(&sent).unwrap();
        assert_eq!(client.response().body, b"ok");
        assert_eq!(socket.read(&mut [0]).unwrap_or(0), 0, "it is not used again");
    }
}

/// Its client has the whole response, and it keeps its process until it says that it is done.
#[test]
fn a_program_may_go_on_behind_its_response() {
    let (kettle, application) = one_program("", "", "keep_alive = 4");
    let mut client = asked_for(&kettle, "/a.php");
    let mut socket = application.accept();
    let _ = asked(&mut socket);
    socket.write_all(&output(b"Content-Length: 2\n\nok")).unwrap();
    assert_eq!(client.response().body, b"ok");
    assert!(kettle.entry("/a.php").is_complete());
    socket.write_all(&[errors(b"a mail was sent"), end(0)].concat()).unwrap();
    kettle.messages().wait_for("a mail was sent");
    client.send(&request("GET", "/a.php", "")).unwrap();
    let mut kept = Some(socket);
    assert!(answer(application.asked(&mut kept), "Content-Length: 0\n\n").keeps_connection);
    assert_eq!(client.response().status, 200);
}

#[test]
fn what_an_application_says_for_the_log_is_there_and_bounded() {
    let (kettle, application) = one_program("", "", "");
    let mut client = asked_for(&kettle, "/a.php");
    let mut socket = application.accept();
    let _ = asked(&mut socket);
    socket.write_all(&errors(b"PHP message: \x1b[31mred\nsecond line\n")).unwrap();
    for _ in 0..40 {
        socket.write_all(&errors(&[b'f'; 60_000])).unwrap();
    }
    socket
        .write_all(&[errors(b"the last word"), whole("Content-Length: 2\n\nok")].concat())
        .unwrap();
    assert_eq!(client.response().body, b"ok");
    kettle.messages().wait_for("is not logged");
    let said = kettle.messages().text();
    assert!(said.contains("PHP message: \\u{1b}[31mred\\nsecond line"), "{said}");
    assert!(!said.contains("the last word"));
    let flood = said.bytes().filter(|byte| *byte == b'f').count();
    assert!((50_000..70_000).contains(&flood), "{flood}");
}

#[test]
fn an_application_without_room_is_followed_by_the_next() {
    let applications = [Backend::listen(), Backend::listen()];
    let addresses = [applications[0].address(), applications[1].address()];
    let setup = programs("", "", "balance = \"first\"", &addresses);
    let kettle = Kettle::start(setup.file("www/a.php", SOURCE));
    for status in [1, 2] {
        let mut client = asked_for(&kettle, "/a.php");
        let mut busy = applications[0].accept();
        let _ = asked(&mut busy);
        busy.write_all(&end(status)).unwrap();
        answer(&mut applications[1].accept(), "Content-Length: 2\n\nok");
        assert_eq!(client.response().body, b"ok");
        assert_eq!(kettle.entry("/a.php").number("upstream_retries"), 1);
    }
    // Of a form nobody knows what has come of it.
    let mut client =
        kettle.ask(&[&request("POST", "/a.php", "Content-Length: 1\r\n")[..], b"x"].concat());
    let mut busy = applications[0].accept();
    let _ = asked(&mut busy);
    busy.write_all(&end(2)).unwrap();
    assert_eq!(client.response().status, 503);
    assert_eq!(kettle.entry("/a.php").text("upstream_failure"), "overloaded");
}

#[test]
fn for_a_client_that_leaves_no_program_is_kept_busy() {
    let (kettle, application) = one_program("", "", "");
    for has_begun in [false, true] {
        let mut client = asked_for(&kettle, "/a.php");
        let mut socket = application.accept();
        let _ = asked(&mut socket);
        if has_begun {
            socket.write_all(&output(b"X: y\n\nbeginning")).unwrap();
            assert_eq!(client.response_head().status, 200);
        }
        client.wire.reset();
        assert_eq!(socket.read(&mut [0]).unwrap_or(0), 0, "its connection is closed");
    }
}

#[test]
fn a_program_that_says_nothing_has_its_time() {
    let (kettle, application) = one_program("timeout = \"300ms\"", "", "");
    let mut client = asked_for(&kettle, "/a.php");
    let mut socket = application.accept();
    let _ = asked(&mut socket);
    socket.set_write_timeout(Some(Duration::from_secs(5))).unwrap();
    // The words that it says for the log are no answer.
    while socket.write_all(&errors(b"still at it")).is_ok() {
        if socket.write_all(&errors(&[b'.'; 10_000])).is_err() {
            break;
        }
    }
    assert_eq!(client.response().status, 504);
    assert_eq!(kettle.entry("/a.php").text("upstream_failure"), "timeout");
}

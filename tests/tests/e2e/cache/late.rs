//! Responses whose time is over when they arrive: those who wait share them, and later ones ask anew, once for all of them.

use std::time::Duration;

use super::*;

/// Without anything that it could be validated by.
const SHORT: &str = "Cache-Control: max-age=1\r\n";
const AHEAD: &str = "Cache-Control: max-age=1, stale-while-revalidate=1000\r\n";

/// Lets pass what a response may take that is fresh for a second. Nothing else is asked meanwhile.
fn outlast_a_second(server: &TcpStream) {
    server.set_read_timeout(Some(Duration::from_millis(1_200))).unwrap();
    assert_eq!((&*server).read(&mut [0]).unwrap_err().kind(), ErrorKind::WouldBlock);
    server.set_read_timeout(Some(patience())).unwrap();
}

/// Has so many ask together, and answers once, late.
fn ask_together(cached: &Cached, count: usize, response: &str) -> Vec<String> {
    let mut clients: Vec<_> = (0..count).map(|_| cached.client()).collect();
    for client in &mut clients {
        client.send(&get("/app/x")).unwrap();
    }
    let mut server = cached.backend.next_request();
    cached.wait_for_waiters(count - 1);
    outlast_a_second(&server);
    server.write_all(response.as_bytes()).unwrap();
    clients.iter_mut().map(|client| String::from_utf8(client.response().body).unwrap()).collect()
}

#[test]
fn who_waits_longer_than_a_response_is_fresh_shares_it_and_later_ones_ask_once() {
    for (settings, fields) in [("", SHORT), ("default = \"1s\"", "")] {
        let cached = Cached::start(settings);
        for body in ["one", "two"] {
            let response = ok(fields, body);
            let bodies = ask_together(&cached, 20, &response);
            assert_eq!(bodies, [body; 20], "{fields}");
            cached.wait_for_objects(1);
        }
    }
}

#[test]
fn what_is_slow_behind_what_is_stale_leaves_something_to_answer_with() {
    let cached = Cached::start("");
    let bodies = ask_together(&cached, 20, &ok(AHEAD, "old"));
    assert_eq!(bodies, ["old"; 20]);
    cached.wait_for_objects(1);
    let stale = || {
        let response = cached.get("/app/x");
        assert_eq!(status(&response), "kettle; hit; detail=stale-while-revalidate");
        response.body
    };
    assert_eq!(stale(), b"old");
    let mut server = cached.backend.next_request();
    outlast_a_second(&server);
    assert_eq!(stale(), b"old");
    server.write_all(ok(AHEAD, "new").as_bytes()).unwrap();
    wait_until("the new one is kept", || stale() == b"new");
}

#[test]
fn what_was_old_when_it_was_sent_takes_no_place_of_what_may_be_used() {
    let cached = Cached::start("");
    let ahead = "Cache-Control: max-age=0, stale-while-revalidate=1000\r\n";
    cached.fetch("/app/x", ahead, "old");
    cached.wait_for_objects(1);
    assert_eq!(cached.get("/app/x").body, b"old");
    let outlived = ok(&format!("{SHORT}Age: 100\r\n"), "older");
    cached.backend.answer(&outlived);
    thread::scope(|threads| {
        let asked = threads.spawn(|| cached.backend.next_request());
        while !asked.is_finished() {
            assert_eq!(cached.get("/app/x").body, b"old");
        }
    });
}

#[test]
fn who_comes_while_the_rest_of_it_does_shares_what_may_be_used_then() {
    let cached = Cached::start("");
    for (fields, is_shared) in [(AHEAD, true), (SHORT, false)] {
        let target = if is_shared { "/app/x" } else { "/app/y" };
        let mut clients = [cached.client(), cached.client()];
        clients[0].send(&get(target)).unwrap();
        let mut server = cached.backend.accept_request();
        outlast_a_second(&server);
        server.write_all(format!("{}abc", ok_head(fields, 6)).as_bytes()).unwrap();
        clients[0].response_head();
        clients[1].send(&get(target)).unwrap();
        if is_shared {
            let head = clients[1].response_head();
            assert_eq!(status(&head), "kettle; fwd=uri-miss; stored; collapsed");
        } else {
            let own = ok(&format!("Connection: close\r\n{fields}"), "own");
            answer(&mut cached.backend.accept(), &own);
            assert_eq!(clients[1].response().body, b"own");
        }
        server.write_all(b"def").unwrap();
        for client in &mut clients[..1 + usize::from(is_shared)] {
            assert_eq!(client.receive_exactly(6), b"abcdef");
        }
    }
}

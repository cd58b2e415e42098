//! Requests that go on to the next server because of what one says.

use super::*;

const FIRST: &str = "balance = \"first\"";

fn start(route: &str, buffering: &str, servers: &[&Backend]) -> Kettle {
    let servers: Vec<_> = servers.iter().map(|it| it.address()).collect();
    Kettle::start(before_with(buffering, route, FIRST, &servers))
}

fn busy(body: &str) -> String {
    ok(body).replace("200 OK", "503 Busy")
}

fn answered(backend: &Backend, response: &str) -> TcpStream {
    let mut server = backend.accept();
    answer(&mut server, response);
    server
}

#[test]
fn the_next_server_is_asked_and_the_last_one_s_answer_is_passed_on() {
    let [first, second] = [Backend::listen(), Backend::listen()];
    let kettle = start("retry_on = [\"503\", \"closed\"]", "off", &[&first, &second]);
    for (said, status, body) in [(ok("good"), 200, "good"), (busy("last"), 503, "last")] {
        let mut client = kettle.ask(&get("/app/one"));
        let _first = answered(&first, &busy("first"));
        let _second = answered(&second, &said);
        let response = client.response();
        assert_eq!((response.status, &*response.body), (status, body.as_bytes()));
        let entry = kettle.entry("/app/one");
        assert_eq!(entry.number("upstream_status"), u64::from(status));
    }
    // One that says nothing at all, and one that says what was not named.
    let mut client = kettle.ask(&get("/app/two"));
    read_head(&mut first.accept());
    let _second = answered(&second, &ok("after a close"));
    assert_eq!(client.response().body, b"after a close");
    let mut client = kettle.ask(&get("/app/three"));
    let _first = answered(&first, &ok("no").replace("200 OK", "500 No"));
    assert_eq!(client.response().status, 500);
    second.assert_unasked();
}

#[test]
fn a_backup_answers_once_no_other_server_can_be_reached() {
    let [first, spare] = [Backend::listen(), Backend::listen()];
    let spare_server =
        format!("[[backend.server]]\naddress = \"{}\"\nbackup = true\n", spare.address());
    for (of, answers) in [(unused_address(), false), (first.address(), true)] {
        let kettle = Kettle::start(before_with("off", "", "", &[of]).more(&spare_server));
        let mut client = kettle.ask(&get("/app/one"));
        let answering = if answers { &first } else { &spare };
        let _server = answered(answering, &ok("yes"));
        assert_eq!(client.response().body, b"yes");
    }
    spare.assert_unasked();
}

#[test]
fn an_answer_is_passed_on_where_no_other_server_takes_the_request() {
    let first = Backend::listen();
    let servers = [first.address(), unused_address()];
    let kettle = Kettle::start(before_with("off", "retry_on = [\"503\"]", FIRST, &servers));
    for _ in 0..2 {
        let mut client = kettle.ask(&get("/app/one"));
        let _first = answered(&first, &busy("only"));
        let response = client.response();
        assert_eq!((response.status, &*response.body), (503, &b"only"[..]));
        let entry = kettle.entry("/app/one");
        assert_eq!(entry.text("server"), first.address().to_string());
    }
}

/// Two that wait with an answer at hand, each for the other's place, would wait in vain.
#[test]
fn an_answer_is_passed_on_where_the_next_server_is_full() {
    let [first, second] = [Backend::listen(), Backend::listen()];
    let server = |it: &Backend| {
        format!("[[backend.server]]\naddress = \"{}\"\nconnections = 1\n", it.address())
    };
    let routes = format!(
        "[[site.route]]\nprefix = \"/app\"\nbackend = \"app\"\nretry_on = [\"503\"]\n\
         [[backend]]\nname = \"app\"\nbalance = \"first\"\nqueue_timeout = \"10m\"\n{}{}",
        server(&first),
        server(&second)
    );
    let kettle = Kettle::start(Setup::default().more(&routes));
    let mut one = kettle.ask(&get("/app/one"));
    let mut at_first = first.accept();
    read_head(&mut at_first);
    let mut two = kettle.ask(&get("/app/two"));
    let mut at_second = second.accept();
    read_head(&mut at_second);
    at_first.write_all(busy("only").as_bytes()).unwrap();
    let response = one.response();
    assert_eq!((response.status, &*response.body), (503, &b"only"[..]));
    assert!(!kettle.entry("/app/one").has("upstream_retries"));
    // It has a place again.
    at_second.write_all(busy("only").as_bytes()).unwrap();
    answer(&mut at_first, &ok("good"));
    assert_eq!(two.response().body, b"good");
}

#[test]
fn an_answer_is_passed_on_where_the_next_server_breaks_off() {
    let store = "[[cache]]\nname = \"main\"\ndirectory = \"kept\"\n";
    for cached in ["", "cache = { store = \"main\" }"] {
        let [first, second] = [Backend::listen(), Backend::listen()];
        let route = format!("retry_on = [\"503\"]\n{cached}");
        let servers = [first.address(), second.address()];
        let setup = before_with("off", &route, FIRST, &servers).file("kept/.keep", "");
        let kettle = Kettle::start(if cached.is_empty() { setup } else { setup.more(store) });
        let mut client = kettle.ask(&get("/app/one"));
        let _first = answered(&first, &busy("only"));
        read_head(&mut second.accept());
        let response = client.response();
        assert_eq!((response.status, &*response.body), (503, &b"only"[..]), "{cached}");
        let entry = kettle.entry("/app/one");
        assert_eq!(entry.text("server"), first.address().to_string());
    }
}

#[test]
fn only_what_may_be_repeated_goes_on() {
    let [first, second] = [Backend::listen(), Backend::listen()];
    let body = content(200_000);
    for (method, buffering, goes_on) in [
        ("PUT", "all", true),
        ("DELETE", "all", true),
        ("POST", "all", false),
        ("PATCH", "all", false),
        ("PUT", "off", false),
    ] {
        let kettle = start("retry_on = [\"503\"]", buffering, &[&first, &second]);
        for bytes in [3, body.len()] {
            let head = request(method, "/app", &format!("Content-Length: {bytes}\r\n"));
            let mut client = kettle.ask(&[&head[..], &body[..bytes]].concat());
            let take = |backend: &Backend, response: String| {
                let mut server = backend.accept();
                read_head(&mut server);
                assert_same(&read_exactly(&mut server, bytes), &body[..bytes], method);
                server.write_all(response.as_bytes()).unwrap();
                server
            };
            let _first = take(&first, busy("first"));
            let _second = goes_on.then(|| take(&second, ok("second")));
            let status = client.response().status;
            assert_eq!(status, if goes_on { 200 } else { 503 }, "{method} {buffering}");
        }
        kettle.wait_for_status("/spool/bytes", 0);
    }
    second.assert_unasked();
}

#[test]
fn a_server_that_says_nothing_in_time_is_followed_by_the_next() {
    let [first, second] = [Backend::listen(), Backend::listen()];
    let route = "retry_on = [\"timeout\"]\ntimeout = \"300ms\"";
    let kettle = start(route, "off", &[&first, &second]);
    let mut client = kettle.ask(&get("/app"));
    let mut silent = first.accept();
    read_head(&mut silent);
    let _second = answered(&second, &ok("in time"));
    assert_eq!(client.response().body, b"in time");
}

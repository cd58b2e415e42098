//! Clients that come back to their server by a cookie.

use std::collections::HashSet;

use super::*;

fn setup(settings: &str, servers: &[(&str, String)]) -> Setup {
    let balance = if settings.starts_with("hash") { "hash" } else { "cookie" };
    let servers = servers.iter().map(|(name, address)| {
        format!("[[backend.server]]\nname = \"{name}\"\naddress = \"{address}\"\n")
    });
    Setup::default().more(&format!(
        "[[site.route]]\nprefix = \"/app\"\nbackend = \"app\"\n[[backend]]\nname = \"app\"\nbalance = \"{balance}\"\n{settings}\n{}",
        servers.collect::<String>()
    ))
}

#[test]
fn the_same_text_of_a_request_gets_the_same_server() {
    let servers = ["one", "two", "three"].map(saying);
    let with = |hash: &str, servers: &[(&str, String)]| {
        let folder = TempDir::new().unwrap();
        let kept = "[[site.route]]\nprefix = \"/kept\"\nbackend = \"app\"\ncache = { store = \"c\" }\n[[cache]]\nname = \"c\"";
        let kept = format!("{kept}\ndirectory = \"{}\"\n", folder.path().display());
        let setup = setup(&format!("hash = \"{hash}\""), servers).more(&kept);
        (Kettle::start(setup), folder)
    };
    let (kettle, _store) = with("{uri}", &servers);
    let [one, two, three] = servers.clone();
    // Another host, with its servers in another order.
    let (other, _store) = with("{uri}", &[three, one, two]);
    let asked = |kettle: &Kettle, target: &str| {
        let mut client = kettle.ask(&request("GET", target, ""));
        client.response().body
    };
    let mut seen = HashSet::new();
    for number in 0..40 {
        let target = format!("/app/{number}?a");
        let first = asked(&kettle, &target);
        assert!(asked(&kettle, &target) == first && asked(&other, &target) == first, "{target}");
        seen.insert(first);
    }
    assert_eq!(seen.len(), 3, "texts are spread");
    let kept: HashSet<_> = (0..40).map(|it| asked(&kettle, &format!("/kept/{it}"))).collect();
    assert_eq!(kept.len(), 3, "what is kept is asked for by the same rule");
    // Nobody says it: the least busy one.
    let (empty, _store) = with("{cookie:none}", &servers);
    let spread: HashSet<_> = (0..12).map(|_| asked(&empty, "/app")).collect();
    assert_eq!(spread.len(), 3);
}

/// A server that says its name to each request.
fn saying(name: &str) -> (&str, String) {
    let backend = Backend::listen();
    backend.answer_all(&ok(name));
    (name, backend.address().to_string())
}

fn asked(kettle: &Kettle, cookie: &str) -> Response {
    let mut client = Dialer::default().connect(kettle.address());
    let field =
        if cookie.is_empty() { String::new() } else { format!("Cookie: a=b; {cookie}\r\n") };
    client.send(&request("GET", "/app", &field)).unwrap();
    client.response()
}

/// The pair of name and value that a response sets.
fn given(response: &Response) -> Option<String> {
    Some(response.header("set-cookie")?.split(';').next().unwrap().to_owned())
}

#[test]
fn a_client_comes_back_to_its_server_wherever_that_is_asked_for() {
    let servers = [saying("one"), saying("two")];
    let kettle = Kettle::start(setup("", &servers));
    let other = Kettle::start(setup("", &[servers[1].clone(), servers[0].clone()]));
    let mut seen = HashSet::new();
    for _ in 0..4 {
        let first = asked(&kettle, "");
        let cookie = given(&first).expect("a client without a cookie gets one");
        seen.insert(first.body.clone());
        assert!(!cookie.contains("127"), "{cookie}");
        for kettle in [&kettle, &other, &kettle] {
            let again = asked(kettle, &cookie);
            assert_eq!((&again.body, again.header("set-cookie")), (&first.body, None));
        }
    }
    assert_eq!(seen.len(), 2, "clients without a cookie are spread");
    let said = asked(&kettle, "");
    let said = said.header("set-cookie").unwrap();
    assert!(said.starts_with("kettle_server="), "{said}");
    assert!(said.ends_with("; Path=/; HttpOnly; Secure; SameSite=Lax"), "{said}");
    for unknown in ["kettle_server=", "kettle_server=0123456789abcdef", "kettle_server=127.0.0.1"] {
        assert!(given(&asked(&kettle, unknown)).is_some(), "{unknown}");
    }
}

#[test]
fn a_drained_server_keeps_its_clients_and_a_dead_one_gives_them_to_another() {
    let servers = [saying("one"), saying("two")];
    let more = "cookie = { name = \"s\", path = \"/app\", max_age = \"1h\", secure = false, http_only = false, same_site = \"strict\" }";
    let kettle = Kettle::start(setup(more, &servers));
    let first = loop {
        let first = asked(&kettle, "");
        if first.body == b"one" {
            break first;
        }
    };
    let said = first.header("set-cookie").unwrap();
    assert!(said.ends_with("; Path=/app; Max-Age=3600; SameSite=Strict"), "{said}");
    let cookie = given(&first).unwrap();
    let _ = kettle.ctl(&["drain", "app/one"]).succeed();
    for _ in 0..3 {
        assert_eq!(asked(&kettle, &cookie).body, b"one");
        assert_eq!(asked(&kettle, "").body, b"two");
    }
    let dead = [("one", unused_address().to_string()), servers[1].clone()];
    let kettle = Kettle::start(setup(more, &dead));
    let moved = asked(&kettle, &cookie);
    assert_eq!(moved.body, b"two");
    let cookie = given(&moved).expect("it is told of its new server");
    assert_eq!(given(&asked(&kettle, &cookie)), None);
}

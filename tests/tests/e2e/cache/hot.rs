//! The memory of workers for the store: answered without the disk, and never a moment longer than it is true.

use super::*;

/// Workers have connections of their own to a backend: here one for each request.
const FRESH: &str = "Connection: close\r\nCache-Control: max-age=1000\r\nX-Tags: news\r\n";

/// Connections, so many that each of two workers has some.
const CONNECTIONS: usize = 8;

fn start(limits: &str) -> Cached {
    let setup = Setup::default().set("server", "workers = 2").set("limits", limits);
    Cached::set_up(setup, "", "tags = \"X-Tags\"\nvary = [\"accept-language\"]", "")
}

fn ask(client: &mut Client, target: &str, headers: &str) -> Response {
    client.send(&request("GET", target, headers)).unwrap();
    client.response()
}

/// Lets an object be kept, and each worker remember it.
fn heat(cached: &Cached, fields: &str, body: &str) -> Vec<Client> {
    cached.fetch("/app/x", fields, body);
    heat_kept(cached, body)
}

fn heat_kept(cached: &Cached, body: &str) -> Vec<Client> {
    cached.wait_until_kept("/app/x");
    let mut clients: Vec<_> = (0..CONNECTIONS).map(|_| cached.client()).collect();
    for client in clients.iter_mut().chain([&mut cached.client()]) {
        for _ in 0..2 {
            assert_eq!(ask(client, "/app/x", "").body, body.as_bytes());
        }
    }
    clients
}

#[test]
fn what_is_purged_or_replaced_is_gone_on_every_worker_at_once() {
    let cached = start("revalidate = \"24h\"");
    let url = "https://localhost/app/x";
    let write = || {
        cached.write("/app/x");
    };
    for (round, purge) in
        [vec![url], vec!["--prefix", "https://localhost/app/"], vec!["--tag", "news"], vec![]]
            .into_iter()
            .enumerate()
    {
        let old = format!("old {round}");
        let new = format!("new {round}");
        // Of the round before.
        cached.purge(&[url]);
        let mut clients = heat(&cached, FRESH, &old);
        match purge.as_slice() {
            [] => write(),
            purge => _ = cached.kettle.ctl(&[&["cache", "purge"], purge].concat()).succeed(),
        }
        for client in &mut clients {
            client.send(&request("GET", "/app/x", "")).unwrap();
        }
        answer(&mut cached.backend.accept(), &ok(FRESH, &new));
        for client in &mut clients {
            assert_eq!(client.response().body, new.as_bytes(), "{purge:?}");
        }
        cached.wait_until_kept("/app/x");
    }
}

#[test]
fn what_is_hot_needs_no_disk_and_ranges_of_it_are_right() {
    let large = "0123456789".repeat(20_000);
    for body in ["0123456789", &large] {
        let cached = start("revalidate = \"24h\"");
        let response = ok(&format!("{FRESH}ETag: \"v\"\r\n"), body);
        cached.get_through("/app/x", "", &response);
        // Lines of several workers stand in no order.
        assert_eq!(cached.kettle.entry("/app/x").text("cache"), "miss");
        let clients = heat_kept(&cached, body);
        let beyond = cached.ask("GET", "/app/x", "Range: bytes=900000-\r\n");
        assert_eq!(beyond.status, 416);
        std::fs::remove_dir_all(cached.folder.path()).unwrap();
        for mut client in clients {
            let hit = ask(&mut client, "/app/x", "");
            assert_eq!((hit.body == body.as_bytes(), hit.header("age").is_some()), (true, true));
            assert!(status(&hit).starts_with("kettle; hit; ttl="), "{}", status(&hit));
            let part = ask(&mut client, "/app/x", "Range: bytes=3-5\r\n");
            assert_eq!((part.status, &*part.body), (206, &b"345"[..]));
            let last = ask(&mut client, "/app/x", "Range: bytes=-2\r\n");
            assert_eq!((last.status, &*last.body), (206, &b"89"[..]));
            assert_eq!(ask(&mut client, "/app/x", "If-None-Match: \"v\"\r\n").status, 304);
            client.send(&request("HEAD", "/app/x", "")).unwrap();
            let head = client.response_head();
            let length = body.len().to_string();
            assert_eq!((head.status, head.header("content-length")), (200, Some(&*length)));
        }
    }
}

#[test]
fn variants_that_are_hot_stay_apart() {
    let cached = start("revalidate = \"24h\"");
    let fields = format!("{FRESH}Vary: Accept-Language, Origin\r\n");
    let languages = ["de", "fr"].map(|it| (it, format!("Accept-Language: {it}\r\n")));
    for (language, header) in &languages {
        cached.get_through("/app/x", header, &ok(&fields, language));
    }
    let mut clients: Vec<_> = (0..CONNECTIONS).map(|_| cached.client()).collect();
    for _ in 0..3 {
        for client in &mut clients {
            for (language, header) in &languages {
                assert_eq!(ask(client, "/app/x", header).body, language.as_bytes());
            }
        }
    }
    // Made for those who send no such field.
    let own = format!("{}Origin: https://a.example\r\n", languages[0].1);
    for client in &mut clients {
        client.send(&request("GET", "/app/x", &own)).unwrap();
        answer(&mut cached.backend.accept(), &ok(&fields, "own"));
        assert_eq!(client.response().body, b"own");
    }
}

#[test]
fn what_is_hot_expires_and_a_validation_is_seen_by_every_worker() {
    let cached = start("revalidate = \"24h\"");
    let short = "Connection: close\r\nCache-Control: max-age=2\r\nETag: \"v\"\r\nX-App: 1\r\n";
    cached.fetch("/app/x", short, "body");
    let validated = "HTTP/1.1 304 Not Modified\r\nConnection: close\r\nCache-Control: max-age=1000\r\nX-App: 2\r\n\r\n";
    let backend = &cached.backend;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let head = answer(&mut backend.accept(), validated);
            assert!(head.contains("if-none-match: \"v\""), "{head}");
        });
        ask_until_validated(&cached);
    });
}

/// The old head until it is too old, and then the new one, whoever is asked.
fn ask_until_validated(cached: &Cached) {
    let mut clients: Vec<_> = (0..CONNECTIONS).map(|_| cached.client()).collect();
    let mut is_validated = false;
    while !is_validated {
        for client in &mut clients {
            let response = ask(client, "/app/x", "");
            let is_new = response.header("x-app") == Some("2");
            let age: u64 = response.header("age").unwrap().parse().unwrap();
            assert!(is_new || age < 2, "an age of {age}");
            assert!(is_new || !is_validated, "the old head after the new one");
            is_validated |= is_new;
        }
    }
    for client in &mut clients {
        assert_eq!(ask(client, "/app/x", "").header("x-app"), Some("2"));
    }
}

#[test]
fn the_room_of_a_large_object_is_free_soon_after_its_end() {
    let cached = start("revalidate = \"24h\"");
    let _clients = heat(&cached, FRESH, &"x".repeat(200_000));
    let is_open = || {
        let descriptors = format!("/proc/{}/fd", cached.kettle.process());
        let names = std::fs::read_dir(descriptors).unwrap().flatten();
        let mut names = names.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        names.any(|name| name.starts_with(cached.folder.path()) && name != cached.folder.path())
    };
    assert!(is_open());
    cached.purge(&["https://localhost/app/x"]);
    wait_until("it is closed", || !is_open());
}

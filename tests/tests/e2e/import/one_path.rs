//! `location = /path` of nginx, and what kettle makes of it: what is answered, and which log has the line.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::time::Instant;

use super::*;

#[test]
fn one_path_is_answered_and_logged_as_by_nginx() {
    let config = NGINX.replace("BACKEND", &replying().to_string()).leak();
    let files = [
        ("t/x", Vec::new()),
        ("www/index.html", b"<p>home".to_vec()),
        ("www/favicon.ico", b"icon".to_vec()),
        ("www/secret.txt", b"secret".to_vec()),
        ("www/robots.txt", b"not this one".to_vec()),
        ("other/robots.txt", b"nobody".to_vec()),
        ("other/mark.png", b"png".to_vec()),
    ];
    let theirs = Place::new(config, &files);
    let ours = Place::new(config, &files);
    let Some((_nginx, nginx)) = theirs.nginx() else { return };
    let (_kettle, kettle) = ours.kettle();
    for target in TARGETS.lines() {
        let [nginx, kettle] = [nginx, kettle].map(|address| answer(address, target, ""));
        assert_eq!(kettle.status, nginx.status, "{target}");
        if nginx.status == 200 {
            assert_same(&kettle.body, &nginx.body, target);
            assert_eq!(field(&kettle, "cache-control"), field(&nginx, "cache-control"), "{target}");
        }
    }
    // This is refused here, and still nobody reads of it.
    let [there, here] = [nginx, kettle].map(|address| answer(address, "/state", "").status);
    assert_eq!((there, here), (200, 403));
    for address in [nginx, kettle] {
        answer(address, "/last", "");
    }
    assert_eq!(logged(&ours, "log", "/last"), logged(&theirs, "log", "/last"));
    assert_eq!(logged(&ours, "ready", "/ready"), ["/ready"]);
}

/// The targets of a log's lines, once this one is among them.
fn logged(place: &Place, name: &str, last: &str) -> Vec<String> {
    let deadline = Instant::now() + patience();
    loop {
        let text = fs::read_to_string(place.path(name)).unwrap_or_default();
        let targets =
            text.lines().filter_map(|line| line.split("\"GET ").nth(1)?.split(' ').next());
        let targets: Vec<String> = targets.map(str::to_owned).collect();
        if targets.iter().any(|target| target == last) && text.ends_with('\n') {
            return targets;
        }
        assert!(Instant::now() < deadline, "{name}: {text}");
        std::thread::yield_now();
    }
}

/// A server that answers each request with its target.
fn replying() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for socket in listener.incoming().map_while(Result::ok) {
            let mut lines = BufReader::new(&socket).lines().map_while(Result::ok);
            let first = lines.next().unwrap_or_default();
            let target = first.split(' ').nth(1).unwrap_or_default().to_owned();
            lines.take_while(|line| !line.is_empty()).for_each(drop);
            let length = target.len();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close");
            // The client may have gone.
            let _ = write!(&socket, "{head}\r\n\r\n{target}");
        }
    });
    address
}

const TARGETS: &str = include_str!("one_path.txt");
const NGINX: &str = include_str!("one_path.conf");

//! Access to a route.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::*;

/// `ann` with the password `secret`, as `htpasswd -nbB` writes it.
pub const ANN: &str = "ann:$2y$05$KBCwKxOzLha2MUDgW0PjXeGy8zDyKFegpVV4y0qPBUgij10WNyKY6\n";

fn closed() -> Setup {
    let setup = Setup::default().file("www/a", "content").file("users", ANN);
    setup.route("prefix = \"/in\"\nbasic_auth = { users = \"users\", realm = \"staff\" }")
}

#[test]
fn curl_gets_in_with_the_password_and_the_log_knows_who() {
    let kettle = Kettle::start(closed());
    let again = kettle.url("/in/a");
    let words = ["--user", "ann:secret", "--write-out", " %{http_code} %{num_connects} ", &again];
    assert_eq!(kettle.curl(&words, "/in/a").succeed(), "content 200 1 content 200 0 ");
    assert_eq!(kettle.entry("/in/a").text("user"), "ann");
    let asked = kettle.curl(&["--head", "--user", "ann:wrong"], "/in/a?wrong").succeed();
    assert!(asked.starts_with("HTTP/1.1 401 "), "{asked}");
    assert!(
        asked.contains("www-authenticate: Basic realm=\"staff\", charset=\"UTF-8\"\r\n"),
        "{asked}"
    );
    assert_eq!(kettle.entry("/in/a?wrong").text("refused"), "credentials");
}

#[test]
fn a_refused_body_is_read_past_and_one_that_waits_ends_the_connection() {
    let kettle = Kettle::start(closed());
    let mut client = kettle.connect(TLS13_AES_128);
    let mut both = request("POST", "/in/a", "Content-Length: 5\r\n");
    both.extend_from_slice(b"12345");
    both.extend_from_slice(&get("/in/a"));
    client.send(&both).unwrap();
    for _ in 0..2 {
        let response = client.response();
        assert_eq!((response.status, response.header("connection")), (401, None));
    }
    let waits = request("PUT", "/in/a", "Content-Length: 5\r\nExpect: 100-continue\r\n");
    let response = client.exchange(&waits);
    assert_eq!((response.status, response.header("connection")), (401, Some("close")));
    client.wire.read_to_end();
}

#[test]
fn a_reload_takes_new_users_and_keeps_the_old_ones_from_a_broken_file() {
    let kettle = Kettle::start(closed());
    let status = |user: &str| kettle.curl_status(&["--user", user], "/in/a");
    assert_eq!(status("ann:secret"), "200");
    kettle.folder.replace("users", ANN.to_owned() + "bob:rl4Cz1qfSQyJ6\n");
    let said = kettle.ctl(&["reload"]).fail("users:2:");
    assert!(said.contains("htpasswd -B"), "{said}");
    assert!(!said.contains("rl4Cz1qfSQyJ6"), "{said}");
    assert_eq!(status("ann:secret"), "200");
    kettle.folder.replace("users", ANN.replace("ann", "bob"));
    kettle.ctl(&["reload"]).run();
    assert_eq!((status("ann:secret"), status("bob:secret")), ("401".to_owned(), "200".to_owned()));
}

#[test]
fn a_network_may_be_kept_out() {
    let setup = Setup::default().file("www/a", "content");
    let kettle = Kettle::start(setup.route("deny = [\"127.0.0.0/8\"]"));
    assert_eq!(kettle.curl_status(&[], "/a"), "403");
    assert_eq!(kettle.entry("/a").text("refused"), "network");
}

#[test]
fn caches_that_others_share_keep_nothing_that_is_guarded() {
    let own = "[[site.route]]\nprefix = \"/own\"\nroot = \"www\"\ndeny = [\"192.0.2.0/24\"]\n\
               headers = { Cache-Control = \"max-age=60\" }\n";
    let open = "[[site.route]]\nprefix = \"/open\"\nroot = \"www\"\n";
    let secret = "[[site.route]]\nprefix = \"/secret\"\nroot = \"www\"\nheaders = { Cache-Control = \"no-store\" }\n\
                  deny = [\"192.0.2.0/24\"]\n";
    let shut = "[[site.route]]\nprefix = \"/shut\"\nroot = \"www\"\nheaders = { Cache-Control = \"no-store\" }\n\
                deny = [\"127.0.0.0/8\"]\n";
    let kettle = Kettle::start(closed().more(own).more(open).more(secret).more(shut));
    let credentials = "Authorization: Basic YW5uOnNlY3JldA==\r\n";
    for (target, headers, expected) in [
        ("/in/a", credentials, (200, Some("private"))),
        ("/in/none", credentials, (404, Some("private"))),
        ("/in/a", "", (401, Some("no-store"))),
        ("/own/a", "", (200, Some("max-age=60"))),
        ("/open/a", "", (200, None)),
        ("/secret/none", "", (404, Some("no-store"))),
        ("/shut/a", "", (403, Some("no-store"))),
    ] {
        let mut client = kettle.connect(TLS13_AES_128);
        let response = client.exchange(&request("GET", target, headers));
        assert_eq!((response.status, response.header("cache-control")), expected, "{target}");
    }
}

/// A user with a password that nobody has. To find that out takes these passes over this much memory.
fn nobodys_password(kib: u32, passes: u32) -> String {
    let hash = "A".repeat(43);
    format!("ann:$argon2id$v=19$m={kib},t={passes},p=1$c29tZXNhbHRzb21lc2FsdA${hash}\n")
}

#[test]
fn a_flood_of_wrong_passwords_is_turned_away_and_counted() {
    let setup = Setup::default().set("server", "workers = 2").file("www/a", "content");
    let setup = setup.file("users", nobodys_password(65_536, 8)).more(
        "[[site.route]]\nprefix = \"/in\"\nroot = \"www\"\nbasic_auth = { users = \"users\" }\n",
    );
    let kettle = Kettle::start(setup);
    let mut clients: Vec<_> = (0..32).map(|_| kettle.connect(TLS13_AES_128)).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(&guess(&format!("ann:wrong{number}"))).unwrap();
    }
    assert_eq!(kettle.connect(TLS13_AES_128).get("/a").body, b"content", "meanwhile");
    let responses: Vec<_> = clients.iter_mut().map(|client| client.response()).collect();
    let busy = responses.iter().filter(|response| response.status == 503).count();
    assert!(busy > 0 && responses.iter().all(|it| [401, 503].contains(&it.status)));
    assert!(responses.iter().all(|it| it.status == 401 || it.header("retry-after").is_some()));
    kettle.wait_for_status("/total/requests_refused/passwords-busy", busy);
}

/// As a browser asks for all that is on a page.
#[test]
fn what_is_asked_at_once_with_one_password_is_one_check() {
    let setup = Setup::default().set("server", "workers = 1").file("www/a", "content");
    // A quick one: on a busy machine, a check that takes ten seconds, here or behind another, is given up.
    let setup = setup.file("users", nobodys_password(8_192, 1)).more(
        "[[site.route]]\nprefix = \"/in\"\nroot = \"www\"\nbasic_auth = { users = \"users\" }\n",
    );
    let kettle = Kettle::start(setup);
    let mut clients: Vec<_> = (0..32).map(|_| kettle.connect(TLS13_AES_128)).collect();
    clients.iter_mut().for_each(|client| client.send(&guess("ann:wrong")).unwrap());
    // One that goes leaves the others waiting for no one.
    drop(clients.swap_remove(0));
    for client in &mut clients {
        assert_eq!(client.response().status, 401);
    }
}

fn guess(credentials: &str) -> Vec<u8> {
    let fields = format!("Authorization: Basic {}\r\n", STANDARD.encode(credentials));
    request("GET", "/in/a", &fields)
}

//! Who may ask a route.

use kettle_tests::http::{Connection, get, request};
use kettle_tests::kettle::Kettle;
use kettle_tests::setup::Setup;
use kettle_tests::suite::TLS13_AES_128;

/// `ann` with the password `secret`, as `htpasswd -nbB` writes it.
const ANN: &str = "ann:$2y$05$KBCwKxOzLha2MUDgW0PjXeGy8zDyKFegpVV4y0qPBUgij10WNyKY6\n";

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
    client.send(&waits).unwrap();
    let response = client.response();
    assert_eq!((response.status, response.header("connection")), (401, Some("close")));
    client.wire.read_to_end();
}

#[test]
fn a_reload_takes_new_users_and_keeps_the_old_ones_from_a_broken_file() {
    let kettle = Kettle::start(closed());
    let status = |user: &str| {
        let words = ["--output", "/dev/null", "--user", user, "--write-out", "%{http_code}"];
        kettle.curl(&words, "/in/a").succeed()
    };
    assert_eq!(status("ann:secret"), "200");
    kettle.folder.replace("users", ANN.to_owned() + "bob:rl4Cz1qfSQyJ6\n");
    let refused = kettle.ctl(&["reload"]).output();
    assert!(!refused.status.success());
    let said = format!("{}{}", String::from_utf8_lossy(&refused.stdout), refused.stderr);
    assert!(said.contains("users:2:") && said.contains("htpasswd -B"), "{said}");
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
    let words = ["--output", "/dev/null", "--write-out", "%{http_code}"];
    assert_eq!(kettle.curl(&words, "/a").succeed(), "403");
    assert_eq!(kettle.entry("/a").text("refused"), "network");
}

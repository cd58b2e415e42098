//! Names of sites with stars, and by regular expressions: one table for SNI and for `Host`, and each listener with the
//! default site that it names.

use std::net::SocketAddr;

use kettle_tests::certificate::Issued;
use rustls::AlertDescription;

use super::*;

const SITES: &str = r#"
[[site]]
names = ["shop.*", "**.open.test"]
[[site.certificate]]
chain = "open.pem"
key = "open.key"
[[site.route]]
root = "open"

[[site]]
names = ['~^(?<team>[a-z]+)\.team\.test$', '~^shop\.']
[[site.certificate]]
chain = "team.pem"
key = "team.key"
[site.client_auth]
roots = "clients.pem"
[[site.route]]
root = "team"
"#;

/// Sites for `shop.*`, and for teams that show certificates; the first listener is by default the shop's, the others are not. With
/// the certificate of a client.
fn start() -> (Kettle, Issued) {
    let authority = ClientAuthority::new("clients");
    let client = authority.issue("alice", 1, 2120);
    let open = ["a.open.test", "b.a.open.test", "shop.test", "shop.co.test", "nobody.test"];
    let own = issue(&["localhost", "nobody.test"], Kind::Ecdsa);
    let mut setup = Setup::default()
        .certificate(own)
        .bare_listener("http2 = true\ndefault_site = \"shop.*\"")
        .bare_listener("http2 = true\ndefault_site = \"localhost\"")
        .listener(
            "kind = \"http\"\nhttp2 = true\nsites = [\"shop.*\"]\ndefault_site = \"**.open.test\"",
        )
        .file("www/index.html", "own")
        .file("clients.pem", authority.pem())
        .issued("alice", &client)
        .more(SITES);
    let team = ["a.team.test", "b.team.test"];
    for (name, issued) in [("open", issue(&open, Kind::Ecdsa)), ("team", issue(&team, Kind::Ecdsa))]
    {
        setup = setup.issued(name, &issued).file(&format!("{name}/index.html"), name);
    }
    (Kettle::start(setup), client)
}

/// The answer to a connection that was made with one name and asks for another.
const SAID: [(&str, &str, Result<&str, u16>); 13] = [
    ("shop.test", "shop.test", Ok("open")),
    ("shop.co.test", "SHOP.co.test", Ok("open")),
    ("shop.test", "a.open.test", Ok("open")),
    ("b.a.open.test", "b.a.open.test", Ok("open")),
    ("b.a.open.test", "C.b.a.open.test", Ok("open")),
    ("shop.test", "localhost", Err(421)),
    // A regular expression is asked last, whatever the order of the file.
    ("shop.co.test", "shop.other.test", Ok("open")),
    ("a.team.test", "a.team.test", Ok("team")),
    ("a.team.test", "b.team.test", Ok("team")),
    // The guarded site is not reached by another's connection, nor the other way round.
    ("shop.test", "a.team.test", Err(421)),
    ("localhost", "b.team.test", Err(421)),
    ("a.team.test", "shop.test", Err(421)),
    ("a.team.test", "nobody.test", Err(421)),
];

#[test]
fn sni_and_host_find_one_site_by_star_and_by_regular_expression() {
    let (kettle, client) = start();
    for (connected, asked, expected) in SAID {
        let dialer = Dialer::suite(TLS13_AES_128).server_name(connected);
        let mut over_tls = dialer.certificate(client.clone()).connect(kettle.address());
        let response = over_tls.exchange(&get_at(asked, "/"));
        let body = std::str::from_utf8(&response.body).unwrap();
        let said = if response.status == 200 { Ok(body) } else { Err(response.status) };
        assert_eq!(said, expected, "{connected} {asked}");
    }
    // A client that says a team's name in the handshake has to show a certificate there.
    let dialer = Dialer::suite(TLS12_AES_128);
    assert!(dialer.server_name("a.team.test").try_connect(kettle.address()).is_err());
    let dialer = Dialer::suite(TLS12_AES_128);
    assert!(dialer.server_name("shop.test").try_connect(kettle.address()).is_ok());
}

#[test]
fn the_same_holds_over_http2() {
    let (kettle, _) = start();
    for (connected, asked, expected) in SAID {
        let said = over_http2(&kettle, kettle.address(), connected, asked);
        match expected {
            Ok(body) => assert_eq!(said, format!("{body} 2 200"), "{connected} {asked}"),
            Err(status) => {
                assert!(said.ends_with(&format!(" 2 {status}")), "{connected} {asked}: {said}");
            }
        }
    }
}

/// As nginx's `ssl_reject_handshake`, for names that no site has and for none, whatever the default site.
#[test]
fn a_listener_refuses_names_that_no_site_has_where_it_says_so() {
    let setup = Setup::default().certificate(issue(&["localhost", "nobody.test"], Kind::Ecdsa));
    let setup = setup.bare_listener("unknown_names = \"refuse\"").bare_listener("");
    let kettle = Kettle::start(setup);
    let [refuses, serves] = kettle.addresses[..] else { panic!("two listeners") };
    for suite in ONE_OF_EACH_VERSION {
        let at = |name: &'static str, address| {
            let made = Dialer::suite(suite).server_name(name).try_connect(address);
            made.map(drop).map_err(|error| end_of(&error))
        };
        assert_eq!(at("localhost", refuses), Ok(()));
        let refused = Err(End::Alert(AlertDescription::UnrecognisedName));
        assert_eq!(at("nobody.test", refuses), refused);
        assert!(matches!(at("127.0.0.1", refuses), Err(End::Alert(_))), "no name at all");
        assert_eq!(at("nobody.test", serves), Ok(()));
    }
}

#[test]
fn each_listener_has_the_default_site_that_it_names() {
    let (kettle, _) = start();
    let [shop, own, plain] = kettle.addresses[..] else { panic!("three listeners") };
    for (address, expected) in [(shop, "open"), (own, "own")] {
        let said = over_http2(&kettle, address, "nobody.test", "nobody.test");
        assert_eq!(said, format!("{expected} 2 200"), "{address}");
    }
    for (host, status) in
        [("shop.example", 200), ("nobody.test", 200), ("a.team.test", 308), ("localhost", 308)]
    {
        let mut client = Wire::connect(plain);
        assert_eq!(client.exchange(&get_at(host, "/")).status, status, "{host}");
        let url = format!("http://{plain}/");
        let words = ["--silent", "--http2-prior-knowledge", "--header"];
        let words = Tool::new("curl").args(words).args([&format!("Host: {host}")]);
        let said = words.args(["--write-out", " %{http_version} %{http_code}"]).args([url]);
        let said = said.succeed();
        assert!(said.ends_with(&format!(" 2 {status}")), "{host}: {said}");
        assert_eq!(said.starts_with("open"), status == 200, "{host}: {said}");
    }
}

/// The body, the version and the status that curl gets, who shows a certificate where it is asked for one.
fn over_http2(kettle: &Kettle, address: SocketAddr, connected: &str, asked: &str) -> String {
    let file = |name: &str| kettle.folder.path(name).display().to_string();
    Tool::new("curl")
        .args(["--silent", "--show-error", "--http2", "--cacert", &file("authority.pem")])
        .args(["--cert", &file("alice.pem"), "--key", &file("alice.key")])
        .args(["--connect-to", &format!("::{address}"), "--header", &format!("Host: {asked}")])
        .args(["--write-out", " %{http_version} %{http_code}", &format!("https://{connected}/")])
        .succeed()
}

/// Asks over TLS, by the name of the connection alone where there is no host.
fn asked_for(kettle: &Kettle, server_name: &str, host: Option<&str>) -> u16 {
    let dialer = Dialer::suite(TLS13_AES_128).server_name(server_name);
    let mut client = dialer.connect(kettle.address());
    let request = match host {
        Some(host) => format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        None => "GET / HTTP/1.0\r\n\r\n".to_owned(),
    };
    client.exchange(request.as_bytes()).status
}

#[test]
fn no_connection_without_a_host_is_for_a_name_of_another_listener() {
    let inner = "[[site]]\nnames = [\"inner.test\"]\n[[site.route]]\nroot = \"inner\"\n";
    let own = issue(&["localhost", "inner.test"], Kind::Ecdsa);
    let setup = Setup::default().certificate(own).bare_listener("default_site = \"localhost\"");
    let setup = setup.listener("kind = \"http\"\nsites = [\"inner.test\"]").more(inner);
    let kettle =
        Kettle::start(setup.file("www/index.html", "own").file("inner/index.html", "inner"));
    assert_eq!(asked_for(&kettle, "localhost", None), 200);
    for host in [Some("inner.test"), None] {
        assert_eq!(asked_for(&kettle, "inner.test", host), 421, "{host:?}");
    }
}

#[test]
fn conditions_see_the_host_that_servers_are_told() {
    let maps = "[[map]]\nname = \"m\"\nof = \"{host}\"\n[map.regex]\n\"^b[.]test$\" = \"1\"\n\
                [[map]]\nname = \"v\"\nof = \"{host}\"\nvalues = { \"b.test\" = \"1\" }\n";
    for when in [
        "host = [\"b.test\"]",
        "of = \"{host}\", text = \"b.test\"",
        "of = \"{host}\", regex = \"^b[.]test$\"",
        "of = \"{map:m}\", text = \"1\"",
        "of = \"{map:v}\", text = \"1\"",
    ] {
        let site =
            format!("[[site.before]]\nwhen = [{{ {when} }}]\nrespond = {{ status = 403 }}\n");
        let own = issue(&["localhost", "b.test"], Kind::Ecdsa);
        let setup = Setup::default().certificate(own).bare_listener("default_site = \"localhost\"");
        let setup = setup.more(&[&site, maps].concat()).file("www/index.html", "own");
        let kettle = Kettle::start(setup);
        assert_eq!(asked_for(&kettle, "localhost", Some("localhost")), 200, "{when}");
        for host in [Some("b.test"), Some("B.Test"), Some("b.test."), Some("B.test.:443"), None] {
            assert_eq!(asked_for(&kettle, "b.test", host), 403, "{when} {host:?}");
        }
    }
}

//! Sites that ask clients for certificates, as openssl and curl meet them.

use kettle_tests::tool::Ended;
use rustls::AlertDescription;

use super::*;

/// For `openssl s_client`, and for curl.
const VERSIONS: [(&str, [&str; 3]); 2] = [
    ("-tls1_2", ["--tlsv1.2", "--tls-max", "1.2"]),
    ("-tls1_3", ["--tlsv1.3", "--tls-max", "1.3"]),
];

/// A server whose one site has these settings for client certificates, and `alice` whom it knows.
fn setup(authority: &ClientAuthority, settings: &str) -> Setup {
    with_client(Setup::default(), "alice", authority, 1, GOOD)
        .file("www/a", "content")
        .file("clients.pem", authority.pem())
        .site(&format!("client_auth = {{ roots = \"clients.pem\"{settings} }}"))
}

fn with_client(
    setup: Setup,
    name: &str,
    authority: &ClientAuthority,
    serial: u64,
    until: i32,
) -> Setup {
    let issued = authority.issue(name, serial, until);
    setup.issued(name, &issued)
}

fn client(kettle: &Kettle, name: &str) -> [String; 4] {
    let path = |file: String| kettle.folder.path(&file).display().to_string();
    ["-cert".into(), path(format!("{name}.pem")), "-key".into(), path(format!("{name}.key"))]
}

/// A whole exchange by `openssl s_client`, with what it said.
fn ask(kettle: &Kettle, host: &str, words: &[&str]) -> Ended {
    let request = format!("GET /a HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    kettle.openssl(words).typed(request)
}

fn ask_as(kettle: &Kettle, name: &str, words: &[&str]) -> Ended {
    ask_at(kettle, "localhost", name, words)
}

/// The same for another host.
fn ask_at(kettle: &Kettle, host: &str, name: &str, words: &[&str]) -> Ended {
    let certificate = client(kettle, name);
    ask(kettle, host, &[words, &certificate.each_ref().map(String::as_str)].concat())
}

fn counted(kettle: &Kettle, outcome: &str) -> u64 {
    kettle.status(&format!("/total/client_certificates/{outcome}")).as_u64().unwrap_or_default()
}

#[test]
fn client_with_a_good_certificate_is_served_and_named_in_the_log() {
    let authority = ClientAuthority::new("clients");
    let kettle = Kettle::start(setup(&authority, ""));
    for (_, version) in VERSIONS {
        let certificate = client(&kettle, "alice").map(|word| match word.as_str() {
            "-cert" | "-key" => format!("-{word}"),
            _ => word,
        });
        let words: Vec<&str> = certificate.iter().map(String::as_str).chain(version).collect();
        assert_eq!(kettle.curl(&words, "/a").succeed(), "content");
        assert_eq!(kettle.entry("/a").text("client"), ALICE);
    }
}

#[test]
fn resumed_session_knows_its_client() {
    let authority = ClientAuthority::new("clients");
    let kettle = Kettle::start(setup(&authority, ""));
    let session = kettle.folder.path("session.pem").display().to_string();
    for (version, _) in VERSIONS {
        for (flag, resumed) in [("-sess_out", "full"), ("-sess_in", "ticket")] {
            // A client that resumes has shown the certificate before.
            let said = match flag {
                "-sess_out" => ask_as(&kettle, "alice", &[version, flag, &session]),
                _ => ask(&kettle, "localhost", &[version, flag, &session]),
            };
            assert!(said.text().contains("content"), "{version} {flag}: {}", said.text());
            let entry = kettle.entry("/a");
            assert_eq!((entry.text("resumed"), entry.text("client")), (resumed, ALICE));
        }
    }
    let words = ["-tls1_2", "-no_ticket", "-reconnect"];
    let reconnected = ask_as(&kettle, "alice", &words);
    assert_eq!(reconnected.text().matches("Reused, TLSv1.2").count(), 5, "by session ID");
    assert!(counted(&kettle, "verified") >= 2 && counted(&kettle, "resumed") >= 2);
}

#[test]
fn bad_certificates_get_the_alert_that_says_why() {
    let authority = ClientAuthority::new("clients");
    let stranger = ClientAuthority::new("others");
    let mut setup = setup(&authority, ", crl = \"clients.crl\"")
        .file("clients.crl", authority.revoke(&[7], GOOD));
    for (name, authority, serial, until) in [
        ("mallory", &stranger, 1, GOOD),
        ("late", &authority, 2, 2021),
        ("gone", &authority, 7, GOOD),
    ] {
        setup = with_client(setup, name, authority, serial, until);
    }
    let kettle = Kettle::start(setup);
    for (version, _) in VERSIONS {
        let none = if version == "-tls1_2" { 40 } else { 116 };
        for (name, alert, outcome) in [
            ("mallory", 48, "unknown_ca"),
            ("late", 45, "certificate_expired"),
            ("gone", 44, "certificate_revoked"),
            ("", none, "certificate_required"),
        ] {
            let before = counted(&kettle, outcome);
            let said = match name {
                "" => ask(&kettle, "localhost", &[version]),
                name => ask_as(&kettle, name, &[version]),
            };
            let expected = format!("SSL alert number {alert}");
            assert!(said.stderr.contains(&expected), "{version} {name}: {}", said.stderr);
            assert!(!said.text().contains("content"), "{version} {name}");
            // The alert may be seen before it is counted.
            wait_until(outcome, || counted(&kettle, outcome) > before);
            assert_eq!(counted(&kettle, outcome), before + 1, "{outcome}");
        }
        assert!(ask_as(&kettle, "alice", &[version]).text().contains("content"));
    }
}

#[test]
fn optional_certificate_may_be_left_out() {
    let authority = ClientAuthority::new("clients");
    let kettle = Kettle::start(setup(&authority, ", mode = \"optional\""));
    for (version, words) in VERSIONS {
        assert_eq!(kettle.curl(&words, "/a").succeed(), "content");
        assert!(kettle.entry("/a").text("client").is_empty());
        assert!(ask_as(&kettle, "alice", &[version]).text().contains("content"));
        assert_eq!(kettle.entry("/a").text("client"), ALICE);
    }
    assert_eq!(counted(&kettle, "none"), 2);
}

#[test]
fn who_was_not_asked_is_not_counted() {
    let authority = ClientAuthority::new("clients");
    let own = "kind = \"tls\"\nbackend = \"app\"\n\
               [[listener.certificate]]\nchain = \"localhost.pem\"\nkey = \"localhost.key\"";
    let asking = "client_auth = { roots = \"clients.pem\", mode = \"optional\" }";
    let setup = setup(&authority, ", mode = \"optional\"")
        .listener("path = \"auto\"")
        .listener(own)
        .listener(&format!("{own}\n{asking}"))
        .more(&backend("app", "", &[Backend::echoing()]));
    let kettle = Kettle::start(setup);
    for (address, count) in kettle.addresses.iter().zip([1, 1, 2]) {
        let mut client = Dialer::default().connect(*address);
        // In TLS 1.3 a client is through before its server is: what comes back, a response or an echo, shows that both are.
        client.send(&get("/a")).unwrap();
        assert_ne!(client.receive_more(), 0, "{address}");
        assert_eq!(counted(&kettle, "none"), count, "{address}");
    }
}

#[test]
fn connection_made_for_another_name_does_not_reach_such_a_site() {
    let authority = ClientAuthority::new("clients");
    let both = issue(&["localhost", "secret.test"], Kind::Ecdsa);
    let setup = with_client(Setup::default(), "alice", &authority, 1, GOOD)
        .certificate(both)
        .file("www/a", "public")
        .file("secret/a", "secret")
        .file("clients.pem", authority.pem())
        .another_site(
            &["secret.test"],
            "localhost",
            "client_auth = { roots = \"clients.pem\" }\n[[site.route]]\nroot = \"secret\"",
        );
    let kettle = Kettle::start(setup);
    let certificate = client(&kettle, "alice");
    let certificate: Vec<&str> = certificate.iter().map(String::as_str).collect();
    for (version, _) in VERSIONS {
        let ask = |host: &str, words: &[&str]| {
            let words = [&[version], words, &certificate].concat();
            ask(&kettle, host, &words).text()
        };
        let there = ["-servername", "secret.test"];
        assert!(ask("secret.test", &there).contains("secret"));
        assert!(ask("localhost", &[]).contains("public"));
        for (host, words) in [("secret.test", &[][..]), ("secret.test", &["-noservername"])] {
            let said = match words {
                [] => ask(host, words),
                _ => without_name(&kettle, host, &[&[version], words, &certificate].concat()),
            };
            assert!(said.contains("HTTP/1.1 421 "), "{version} {words:?}: {said}");
        }
    }
}

/// Copies of one file of roots ask for the same, and a name that no site has asks for nothing.
#[test]
fn sites_that_ask_for_the_same_share_connections() {
    let [authority, other] = ["clients", "others"].map(ClientAuthority::new);
    let all = issue(&["localhost", "copy.test", "other.test"], Kind::Ecdsa);
    let asking = |setup: Setup, name: &str| {
        let settings = format!(
            "client_auth = {{ roots = \"{name}.pem\" }}\n[[site.route]]\nroot = \"{name}\""
        );
        setup.another_site(&[&format!("{name}.test")], "localhost", &settings)
    };
    let setup = setup(&authority, "")
        .certificate(all)
        .file("copy.pem", authority.pem())
        .file("copy/a", "the copy")
        .file("other.pem", other.pem())
        .file("other/a", "the other");
    let kettle = Kettle::start(asking(asking(setup, "copy"), "other"));
    for (version, _) in VERSIONS {
        let ask = |host: &str, name: &str| {
            ask_at(&kettle, host, "alice", &[version, "-servername", name]).text()
        };
        assert!(ask("copy.test", "localhost").contains("the copy"), "{version}");
        assert!(ask("localhost", "copy.test").contains("content"), "{version}");
        for (host, name) in [
            ("other.test", "localhost"),
            ("localhost", "unknown.test"),
            ("copy.test", "unknown.test"),
        ] {
            let said = ask(host, name);
            assert!(said.contains("HTTP/1.1 421 "), "{version} {host} {name}: {said}");
        }
    }
}

/// A site that only names a backend is not on https listeners: there its name is that of the site that answers.
#[test]
fn name_that_is_only_carried_on_is_no_way_around_a_certificate() {
    let authority = ClientAuthority::new("clients");
    for others in ["*.example", "_"] {
        let setup = Setup::default()
            .listener("http2 = true")
            .listener("kind = \"passthrough\"")
            .certificate(issue(&["localhost", "legacy.example"], Kind::Ecdsa))
            .file("secret/a", "secret")
            .file("clients.pem", authority.pem())
            .another_site(
                &[others],
                "localhost",
                "client_auth = { roots = \"clients.pem\" }\n[[site.route]]\nroot = \"secret\"",
            )
            .more("[[site]]\nnames = [\"legacy.example\"]\nbackend = \"legacy\"\n")
            .more(&backend("legacy", "", &[Backend::echoing()]));
        let kettle = Kettle::start(setup);
        for (suite, protocol) in
            ONE_OF_EACH_VERSION.into_iter().flat_map(|it| [(it, "http/1.1"), (it, "h2")])
        {
            let dialer = Dialer::suite(suite).server_name("legacy.example").alpn(&[protocol]);
            let end = match dialer.try_connect(kettle.address()) {
                Err(error) => end_of(&error),
                Ok(mut client) => {
                    let request =
                        "GET /a HTTP/1.1\r\nHost: intranet.example\r\nConnection: close\r\n\r\n";
                    let _ = client.send(request.as_bytes());
                    let end = client.end();
                    assert_eq!(
                        client.beyond().escape_ascii().to_string(),
                        "",
                        "{others} {}",
                        suite.name
                    );
                    end
                }
            };
            let expected = match suite.name.starts_with("TLS13") {
                true => AlertDescription::CertificateRequired,
                false => AlertDescription::HandshakeFailure,
            };
            assert_eq!(end, End::Alert(expected), "{others} {protocol} {}", suite.name);
        }
    }
}

/// As `ask`, by a client that says no name.
fn without_name(kettle: &Kettle, host: &str, words: &[&str]) -> String {
    Tool::new("openssl")
        .args(["s_client", "-connect", &kettle.address().to_string()])
        .args(words)
        .typed(format!("GET /a HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
        .text()
}

#[test]
fn session_from_before_a_change_by_reload_is_not_resumed() {
    let one = ClientAuthority::new("one");
    let two = ClientAuthority::new("two");
    let both = one.pem() + &two.pem();
    let list = |serials: &[u64]| one.revoke(serials, GOOD);
    let setup = with_client(setup(&one, ", crl = \"clients.crl\""), "bob", &two, 1, GOOD)
        .file("clients.pem", both.clone())
        .file("clients.crl", list(&[]) + &two.revoke(&[], GOOD));
    let kettle = Kettle::start(setup);
    let session = kettle.folder.path("session.pem").display().to_string();
    let reload = || drop(kettle.ctl(&["reload"]).succeed());
    for version in [&["-tls1_2"][..], &["-tls1_2", "-no_ticket"], &["-tls1_3"]] {
        let with = |flag| [version, &[flag, &session]].concat();
        for name in ["alice", "bob"] {
            kettle.folder.replace("clients.pem", &both);
            kettle.folder.replace("clients.crl", list(&[]) + &two.revoke(&[], GOOD));
            reload();
            assert!(ask_as(&kettle, name, &with("-sess_out")).status.success());
            reload();
            let again = ask_as(&kettle, name, &with("-sess_in"));
            assert!(again.text().contains("Reused, "), "{version:?}: nothing changed");
            // Bob's authority goes, or Alice herself.
            match name {
                "bob" => kettle.folder.replace("clients.pem", one.pem()),
                _ => kettle.folder.replace("clients.crl", list(&[1]) + &two.revoke(&[], GOOD)),
            }
            reload();
            let after = ask_as(&kettle, name, &with("-sess_in"));
            let text = after.text();
            assert!(!text.contains("Reused, ") && !text.contains("content"), "{version:?} {text}");
            assert!(after.stderr.contains("SSL alert number 4"), "{version:?} {}", after.stderr);
        }
    }
}

#[test]
fn session_from_before_certificates_were_asked_for_is_not_resumed() {
    let authority = ClientAuthority::new("clients");
    let setup = setup(&authority, "");
    for (version, _) in VERSIONS {
        let kettle = Kettle::start(setup.clone());
        let asks = "client_auth = { roots = \"clients.pem\" }";
        kettle.reload_with(asks, "self_signed = false");
        let session = kettle.folder.path("session.pem").display().to_string();
        let before = ask(&kettle, "localhost", &[version, "-sess_out", &session]);
        assert!(before.text().contains("content"), "{version}");
        kettle.reload_with("self_signed = false", asks);
        let after = ask(&kettle, "localhost", &[version, "-sess_in", &session]);
        assert!(!after.text().contains("content"), "{version}: {}", after.text());
    }
}

#[test]
fn connection_from_before_certificates_were_asked_for_is_sent_away() {
    let authority = ClientAuthority::new("clients");
    let kettle = Kettle::start(setup(&authority, ""));
    let asks = "client_auth = { roots = \"clients.pem\" }";
    kettle.reload_with(asks, "self_signed = false");
    for suite in ONE_OF_EACH_VERSION {
        let mut idle = kettle.connect(suite);
        let mut other = kettle.connect(suite);
        assert_eq!(idle.get("/a").body, b"content");
        kettle.reload_with("self_signed = false", "self_signed = false # the same");
        assert_eq!(idle.get("/a").body, b"content", "nothing has changed");
        kettle.reload_with("self_signed = false # the same", asks);
        assert_eq!(other.get("/a").status, 421, "{}", suite.name);
        kettle.reload_with(asks, "self_signed = false");
    }
}

#[test]
fn check_says_what_is_wrong_with_the_files() {
    let authority = ClientAuthority::new("clients");
    let settings = ", crl = \"clients.crl\"";
    let good = setup(&authority, settings).file("clients.crl", authority.revoke(&[], GOOD));
    let check = |setup: Setup| {
        let (_, folder) = setup.lay_out();
        folder.kettle("check").output()
    };
    assert!(check(good.clone()).status.success());
    let key = authority.issue("alice", 1, GOOD).key;
    for (file, content, mistake) in [
        ("clients.pem", key, "holds a private key but no certificate"),
        ("clients.pem", "text".to_owned(), "has no certificate in it"),
        ("clients.pem", String::new(), "is empty"),
        ("clients.crl", authority.pem(), "has no revocation list in it"),
        ("clients.crl", authority.revoke(&[], 2021), "ran out at 2021-01-01"),
    ] {
        let said = check(good.clone().file(file, content));
        let text = said.text();
        assert!(!said.status.success() && text.contains(mistake), "{mistake}: {text}");
        assert!(text.contains(file) && text.contains("kettle.toml:"), "{text}");
    }
    let (_, folder) = good.lay_out();
    folder.change_config("clients.crl", "missing.crl");
    folder.kettle("check").fail("missing.crl");
}

const ALICE: &str = "CN=alice,O=kettle's tests";
/// A year that is far away.
const GOOD: i32 = 2120;

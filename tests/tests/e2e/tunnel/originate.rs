//! TLS that begins here: towards servers whose certificates are verified.

use kettle_tests::certificate::ClientAuthority;

use super::*;

/// Plain in, TLS to this server.
fn originator(to: &Kettle, tls: &str) -> Kettle {
    let app = backend("app", &format!("[backend.tls]\n{tls}"), &[to.address()]);
    let setup = Setup::default().listener("kind = \"tcp\"\nbackend = \"app\"");
    let strangers = ClientAuthority::new("strangers").pem();
    Kettle::start(setup.file("strangers.pem", strangers).more(&app))
}

fn ask(kettle: &Kettle) -> Vec<u8> {
    let mut socket = kettle.connect_plain();
    // It may be closed already.
    let _ = socket.write_all(&get("/a"));
    let mut received = Vec::new();
    let mut room = [0; 4_096];
    while !received.ends_with(b"inside") {
        match socket.read(&mut room) {
            Ok(count @ 1..) => received.extend_from_slice(&room[..count]),
            _ => break,
        }
    }
    received
}

#[test]
fn a_verified_server_is_spoken_to() {
    let inner = Kettle::start(Setup::default().file("www/a", "inside"));
    let outer = originator(&inner, "name = \"localhost\"\nroots = \"authority.pem\"");
    for resumed in ["full", "ticket"] {
        assert!(ask(&outer).ends_with(b"inside"));
        let entry = outer.tunnel();
        assert_eq!(entry.text("server_tls_version"), "TLSv1.3");
        assert_eq!(entry.text("server_resumed"), resumed);
        assert_eq!(inner.entry("/a").text("server_name"), "localhost");
    }
}

#[test]
fn checks_leave_sessions_to_tunnels() {
    let inner = terminator("", &[Backend::echoing()]);
    let check = "[backend.check]\nkind = \"tls\"\ninterval = \"50ms\"";
    let outer =
        originator(&inner, &format!("name = \"localhost\"\nroots = \"authority.pem\"\n{check}"));
    for resumed in ["full", "ticket"] {
        let mut client = outer.connect_plain();
        client.write_all(b"ping").unwrap();
        assert_eq!(read_exactly(&mut client, 4), b"ping");
        drop(client);
        assert_eq!(outer.tunnel().text("server_resumed"), resumed);
        // More than there are tickets.
        for _ in 0..12 {
            assert_eq!(inner.tunnel().text("end"), "client_closed");
        }
    }
}

#[test]
fn a_server_that_proves_nothing_gets_nothing() {
    let inner = Kettle::start(Setup::default().file("www/a", "inside"));
    for tls in [
        // Another authority, and a name it does not have.
        "name = \"localhost\"\nroots = \"strangers.pem\"",
        "name = \"other.example\"\nroots = \"authority.pem\"",
        "pins = [\"sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\"]",
    ] {
        let outer = originator(&inner, tls);
        assert_eq!(ask(&outer), b"", "{tls}");
        assert_eq!(outer.tunnel().text("end"), "tls", "{tls}");
    }
}

#[test]
fn a_pinned_key_is_enough() {
    let inner = Kettle::start(Setup::default().file("www/a", "inside"));
    let certificate = inner.folder.path("localhost.pem");
    let script = "openssl x509 -in \"$0\" -pubkey -noout | openssl pkey -pubin -outform der \
                  | openssl dgst -sha256 -binary | openssl base64";
    let hash = Tool::new("sh").args(["-c", script, certificate.to_str().unwrap()]).succeed();
    let outer = originator(&inner, &format!("pins = [\"sha256/{}\"]", hash.trim()));
    assert!(ask(&outer).ends_with(b"inside"));
}

#[test]
fn tls_on_both_sides_is_opened_and_sealed_again() {
    let inner = Kettle::start(Setup::default().sizes(&[300_000]));
    let app = backend("app", VERIFIED, &[inner.address()]);
    let outer = Kettle::start(before_app("tls", "", &app));
    let mut client = Dialer::default().connect(outer.address());
    assert_eq!(client.get("/300000").body.len(), 300_000);
    drop(client);
    let entry = outer.tunnel();
    assert_eq!((entry.text("path_sent"), entry.text("path_received")), ("user", "user"));
}

#[test]
fn the_command_line_alone_originates() {
    let inner = Kettle::start(Setup::default().file("www/a", "inside"));
    let listen = unused_address();
    let roots = inner.folder.path("authority.pem");
    let to = inner.address().to_string();
    let words = ["originate", "--listen", &listen.to_string(), "--to", &to, "--name", "localhost"];
    let kettle = Tool::kettle(words).args(["--roots", roots.to_str().unwrap()]).start();
    kettle.stdout.wait_for("TLS to");
    let url = format!("http://{listen}/a");
    let said = Tool::new("curl").args(["-sS", "--max-time", "20", "-H", "Host: localhost", &url]);
    assert_eq!(said.succeed(), "inside");
}

#[test]
fn a_server_that_asks_for_a_certificate_gets_ours() {
    let authority = ClientAuthority::new("clients");
    let own = authority.issue("kettle", 1, 2099);
    let inner = Setup::default()
        .file("www/a", "inside")
        .file("clients.pem", authority.pem())
        .site("client_auth = { roots = \"clients.pem\" }");
    let inner = Kettle::start(inner);
    let shown = "certificate = { chain = \"own.pem\", key = \"own.key\" }";
    let app = backend("app", &format!("{VERIFIED}\n{shown}"), &[inner.address()]);
    let setup = Setup::default()
        .listener("kind = \"tcp\"\nbackend = \"app\"")
        .issued("own", &own)
        .more(&app);
    let outer = Kettle::start(setup);
    assert!(ask(&outer).ends_with(b"inside"));
    assert!(inner.entry("/a").text("client").contains("kettle"));
}

#[test]
fn a_certificate_refused_behind_the_handshake_is_told() {
    let known = ClientAuthority::new("clients");
    let unknown = ClientAuthority::new("strangers");
    let ours = known.issue("kettle", 1, 2099);
    let strange = unknown.issue("kettle", 1, 2099);
    let shown = |name| format!("certificate = {{ chain = \"{name}.pem\", key = \"{name}.key\" }}");
    for version in ["tls1.2", "tls1.3"] {
        let inner = Setup::default()
            .set("tls", &format!("versions = [\"{version}\"]"))
            .file("www/a", "inside")
            .file("clients.pem", known.pem())
            .site("client_auth = { roots = \"clients.pem\" }");
        let inner = Kettle::start(inner);
        let outer = |tls: &str| {
            let app = backend("app", &format!("{VERIFIED}\n{tls}"), &[inner.address()]);
            Setup::default()
                .listener("kind = \"tcp\"\nbackend = \"app\"")
                .issued("ours", &ours)
                .issued("strange", &strange)
                .more(&app)
        };
        for (certificate, told) in
            [("", "asked for a certificate, got none"), (&shown("strange"), "UnknownCA")]
        {
            let kettle = Kettle::start(outer(certificate));
            let mut client = kettle.connect_plain();
            assert!(read_to_end(&mut client).1.is_err(), "{version}");
            let failure = kettle.tunnel().text("failure").to_owned();
            assert!(failure.contains(told), "{version}: {failure}");
            let shown = kettle.ctl(&["backends"]).succeed();
            assert!(shown.contains(told), "{version}: {shown}");
        }
        let check =
            "# shown\n[backend.check]\nkind = \"tls\"\ninterval = \"50ms\"\nfall = 1\nrise = 1";
        let kettle = Kettle::start(outer(check));
        kettle.wait_for_status("/backends/0/servers/0/health", "down");
        kettle.reload_with("# shown", &shown("ours"));
        kettle.wait_for_status("/backends/0/servers/0/health", "up");
        assert!(ask(&kettle).ends_with(b"inside"), "{version}");
    }
}

#[test]
fn a_server_is_offered_what_was_agreed_on_with_the_client() {
    let both = "alpn = [\"h2\", \"http/1.1\"]";
    let before = |inner: &Kettle| {
        let app = backend("app", &format!("{VERIFIED}\n{both}"), &[inner.address()]);
        let listener = format!("kind = \"tls\"\nbackend = \"app\"\n{both}");
        Kettle::start(Setup::default().listener(&listener).more(&app))
    };
    let carries = |outer: &Kettle, offered: &[&str], agreed: &str| {
        let mut client = Dialer::default().alpn(offered).connect(outer.address());
        echoed(&mut client, b"ping");
        drop(client);
        let entry = outer.tunnel();
        assert_eq!([entry.text("alpn"), entry.text("server_alpn")], [agreed; 2], "{offered:?}");
    };
    let inner = terminator(both, &[Backend::echoing()]);
    let outer = before(&inner);
    carries(&outer, &["http/1.1"], "http/1.1");
    carries(&outer, &["http/1.1", "h2"], "h2");
    carries(&outer, &[], "");

    // A server is not out for those that speak something else.
    let inner = terminator("alpn = [\"http/1.1\"]", &[Backend::echoing()]);
    let outer = before(&inner);
    for _ in 0..3 {
        let mut client = Dialer::default().alpn(&["h2"]).connect(outer.address());
        assert_eq!(client.end(), End::Cut);
        assert_eq!(outer.tunnel().text("end"), "turned_away");
    }
    assert_eq!(outer.status("/backends/0/servers/0/health"), "up");
    carries(&outer, &["http/1.1"], "http/1.1");
}

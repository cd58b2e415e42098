//! Advice on a configuration that works as it is written, and should be looked at all the same.

use std::path::Path;

const APP: &str = "[[backend]]\nname = \"app\"\n[[backend.server]]\naddress = \"127.0.0.1:80\"\n";

const SITE: &str =
    "[[site]]\nnames = [\"a\"]\nself_signed = true\n[[site.route]]\nroot = \"/srv\"\n";

#[track_caller]
fn assert_advised(text: &str, expected: &str) {
    let parsed = kettle_config::parse(text, Path::new("kettle.toml"));
    let diagnostics =
        parsed.map_or_else(|mistakes| mistakes, |config| kettle_config::advice(&config));
    let shown: Vec<_> = diagnostics.iter().map(ToString::to_string).collect();
    assert_eq!(shown.join("\n"), expected, "in\n{text}");
}

fn tcp(listener: &str) -> String {
    format!("[[listener]]\nkind = \"tcp\"\nbackend = \"app\"\n{listener}{APP}")
}

#[test]
fn backends_are_for_somebody() {
    let other = APP.replace("app", "other");
    assert_advised(
        &(tcp("address = \"0.0.0.0:1\"\n") + &other),
        r#"kettle.toml:10:8: no listener, site or route names "other"
 10 | name = "other"
    |        ^^^^^^^
help: remove it, or write it where connections or requests are to go there"#,
    );
}

#[test]
fn sites_are_served_by_somebody() {
    let listener =
        |kind: &str| format!("[[listener]]\naddress = \"127.0.0.1:443\"\nsites = [\"a\"]\n{kind}");
    let other = SITE.replace("[\"a\"]", "[\"b\"]");
    assert_advised(
        &(listener("") + SITE + &other),
        r#"kettle.toml:10:10: no listener serves the site "b"
 10 | names = ["b"]
    |          ^^^
help: write its name in `sites` of a [[listener]], or remove it"#,
    );
    let plain = |text: &str| text.replace("self_signed = true\n", "");
    assert_advised(
        &(listener("kind = \"http\"\n") + &plain(SITE) + &plain(&other)),
        r#"kettle.toml:10:10: no listener serves the site "b"
 10 | names = ["b"]
    |          ^^^
help: write its name in `sites` of a [[listener]] with kind = "http", or remove it"#,
    );
    let all = "[[listener]]\naddress = \"127.0.0.1:444\"\n";
    assert_advised(&(listener("") + all + SITE + &other), "");
}

#[test]
fn headers_are_not_believed_of_everybody() {
    let listener = |address: &str, networks: &str| {
        tcp(&format!("address = \"{address}:1\"\naccept_proxy = {networks}\n"))
    };
    assert_advised(
        &listener("0.0.0.0", "[\"10.0.0.0/8\", \"0.0.0.0/0\"]"),
        r#"kettle.toml:5:16: whoever can connect may say here which address it comes from
 5 | accept_proxy = ["10.0.0.0/8", "0.0.0.0/0"]
   |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^
help: write the networks of your load balancers"#,
    );
    assert_advised(&listener("0.0.0.0", "[\"10.0.0.0/8\"]"), "");
    assert_advised(
        &format!("[[listener]]\naddress = \"0.0.0.0:1\"\ntrusted_proxies = [\"::/0\"]\n{SITE}"),
        r#"kettle.toml:3:19: whoever can connect may say here which address it comes from
 3 | trusted_proxies = ["::/0"]
   |                   ^^^^^^^^
help: write the networks of your load balancers"#,
    );
    assert_advised(&listener("127.0.0.1", "[\"0.0.0.0/0\"]"), "");
}

#[test]
fn who_shows_no_certificate_has_no_subject() {
    let listener = "[[listener]]\naddress = \"0.0.0.0:1\"\n";
    let route =
        "backend = \"app\"\nrequest_headers = { X-A = \"1\", X-B = \"{client_subject}\" }\n";
    let site = SITE.replace("root = \"/srv\"\n", route);
    assert_advised(
        &format!("{listener}{site}{APP}"),
        r#"kettle.toml:8:38: {client_subject} is empty: this site asks for no certificates
 8 | request_headers = { X-A = "1", X-B = "{client_subject}" }
   |                                      ^^^^^^^^^^^^^^^^^^
help: add [site.client_auth], or write [] if backends are to get no such header"#,
    );
    let asking = "self_signed = true\nclient_auth = { roots = \"/ca.pem\" }";
    let site = site.replace("self_signed = true", asking);
    assert_advised(&format!("{listener}{site}{APP}"), "");
}

#[test]
fn pins_have_a_spare() {
    let pinned = |pins: &str| {
        tcp("address = \"0.0.0.0:1\"\n") + &format!("[backend.tls]\nname = \"a\"\npins = {pins}\n")
    };
    let (one, other) =
        (format!("\"sha256/{}=\"", "A".repeat(43)), format!("\"sha256/{}=\"", "E".repeat(43)));
    assert_advised(
        &pinned(&format!("[{one}]")),
        r#"kettle.toml:11:8: there is no spare: once the server has another key, nobody gets through
 11 | pins = ["sha256/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="]
    |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
help: write the pin of its next key, too"#,
    );
    assert_advised(&pinned(&format!("[{one}, {other}]")), "");
}

#[test]
fn one_backend_seldom_speaks_both_versions_of_http() {
    let serving = |protocols: &str, route: &str| {
        format!(
            "[[listener]]\naddress = \"0.0.0.0:1\"\nkind = \"tls\"\nbackend = \"app\"\n{protocols}\n\
             [[listener]]\naddress = \"0.0.0.0:2\"\n\
             [[site]]\nnames = [\"_\"]\nself_signed = true\n[[site.route]]\n{route}\n{APP}"
        )
    };
    let to_app = "backend = \"app\"";
    assert_advised(
        &serving("alpn = [\"h2\", \"http/1.1\"]", to_app),
        r#"kettle.toml:5:8: "app" gets HTTP/2 from here, and HTTP/1.1 from a route
 5 | alpn = ["h2", "http/1.1"]
   |        ^^^^^^^^^^^^^^^^^^
help: leave it if its servers take both; else remove "h2", or give the route another [[backend]]"#,
    );
    assert_advised(&serving("alpn = [\"http/1.1\"]", to_app), "");
    assert_advised(&serving("alpn = [\"h2\"]", "root = \"/srv\""), "");
}

#[test]
fn sendfile_and_http2_exclude_each_other() {
    let serving = |http2: &str, listener: &str, site: &str| {
        format!(
            "[[listener]]\naddress = \"0.0.0.0:1\"\n{http2}\n{listener}\n\
             [[site]]\nnames = [\"_\"]\nself_signed = true\n{site}\n[[site.route]]\nroot = \"/srv\"\n"
        )
    };
    let sendfile = "path = \"kernel-sendfile\"";
    let expected = r#"kettle.toml:3:9: a "path" asks for sendfile, by which nothing goes over HTTP/2
 3 | http2 = true
   |         ^^^^
help: leave it if sendfile is for clients of HTTP/1.1 only; else write false"#;
    assert_advised(&serving("http2 = true", sendfile, ""), expected);
    assert_advised(&serving("http2 = true", "", sendfile), expected);
    for (http2, path) in
        [("http2 = true", "path = \"kernel-write\""), ("http2 = false", sendfile), ("", sendfile)]
    {
        assert_advised(&serving(http2, path, ""), "");
    }
}

#[test]
fn patterns_fit_paths_of_their_route() {
    let with = |from: &str| {
        format!(
            "[[listener]]\naddress = \"0.0.0.0:1\"\n[[site]]\nnames = [\"_\"]\nself_signed = true\n\
             [[site.route]]\nprefix = \"/app/\"\nroot = \"/srv\"\nredirect = [{{ from = \"{from}\", to = \"/b\" }}]\n\
             [[site.route.rewrite]]\nfrom = \"{from}\"\nto = \"/app/c\"\n"
        )
    };
    assert_advised(
        &with("/old/*"),
        r#"kettle.toml:9:22: no path below /app fits, and this route gets no other
 9 | redirect = [{ from = "/old/*", to = "/b" }]
   |                      ^^^^^^^^
help: write a pattern of its paths, or move the rule to the route of those it is about
kettle.toml:11:8: no path below /app fits, and this route gets no other
 11 | from = "/old/*"
    |        ^^^^^^^^
help: write a pattern of its paths, or move the rule to the route of those it is about"#,
    );
    for from in ["/app", "/app/x", "/app/*", "/**.php", "/ap?/x", "/app*", "/a**", "/*/x"] {
        assert_advised(&with(from), "");
    }
    for from in ["/ap", "/apple", "/ap/**", "/b**", "/application/?"] {
        let advised = kettle_config::parse(&with(from), Path::new("kettle.toml"));
        assert_eq!(kettle_config::advice(&advised.unwrap()).len(), 2, "{from}");
    }
}

#[test]
fn a_redirect_leads_to_where_https_is_spoken() {
    let site = "[[site]]\nnames = [\"a\"]\nself_signed = true\n[[site.route]]\nroot = \"/srv\"\n";
    let config = |https: &str, redirect: &str| {
        format!(
            "[[listener]]\naddress = \"0.0.0.0:{https}\"\n[[listener]]\naddress = \"0.0.0.0:8080\"\n\
             kind = \"redirect\"\n{redirect}{site}"
        )
    };
    assert_advised(
        &config("8443", ""),
        r#"kettle.toml:5:8: clients are sent to port 443, and HTTPS is spoken on port 8443
 5 | kind = "redirect"
   |        ^^^^^^^^^^
help: write redirect_port = 8443, or 443 if that is where clients find it"#,
    );
    assert_advised(&config("443", ""), "");
    // If a port is written, somebody knows what leads there.
    for port in ["8443", "443", "9443"] {
        assert_advised(&config("8443", &format!("redirect_port = {port}\n")), "");
    }
    // HTTPS is somewhere else.
    assert_advised("[[listener]]\naddress = \"0.0.0.0:80\"\nkind = \"redirect\"\n", "");
}

#[test]
fn kernel_paths_are_for_tcp() {
    let listener = |address: &str, path: &str| {
        format!("[[listener]]\naddress = \"{address}\"\npath = \"{path}\"\nhttp2 = false\n{SITE}")
    };
    assert_advised(
        &listener("unix:/run/a", "kernel-write"),
        r#"kettle.toml:3:8: "kernel-write" is for TCP: what goes over a Unix socket is encrypted in user space
 3 | path = "kernel-write"
   |        ^^^^^^^^^^^^^^
help: remove `path`, or write "user""#,
    );
    assert_advised(&listener("unix:/run/a", "auto"), "");
    assert_advised(&listener("127.0.0.1:1", "kernel-write"), "");
}

#[test]
fn what_takes_paths_from_a_guarded_route_is_named() {
    let with = |first: &str, taker: &str| {
        format!(
            "[[listener]]\naddress = \"127.0.0.1:443\"\n[[site]]\nnames = [\"a\"]\nself_signed = true\n\
             [[site.route]]\nprefix = \"/in\"\nroot = \"/srv\"\nallow = [\"10.0.0.0/8\"]\n{first}\n[[site.route]]\nroot = \"/srv\"\n{taker}\n"
        )
    };
    assert_advised(
        &with("", "regex = 'php$'"),
        r"kettle.toml:13:9: this route takes paths from the one on line 7, and does not ask what that asks of clients
 13 | regex = 'php$'
    |         ^^^^^^
help: write first = true there, or the same guard here",
    );
    for (first, taker, count) in [
        ("first = true", "regex = 'php$'", 0),
        ("", "regex = '^/other'", 0),
        ("", "regex = '^/in/x'", 1),
        ("", "regex = '^/i.*'", 1),
        ("", "regex = '^/inn?'", 1),
        ("", "regex = '^/other|x'", 1),
        ("", "regex = 'php$'\nallow = [\"10.0.0.0/8\"]", 0),
        ("", "regex = 'php$'\ndeny = [\"0.0.0.0/0\", \"::/0\"]", 0),
        ("first = true", "prefix = \"/in\"\nregex = 'php$'", 1),
        ("", "exact = \"/in/x\"", 1),
        ("", "exact = \"/inn\"", 0),
        ("", "text_prefix = \"/in/x\"", 1),
        // Whole segments say what is meant.
        ("", "prefix = \"/in/x\"", 0),
    ] {
        let parsed = kettle_config::parse(&with(first, taker), Path::new("kettle.toml"));
        let advised = kettle_config::advice(&parsed.unwrap());
        assert_eq!(advised.len(), count, "{first} {taker}: {advised:?}");
    }
}

#[test]
fn responses_for_one_client_are_marked_before_proxies() {
    let with = |listener: &str, route: &str| {
        format!(
            "[[listener]]\naddress = \"127.0.0.1:443\"\n{listener}\n[[site]]\nnames = [\"a\"]\nself_signed = true\n\
             [[site.route]]\nroot = \"/srv\"\n{route}\n"
        )
    };
    let (proxies, guarded) = ("trusted_proxies = [\"10.0.0.0/8\"]", "allow = [\"10.0.0.0/8\"]");
    assert_advised(
        &with(proxies, &format!("{guarded}\nmark_private = false")),
        r"kettle.toml:10:16: a proxy in front of kettle may keep for others what one client was let in for
 10 | mark_private = false
    |                ^^^^^
help: leave it if none there keeps responses; else remove it",
    );
    assert_advised(&with("", &format!("{guarded}\nmark_private = false")), "");
    assert_advised(&with(proxies, guarded), "");
    assert_advised(&with(proxies, "mark_private = false"), "");
}

#[test]
fn authorities_are_asked_and_reach_us() {
    let acme = |name: &str| {
        format!("[[acme]]\nname = \"{name}\"\ndirectory = \"letsencrypt\"\naccept_terms = true\n")
    };
    let site = "[[site]]\nnames = [\"a.org\"]\nacme = { authorities = [\"le\"] }\nroute = [{ root = \"/srv\" }]\n";
    let at = |port: u16| format!("[[listener]]\naddress = \"127.0.0.1:{port}\"\n");
    assert_advised(
        &(at(443) + &acme("le") + &acme("other") + site),
        r#"kettle.toml:8:8: no site asks "other" for a certificate
 8 | name = "other"
   |        ^^^^^^^
help: write [site.acme] below a [[site]], or remove it"#,
    );
    assert_advised(
        &(at(8443) + &acme("le") + site),
        r#"kettle.toml:8:10: no challenge for "a.org" arrives: an authority connects to port 443 for tls-alpn-01 and to port 80 for http-01
 8 | names = ["a.org"]
   |          ^^^^^^^
help: add a [[listener]] there; or leave it, if these ports are forwarded to others"#,
    );
    let redirect = at(80) + "kind = \"redirect\"\nredirect_port = 8443\n";
    assert_advised(&(at(8443) + &redirect + &acme("le") + site), "");
    let tls = at(443) + "kind = \"tls\"\nbackend_by_alpn = { \"acme-tls/1\" = \"app\" }\n";
    assert_advised(
        &(tls + &acme("le") + "[[site]]\nnames = [\"a.org\"]\nacme = {}\n" + APP),
        r#"kettle.toml:4:19: "acme-tls/1" goes to a backend here, so kettle answers no tls-alpn-01
 4 | backend_by_alpn = { "acme-tls/1" = "app" }
   |                   ^^^^^^^^^^^^^^^^^^^^^^^^
help: remove it, or write challenges = ["http-01"] in each [site.acme]"#,
    );
}

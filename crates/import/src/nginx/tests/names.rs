//! The names of servers that are left out, which no other site may answer for.

use super::*;

/// Servers that pass requests on, and by name what is made of them: `+` of an open site, `?` of a guarded one, `!` of one that
/// refuses all, and `*` of the default.
#[test]
fn no_site_answers_for_the_names_of_a_server_that_is_left_out() {
    let verified = "ssl_verify_client on; ssl_client_certificate r.pem; ssl_verify_depth 3;";
    for (servers, expected) in [
        (
            ["default_server;", "; server_name a.example; location ~ \\x41 { deny all; }"],
            "_+* a.example!",
        ),
        (
            ["; server_name *.example;", &format!("; server_name a.example; {verified}")],
            "*.example+* a.example!",
        ),
        (["default_server;", "; server_name a.example; return 444;"], "_+* a.example!"),
        (
            ["default_server;", "; server_name a.example b.example; return 410;"],
            "_+* a.example!b.example!",
        ),
        (
            ["default_server;", "; server_name a.example; ssl_reject_handshake on;"],
            "_+* a.example!",
        ),
        (["default_server;", "; server_name a.example; if ($x) { return 403; }"], "_+* a.example!"),
        // Nobody else answers there.
        (
            ["; server_name b.example;", "default_server; server_name a.example; return 444;"],
            "b.example+",
        ),
        (
            ["; server_name *.b.example;", "default_server; server_name a.b.example; return 444;"],
            "*.b.example+ a.b.example!",
        ),
        (
            ["; server_name *.b.example;", "default_server; server_name b.example; return 444;"],
            "*.b.example+",
        ),
        // The first of both has the name.
        (
            [
                "default_server; server_name a.example; return 444;",
                "; server_name a.example *.example;",
            ],
            "*.example+ a.example!",
        ),
        (
            ["default_server; server_name a.example;", "; server_name a.example; return 444;"],
            "a.example+*",
        ),
    ] {
        assert_eq!(left(servers), expected, "{servers:?}");
    }
}

/// The same of names that no site can have: the default does not get them.
#[test]
fn no_default_answers_for_names_that_cannot_be_written() {
    for (servers, expected) in [
        (["default_server;", "; server_name *.example; allow 10.0.0.0/8; deny all;"], "*.example?"),
        (["default_server;", "; server_name *.example; auth_request /x;"], ""),
        (
            [
                "default_server; server_name b.example;",
                "; server_name ~^a; allow 10.0.0.0/8; deny all;",
            ],
            "b.example+",
        ),
        (
            [
                "default_server; server_name b.example;",
                "; server_name b.* a.example; deny 10.0.0.0/8;",
            ],
            "b.example+ a.example?",
        ),
        (["default_server;", "; server_name *.example;"], "_+* *.example+"),
        (
            [
                "default_server; return 301 https://b.example$request_uri;",
                "; server_name *.example; deny all;",
            ],
            "_+* *.example!",
        ),
    ] {
        assert_eq!(left(servers), expected, "{servers:?}");
    }
}

/// What is made of two servers that pass requests on, by name.
fn left(servers: [&str; 2]) -> String {
    let certificate = "ssl_certificate c.pem; ssl_certificate_key c.key;";
    let pass = "location / { proxy_pass http://10.0.0.1; }";
    let [first, other] = servers.map(|it| format!("server {{ listen 443 ssl {it} {pass} }}"));
    let made = imported(&format!("http {{ {certificate} {first} {other} }}"));
    made.config().map(|config| names(&config)).unwrap_or_default()
}

fn names(config: &Config) -> String {
    let all = config.sites.iter().enumerate().map(|(number, site)| {
        let route = site.routes.first().unwrap();
        let is_closed = route.backend.is_none() && route.redirects.is_empty();
        let sign = match (is_closed, route.allow.is_empty() && route.deny.is_empty()) {
            (true, _) => "!",
            (false, true) => "+",
            (false, false) => "?",
        };
        let default = if config.default_site() == Some(number) { "*" } else { "" };
        site.names.iter().map(|name| format!("{}{sign}", name.value)).collect::<String>() + default
    });
    all.collect::<Vec<_>>().join(" ")
}

/// A server that refuses handshakes has no certificate to show.
#[test]
fn a_refused_name_without_a_certificate_gets_one_made_here() {
    let reject = "server { listen 443 ssl; server_name a.example; ssl_reject_handshake on; }";
    let text = server("root /srv;").replace("http {", &format!("http {{ {reject}"));
    let config = config(&text.replace("443 ssl; ssl_c", "443 ssl default_server; ssl_c"));
    assert_eq!(config.sites.iter().map(|it| it.self_signed).collect::<Vec<_>>(), [false, true]);
}

/// A server that listens elsewhere, too, is left out; where kettle listens, its name is its own.
#[test]
fn a_name_of_a_server_on_one_of_several_addresses_is_nobody_elses() {
    let servers = [("443", "a"), ("443", "b"), ("9000", "c")].map(|(port, name)| {
        let certificate = "ssl_certificate c.pem; ssl_certificate_key c.key; root /srv;";
        format!(
            "server {{ listen 8443 ssl; listen {port} ssl; server_name {name}.example; {certificate} }}"
        )
    });
    let sites = config(&format!("http {{ {} }}", servers.concat())).sites;
    let closed = sites.iter().filter(|it| !it.routes[0].deny.is_empty());
    let closed: Vec<&str> = closed.map(|it| it.names[0].value.as_str()).collect();
    assert_eq!((sites.len(), closed), (3, vec!["c.example"]));
}

/// Of servers on different addresses as many are kept on 443 as elsewhere.
#[test]
fn of_two_addresses_the_usual_one_is_kept() {
    let certificate = "ssl_certificate c.pem; ssl_certificate_key c.key; root /srv;";
    for (ports, expected) in
        [([443, 8448], 443), ([8448, 443], 443), ([9000, 8448], 8448), ([80, 443], 443)]
    {
        let servers = ports.map(|port| {
            format!("server {{ listen {port} ssl default_server; server_name a{port}.example; {certificate} }}")
        });
        let config = config(&format!("http {{ {} }}", servers.concat()));
        assert_eq!(config.listeners[0].address.port(), Some(expected), "{ports:?}");
    }
}

/// Entries of a map, and the backend of its listener and the sites beside it; nothing where the server is left out.
#[test]
fn a_stream_without_one_of_its_names_has_no_default() {
    for (entries, expected) in [
        ("default 10.0.0.1:1; a.example 10.0.0.2:1;", "10.0.0.1:1 a.example"),
        ("default 10.0.0.1:1; a.example \"\"; b.example 10.0.0.2:1;", "- b.example"),
        ("default 10.0.0.1:1; ~^a 10.0.0.3:1; b.example 10.0.0.2:1;", "- b.example"),
        ("default 10.0.0.1:1; a.example $x; b.example 10.0.0.2:1;", "- b.example"),
        ("hostnames; default 10.0.0.1:1; *.example 10.0.0.2:1;", "- *.example"),
        ("default 10.0.0.1:1; own.example 10.0.0.2:1; b.example 10.0.0.2:1;", "- b.example"),
        ("default \"\"; ~^a 10.0.0.1:1; b.example 10.0.0.2:1;", "- b.example"),
        ("default 10.0.0.1:1; a.example \"\";", ""),
    ] {
        let http =
            server("root /srv; server_name own.example;").replace("listen 443", "listen 444");
        let made = imported(&format!(
            "{http} stream {{ map $ssl_preread_server_name $to {{ {entries} }}
             server {{ listen 443; ssl_preread on; proxy_pass $to; }} }}"
        ));
        let config = made.config().unwrap();
        let shown = config.listeners.get(1).map(|it| {
            let backend = it.backends().next().map_or("-".to_owned(), |it| it.value.clone());
            let names = config.sites.iter().skip(1).flat_map(|it| &it.names);
            names.fold(backend, |shown, name| format!("{shown} {}", name.value))
        });
        assert_eq!(shown.unwrap_or_default(), expected, "{entries}\n{}", made.toml);
    }
}

#[test]
fn nothing_left_is_said_so() {
    let made = imported(&server("return 444; server_name a.example;"));
    let found = shown(&made.config().unwrap_err());
    assert!(found.contains("every server was left out, for the reasons above"), "{found}");
    assert!(!found.contains("no site is declared"), "{found}");
}

/// What holds for all may be said in another file.
#[test]
fn what_holds_for_all_is_named_with_its_file() {
    let main = "http { include a.conf; include b.conf; }";
    let mut machine = Files::with("/etc/nginx/nginx.conf", main);
    for (name, seconds) in [("a", 1), ("b", 2)] {
        let text = format!(
            "server {{ listen 443 ssl; server_name {name}; keepalive_timeout {seconds}; root /s;
                            ssl_certificate c; ssl_certificate_key k; }}"
        );
        machine.0.insert(format!("/etc/nginx/{name}.conf").into(), text);
    }
    let made = import_file(Path::new("/etc/nginx/nginx.conf"), &machine).unwrap();
    assert!(made.toml.contains("it holds for all, as /etc/nginx/a.conf:1 says"), "{}", made.toml);
}

/// What the server of a.example says, the default on 443, and that of b.example, the default on 8443; and the site that answers
/// for other names on both.
#[test]
fn one_default_serves_no_more_than_that_of_each_address() {
    let certificate = "ssl_certificate c.pem; ssl_certificate_key c.key;";
    for ([first, other], expected) in [
        (["root /srv;", "root /srv;"], Some("a.example")),
        (["root /srv; deny 1.2.3.4;", "root /srv;"], Some("a.example")),
        (["root /srv;", "root /srv; deny 1.2.3.4;"], None),
        (["root /srv;", "root /srv; auth_basic x; auth_basic_user_file users;"], None),
        (["root /srv;", "root /srv; location /x/ { deny all; }"], None),
        (["root /srv;", "return 403;"], None),
        (["root /srv;", "return 301 https://a.example/;"], None),
        (["root /srv;", "ssl_reject_handshake on;"], None),
    ] {
        let one = |name: &str, ports: [&str; 2], words: &str| {
            let [here, there] = ports;
            format!(
                "server {{ listen {here} ssl default_server; listen {there} ssl; server_name {name}; {certificate} {words} }}"
            )
        };
        let text =
            one("a.example", ["443", "8443"], first) + &one("b.example", ["8443", "443"], other);
        let config = config(&format!("http {{ {text} }}"));
        let default = config.default_site().and_then(|it| config.sites.get(it));
        let default = default.map(|site| site.names[0].value.as_str());
        assert_eq!(default, expected, "{first} {other}");
    }
}

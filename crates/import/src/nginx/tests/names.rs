//! The names of servers that are left out, which no other site may answer for.

use kettle_config::UnknownNames;

use super::*;

/// Servers that pass requests on, and by name what is made of them: `+` of an open site, `?` of a guarded one, `!` of one that
/// refuses all, and `*` of the default.
#[test]
fn no_site_answers_for_the_names_of_a_server_that_is_left_out() {
    let verified = "ssl_verify_client on; ssl_client_certificate r.pem; ssl_ocsp on;";
    for (servers, expected) in [
        (
            ["default_server;", "; server_name a.example; location ~ (?R) { deny all; }"],
            "_+* a.example!",
        ),
        (
            ["; server_name *.example;", &format!("; server_name a.example; {verified}")],
            "**.example+* a.example!",
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
        (["default_server; ssl_reject_handshake on;", "; server_name a.example;"], "a.example+"),
        (
            [
                "default_server; server_name b.example; ssl_reject_handshake on;",
                "; server_name a.example;",
            ],
            "b.example! a.example+",
        ),
        (
            [
                "default_server; server_name b.example; ssl_reject_handshake on;",
                "; server_name *.example;",
            ],
            "b.example! **.example+",
        ),
        (["default_server;", "; server_name a.example; if ($x) { return 403; }"], "_+* a.example!"),
        (
            ["; server_name b.example;", "default_server; server_name a.example; return 444;"],
            "b.example+ a.example!*",
        ),
        // The first of both has the name.
        (
            [
                "default_server; server_name a.example; return 444;",
                "; server_name a.example *.example;",
            ],
            "a.example!* **.example+",
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
        (
            ["default_server;", "; server_name *.example; allow 10.0.0.0/8; deny all;"],
            "_+* **.example?",
        ),
        (
            [
                "default_server; server_name b.example *.a.example;",
                "; server_name *.example; allow 10.0.0.0/8; deny all;",
            ],
            "b.example+**.a.example+* **.example?",
        ),
        (
            [
                "default_server; server_name b.example;",
                "; server_name *.example ~^b; allow 10.0.0.0/8; deny all;",
            ],
            "b.example+* **.example?~^b?",
        ),
        (["default_server;", "; server_name *.example; auth_request /x;"], "_+* **.example?"),
        (
            [
                "default_server; server_name b.example;",
                "; server_name ~^(?=a); allow 10.0.0.0/8; deny all;",
            ],
            "b.example+",
        ),
        (
            [
                "default_server; server_name b.example;",
                "; server_name b.* ~^a(?<n>[0-9]+)$ a.example; deny 10.0.0.0/8;",
            ],
            "b.example+* b.*?~^a(?<n>[0-9]+)$?a.example?",
        ),
        (
            [
                "default_server; return 301 https://b.example$request_uri;",
                "; server_name *.example a.*; deny all;",
            ],
            "_+* **.example!a.*!",
        ),
    ] {
        assert_eq!(left(servers), expected, "{servers:?}");
    }
}

/// Returns what is made of two servers that pass requests on, by name.
fn left(servers: [&str; 2]) -> String {
    let certificate = "ssl_certificate c.pem; ssl_certificate_key c.key;";
    let pass = "location / { proxy_pass http://10.0.0.1; }";
    let [first, other] = servers.map(|it| format!("server {{ listen 443 ssl {it} {pass} }}"));
    let made = imported(&format!("http {{ {certificate} {first} {other} }}"));
    made.config().map(|config| names(&config)).unwrap_or_default()
}

pub fn names(config: &Config) -> String {
    let all = config.sites.iter().enumerate().map(|(number, site)| {
        let route = site.routes.first().unwrap();
        let is_closed =
            route.backend.is_none() && route.redirects.is_empty() || !site.before.is_empty();
        let is_guarded =
            !route.allow.is_empty() || !route.deny.is_empty() || route.forward_auth.is_some();
        let sign = match (is_closed, !is_guarded) {
            (true, _) => "!",
            (false, true) => "+",
            (false, false) => "?",
        };
        let default = if config.default_site() == Some(number) { "*" } else { "" };
        let names = site.names.iter().map(|name| name.value.clone() + sign);
        names.collect::<String>() + default
    });
    all.collect::<Vec<_>>().join(" ")
}

/// A server that refuses handshakes has no certificate to show.
#[test]
fn a_refused_name_without_a_certificate_gets_one_made_here() {
    let reject = "server { listen 443 ssl; server_name a.example; ssl_reject_handshake on; }";
    let text = server("root /srv;").replace("http {", &format!("http {{ {reject}"));
    let config = config(&text.replace("443 ssl; ssl_c", "443 ssl default_server; ssl_c"));
    assert_eq!(config.sites.iter().map(|it| it.self_signed).collect::<Vec<_>>(), [true, false]);
}

/// Servers by what they listen on, and the names that are served on each address.
#[test]
fn a_server_answers_where_it_listens_and_nowhere_else() {
    let certificate = "ssl_certificate c.pem; ssl_certificate_key c.key; root /srv;";
    for (servers, expected) in [
        (["listen 443 ssl;", "listen 8443 ssl;"], "443: a* 8443: b*"),
        (["listen 443 ssl;", "listen 443 ssl; listen 8443 ssl;"], "443: a* b 8443: b*"),
        (["listen 443 ssl; listen 80;", "listen 80;"], "443: a* 80: a* b"),
        (["listen 80;", "listen 443 ssl;"], "80: a b* 443: b*"),
        (["listen 80;", "listen 8080;"], "80: a* 8080: b*"),
        (["listen 80;", "listen 80 default_server;"], "80: a b*"),
    ] {
        let blocks = servers.iter().zip(["a", "b"]).map(|(listen, name)| {
            format!("server {{ {listen} server_name {name}.example; {certificate} }}\n")
        });
        let config = config(&format!("http {{ {} }}", blocks.collect::<String>()));
        assert_eq!(served(&config), expected, "{servers:?}");
    }
}

/// Two servers of one name, on the same address and on others.
#[test]
fn of_two_servers_of_one_name_each_answers_on_its_own_address() {
    let certificate = "ssl_certificate c.pem; ssl_certificate_key c.key; root /srv;";
    for (servers, expected) in [
        (["listen 80;", "listen 443 ssl;"], "80: a* 443: a*"),
        (["listen 80;", "listen 80; listen 443 ssl;"], "80: a* 443: a*"),
        (["listen 80;", "listen 8080;"], "80: a server-0.invalid* 8080: a server-1.invalid*"),
        (
            ["listen 443 ssl;", "listen 8443 ssl;"],
            "443: a server-0.invalid* 8443: a server-1.invalid*",
        ),
    ] {
        let blocks =
            servers.map(|it| format!("server {{ {it} server_name a.example; {certificate} }}"));
        let config = config(&format!("http {{ {} }}", blocks.concat()));
        assert_eq!(served(&config), expected, "{servers:?}");
    }
}

/// The names of the sites that each listener serves, with `*` behind the default one.
pub fn served(config: &Config) -> String {
    let reach = kettle_config::Reach::of(config);
    let of_listener = |listener: &kettle_config::Listener| {
        let default = reach.served_default(listener).map(|(number, _)| number);
        let sites = reach.served(listener).into_iter().map(|(number, site)| {
            let names: Vec<&str> =
                site.names.iter().map(|it| it.value.trim_end_matches(".example")).collect();
            let star = if default == Some(number) { "*" } else { "" };
            format!(" {}{star}", names.join(" "))
        });
        let kind = listener.kind.as_str();
        let sites = if kind == "redirect" { " redirect".to_owned() } else { sites.collect() };
        format!("{}:{sites}", listener.address.port().unwrap())
    };
    config.listeners.iter().map(of_listener).collect::<Vec<_>>().join(" ")
}

/// Entries of a map, and the backend of its listener and the sites beside it; nothing where the server is left out.
#[test]
fn a_stream_without_one_of_its_names_has_no_default() {
    for (entries, expected) in [
        ("default 10.0.0.1:1; a.example 10.0.0.2:1;", "10.0.0.1:1 a.example"),
        ("default 10.0.0.1:1; a.example \"\"; b.example 10.0.0.2:1;", "- b.example"),
        ("default 10.0.0.1:1; ~^a 10.0.0.3:1; b.example 10.0.0.2:1;", "- b.example"),
        ("default 10.0.0.1:1; a.example $x; b.example 10.0.0.2:1;", "- b.example"),
        ("hostnames; default 10.0.0.1:1; *.example 10.0.0.2:1;", "10.0.0.1:1 **.example"),
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
fn what_is_refused_all_over_is_so_here() {
    let made = imported(&server("return 444; server_name a.example;"));
    assert!(made.toml.contains("respond = { close = true }"), "{}", made.toml);
    made.config().unwrap();
}

/// A directive that holds for all may be said in another file.
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

/// One site answers for all other names by TLS, and elsewhere listeners name theirs.
#[test]
fn one_default_serves_no_more_than_that_of_each_address() {
    let certificate = "ssl_certificate c.pem; ssl_certificate_key c.key; root /srv;";
    let one = |name: &str, ports: [&str; 2]| {
        let [here, there] = ports;
        format!(
            "server {{ listen {here} ssl default_server; listen {there} ssl; server_name {name}; {certificate} }}"
        )
    };
    for (text, expected) in [
        (
            one("a.example", ["443", "8443"]) + &one("b.example", ["8443", "443"]),
            "443: a* b 8443: a b*",
        ),
        (
            one("a.example", ["443", "8443"]) + &one("b.example", ["8444", "443"]),
            "443: a* b 8443: a* 8444: b*",
        ),
    ] {
        assert_eq!(served(&config(&format!("http {{ {text} }}"))), expected, "{text}");
    }
}

/// If nginx refuses all handshakes of a socket, no site of another one answers.
#[test]
fn nobody_listens_where_all_handshakes_are_refused() {
    let certificate = "ssl_certificate c.pem; ssl_certificate_key c.key; root /srv;";
    let refused = "server { listen 8443 ssl; ssl_reject_handshake on; }";
    let other = format!("server {{ listen 443 ssl; server_name a.example; {certificate} }}");
    let made = imported(&format!("http {{ {refused} {other} }}"));
    let addresses = made.config().unwrap().listeners;
    let addresses: Vec<String> = addresses.iter().map(|it| it.address.to_string()).collect();
    assert_eq!(addresses, ["0.0.0.0:443"], "{}", made.toml);
    let default = "server { listen 443 ssl default_server; ssl_reject_handshake on; }";
    for (others, refuses) in [(default, true), (refused, false)] {
        let config = config(&format!("http {{ {others} {other} }}"));
        let https = config.listeners[0].https().unwrap();
        assert_eq!(https.unknown_names == UnknownNames::Refuse, refuses, "{others}");
        assert_eq!((config.sites.len(), config.sites[0].default), (1, false), "{others}");
    }
}

/// Servers with their listeners, and the names of the sites that are left.
#[test]
fn sites_are_reached_where_their_servers_were() {
    let certificate = "ssl_certificate c; ssl_certificate_key k; root /r;";
    for (servers, sites, listeners) in [
        (&["listen 443 ssl;", "listen 443 ssl;"][..], "a b", 1),
        (&["listen 443 ssl;", "listen 127.0.0.1:443 ssl;"], "a b", 2),
        // An address that the machine does not have.
        (&["listen 443 ssl;", "listen 203.0.113.1:443 ssl;"], "a", 1),
        (&["listen 80;", "listen 203.0.113.1:443 ssl;"], "a b", 2),
        (&["listen 443 ssl;", "listen 443 ssl;", "listen 127.0.0.1:8443 ssl;"], "a b c", 2),
        (&["listen 443 ssl; listen 8443 ssl;", "listen 443 ssl;"], "a b", 2),
        (&["listen 443 ssl;", "listen [::]:443 ssl;"], "a b", 2),
        (&["listen 443 ssl;", "listen 80;"], "a b", 2),
        (&["listen 443 ssl; listen 80;", "listen 127.0.0.1:80;"], "a b", 3),
        (&["listen 127.0.0.1:80;", "listen 443 ssl; listen 80;"], "a b", 3),
        (&["listen 443 ssl; listen 80;", "listen [::1]:80;"], "a b", 3),
        (&["listen 443 ssl;", "listen 127.0.0.1:443;"], "a b", 2),
        (&["listen 443 ssl;", "listen unix:/run/b.sock;"], "a b", 2),
    ] {
        let names = ["a", "b", "c"];
        let blocks = servers.iter().zip(names).map(|(listen, name)| {
            format!("server {{ {listen} server_name {name}; {certificate} }}\n")
        });
        let text = format!("http {{ {} }}", blocks.collect::<String>());
        let config = config(&text);
        let left: Vec<&str> = config.sites.iter().map(|it| it.names[0].value.as_str()).collect();
        assert_eq!((left.join(" ").as_str(), config.listeners.len()), (sites, listeners), "{text}");
    }
}

/// Else who connects to it would meet the sites of the wider address.
#[test]
fn a_narrower_address_is_listened_on_though_nobody_answers_there_by_name() {
    let narrow = "listen 127.0.0.1:80; root /srv;";
    let text = format!(
        "http {{ server {{ listen 80; server_name a; root /srv; }} server {{ {narrow} }} \
         server {{ {narrow} server_name ~(?<!x)y; deny all; }} }}"
    );
    let config = config(&text);
    let listener = &config.listeners[1];
    assert_eq!(listener.address.to_string(), "127.0.0.1:80");
    let sites: Vec<&str> =
        listener.http().unwrap().sites.iter().map(|it| it.value.as_str()).collect();
    assert_eq!(sites, ["server-1.invalid"]);
}

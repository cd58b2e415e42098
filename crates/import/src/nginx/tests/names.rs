//! Servers and the sites that they become: which of them answers for a name, and who is asked for what.

use kettle_config::UnknownNames;

use super::shown::routes;
use super::*;

/// Sites by name: `+` behind those of an open one, `?` of a guarded one, `!` of one that refuses all, and `*` behind the default.
pub fn names(config: &Config) -> String {
    let all = config.sites.iter().enumerate().filter_map(|(number, site)| {
        let route = site.routes.first()?;
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
        Some(names.collect::<String>() + default)
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
        let port = listener.address.port().map_or("unix".to_owned(), |it| it.to_string());
        format!("{port}:{sites}")
    };
    config.listeners.iter().map(of_listener).collect::<Vec<_>>().join(" ")
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

#[test]
fn a_name_is_not_free_when_its_first_server_is_closed() {
    let certificate = "listen 443 ssl; ssl_certificate c; ssl_certificate_key k; root /r;";
    let text = format!(
        "http {{ server {{ server_name a b; {certificate} auth_request /x; }} \
         server {{ server_name a c; {certificate} }} }}"
    );
    let config = config(&text);
    let names: Vec<Vec<&str>> = config
        .sites
        .iter()
        .map(|site| site.names.iter().map(|it| it.value.as_str()).collect())
        .collect();
    assert_eq!(names, [vec!["a", "b"], vec!["c"]]);
    assert_eq!(routes(&config), "/! /");
}

/// Certificates are asked for by TLS alone, in nginx as well.
#[test]
fn a_site_that_asks_for_certificates_is_two_where_it_is_served_without_tls() {
    let words = "listen 80; server_name a.example; root /srv; ssl_verify_client on; ssl_client_certificate r;";
    let config = config(&server(words));
    assert_eq!(served(&config), "443: a* 80: a*");
    assert_eq!(
        config.sites.iter().map(|it| it.client_auth.is_some()).collect::<Vec<_>>(),
        [true, false]
    );
}

/// Sockets are shared by all servers on an address, and so is what is said of them.
#[test]
fn a_client_that_another_server_finds_by_a_proxy_is_not_known() {
    let text = server("root /srv; deny 1.2.3.4;");
    assert!(!config(&text).sites[0].routes[0].deny.is_empty());
    for port in [443, 444] {
        let other = format!(
            "server {{ listen {port} ssl proxy_protocol; ssl_certificate c; ssl_certificate_key k; \
             set_real_ip_from 10.0.0.1; real_ip_header proxy_protocol; server_name b.example; }}"
        );
        let made = imported(&text.replace("http {", &format!("http {{ {other}")));
        let sites = made.config().map(|config| config.sites).unwrap_or_default();
        let mut routes = sites.iter().flat_map(|it| &it.routes);
        assert!(routes.all(|it| it.root.is_none()), "{port}\n{}", made.toml);
    }
}

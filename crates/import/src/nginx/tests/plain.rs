//! Servers without TLS: sites on a listener of their own, or a redirect where that is all they are.

use super::names::served;
use super::shown::routes;
use super::*;

/// The text of a server without TLS beside its names, beside one with TLS; what is served on each address, and its routes.
#[test]
fn what_leads_to_https_is_a_redirect_and_all_else_a_site() {
    let whole = "return 301 https://$host$request_uri;";
    for (words, expected) in [
        (whole.to_owned(), "80: redirect"),
        ("return 308 https://$host:8443$uri$is_args$args;".to_owned(), "80: redirect"),
        ("rewrite ^ https://$host$request_uri? permanent;".to_owned(), "80: redirect"),
        ("rewrite ^/(.*)$ https://$host/$1 permanent;".to_owned(), "80: redirect"),
        ("rewrite ^(.*)$ https://$host$1;".to_owned(), "80: redirect"),
        (format!("location / {{ {whole} }}"), "80: redirect"),
        (format!("location /x/ {{ expires 1h; }} {whole}"), "80: redirect"),
        (format!("if ($host = a.example) {{ {whole} }} return 404;"), "80: a* |{1}->301 /:404"),
        (format!("location /x/ {{ root /x; }} location / {{ {whole} }}"), "80: a* /x/* /->301"),
        ("return 301 https://$host/welcome;".to_owned(), "80: a* /->301"),
        ("return 301 https://$host$uri;".to_owned(), "80: a* /->301"),
        ("return 301 https://a.example$request_uri;".to_owned(), "80: a* /->301"),
        ("return 301 https://$hostname$request_uri;".to_owned(), "80: a* /!"),
        ("return 303 https://$host$request_uri;".to_owned(), "80: a* /->303"),
        (format!("rewrite ^/old$ /new permanent; {whole}"), "80: a* |(^/old$)->301 /->301"),
        (format!("if ($host = x) {{ return 444; }} {whole}"), "80: a* |{1}:closed /->301"),
        ("root /srv;".to_owned(), "80: a* /"),
    ] {
        let plain = format!("server {{ listen 80; server_name a.example; {words} }}");
        let config = config(&format!("http {{ {plain} }}"));
        let found = format!("{} {}", served(&config), routes(&config));
        assert_eq!(found.trim_end(), expected, "{words}");
    }
}

/// A scheme that both have is asked for.
#[test]
fn a_scheme_that_is_known_is_written_and_another_is_asked() {
    let certificate = "ssl_certificate c; ssl_certificate_key k;";
    let text = |listen: &str| {
        format!(
            "http {{ server {{ {listen} {certificate} return 301 $scheme://b.example$request_uri; }} }}"
        )
    };
    for (listen, expected) in [
        ("listen 443 ssl;", "/->301"),
        ("listen 80;", "/->301"),
        ("listen 443 ssl; listen 80;", "|{1}->301 /->301"),
    ] {
        let found = routes(&config(&text(listen)));
        assert_eq!(found, expected, "{listen}");
    }
    assert!(imported(&text("listen 80;")).toml.contains("to = \"http://b.example{path}\""));
}

#[test]
fn servers_that_lead_to_two_ports_are_two_sites() {
    let plain = |name: &str, port: &str| {
        format!(
            "server {{ listen 80; server_name {name}; return 301 https://$host{port}$request_uri; }}"
        )
    };
    let one = plain("a.example", "") + &plain("b.example", "");
    assert_eq!(served(&config(&format!("http {{ {one} }}"))), "80: redirect");
    let two = plain("a.example", "") + &plain("b.example", ":8443");
    assert_eq!(served(&config(&format!("http {{ {two} }}"))), "80: a* b");
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

#[test]
fn a_unix_socket_is_listened_on() {
    let text = "http { server { listen unix:/run/a.sock proxy_protocol; server_name a.example; root /srv; } }";
    let made = imported(text);
    let told = "address = \"unix:/run/a.sock\"\nmode = \"0666\"\nkind = \"http\"\nsites = [\"a.example\", \"_\"]\naccept_proxy = [\"unix:\"]\n";
    assert!(made.toml.contains(told), "{}", made.toml);
    made.config().unwrap();
}

/// nginx goes on from a folder to its index, asks what a server says of that, and looks for no index behind it. So does kettle, but for
/// what rewrites the index.
#[test]
fn a_folder_whose_index_leads_elsewhere_shows_neither_it_nor_a_list() {
    for (words, left) in [
        ("location ~ \\.html$ { return 301 /a.txt; }", Some("index.html b.htm")),
        ("rewrite ^/(.*)\\.html$ /$1 permanent;", Some("index.html b.htm")),
        ("rewrite ^/(.*)\\.html$ /a.txt permanent;", Some("index.html b.htm")),
        ("rewrite ^/(.*)\\.html$ /a.txt;", None),
        ("rewrite ^/(.*)\\.htm$ /a.txt;", Some("index.html")),
    ] {
        let text = format!("root /srv; autoindex on; index index.html b.htm; {words}");
        let whole = config(&server(&text)).sites.remove(0).routes.pop().unwrap();
        assert_eq!(whole.index.join(" "), left.unwrap_or_default(), "{words}");
        assert_eq!(whole.listing, whole.index.len() == 2, "{words}");
    }
}

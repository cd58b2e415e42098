//! The texts of servers of a stream and of their backends, value by value.

use super::*;

/// A stream with these words, and with one server that passes on to `db`.
fn passing(words: &str, server: &str, upstream: &str) -> Imported {
    imported(&format!(
        "stream {{ {words} upstream db {{ {upstream} }} server {{ listen 9; {server} proxy_pass db; }} }}"
    ))
}

#[test]
fn a_server_of_a_stream_that_would_ask_for_less_is_left_out() {
    let tls = "ssl_certificate c; ssl_certificate_key k; ssl_client_certificate a;";
    for (words, listeners) in [
        ("ssl_verify_client on;", 1),
        ("ssl_verify_client on; ssl_ocsp on;", 0),
        ("ssl_verify_client off; ssl_ocsp on;", 1),
        ("proxy_ssl on; proxy_ssl_verify on; proxy_ssl_crl r;", 0),
        // nginx does not look at it then.
        ("proxy_ssl_verify on; proxy_ssl_crl r;", 1),
    ] {
        let made = imported(&format!(
            "stream {{ server {{ listen 9 ssl; {tls} {words} proxy_pass 10.0.0.1:5; }} \
             server {{ listen 8; proxy_pass 10.0.0.1:5; }} }}"
        ));
        let found = made.config().unwrap().listeners.len();
        assert_eq!(found, listeners + 1, "{words}\n{}", made.toml);
    }
}

/// nginx takes one authority where nothing is said.
#[test]
fn chains_of_clients_are_as_long_as_nginx_takes_them() {
    let asked = "ssl_verify_client on; ssl_client_certificate a;";
    for (words, depth) in [
        ("", Some(1)),
        ("ssl_verify_depth 0;", Some(0)),
        ("ssl_verify_depth 1;", Some(1)),
        ("ssl_verify_depth 2;", Some(2)),
        ("ssl_verify_depth 9;", None),
    ] {
        let config = config(&server(&format!("root /srv; {asked} {words}")));
        assert_eq!(config.sites[0].client_auth.as_ref().unwrap().depth, depth, "{words}");
    }
    let made =
        server(&format!("root /srv; {asked} ssl_ocsp on;").replace("client on", "client optional"));
    let made = imported(&made);
    assert!(made.config().unwrap().sites[0].client_auth.is_none(), "{}", made.toml);
    assert!(made.toml.contains("nobody is asked for a certificate because of `ssl_ocsp on`"));
}

#[test]
fn a_stream_takes_the_proxy_protocol_where_nginx_does() {
    for (words, takes) in [("", false), (" proxy_protocol", true)] {
        let text = format!("stream {{ server {{ listen 9{words}; proxy_pass 10.0.0.1:5; }} }}");
        assert_eq!(imported(&text).toml.contains("accept_proxy"), takes, "{words}");
    }
}

#[test]
fn entries_of_a_map_are_names_of_clients_or_told_of() {
    for (variable, entries, sites, told) in [
        ("ssl_preread_server_name", "a.example 10.0.0.1:5;", 1, ""),
        ("ssl_preread_server_name", "a.example 10.0.0.1:5; default \"\";", 1, ""),
        ("ssl_preread_server_name", "a.example 10.0.0.1:5; \"\" 10.0.0.1:6;", 1, "write each name"),
        ("ssl_preread_server_name", "a.example 10.0.0.1:5; ~b 10.0.0.1:6;", 1, "write each name"),
        ("server_port", "9 10.0.0.1:5;", 0, "no map tells what that stands for by name"),
    ] {
        let made = imported(&format!(
            "stream {{ map ${variable} $to {{ {entries} }} \
             server {{ listen 9; ssl_preread on; proxy_pass $to; }} \
             server {{ listen 8; proxy_pass 10.0.0.1:5; }} }}"
        ));
        assert_eq!(made.config().unwrap().sites.len(), sites, "{entries}\n{}", made.toml);
        let is_told = made.toml.contains("is not carried over");
        assert_eq!(is_told, !told.is_empty(), "{entries}\n{}", made.toml);
        assert!(made.toml.contains(told), "{entries}\n{}", made.toml);
    }
}

#[test]
fn numbers_of_servers_are_kept_within_bounds() {
    for (options, settings) in [
        ("", ["fails = 1\n", "fail_time = \"10s\"\n", ""]),
        ("max_fails=5000 fail_timeout=0", ["fails = 1000\n", "fail_time = \"1s\"\n", ""]),
        ("max_fails=0 fail_timeout=2h", ["fails = 0\n", "fail_time = \"3600s\"\n", ""]),
        ("weight=5000", ["weight = 1000\n", "", ""]),
        ("weight=7 max_conns=7 backup", ["weight = 7\n", "connections = 7\n", "backup = true\n"]),
        ("max_conns=5000000", ["connections = 1000000\n", "", ""]),
    ] {
        let made = passing("", "", &format!("server 10.0.0.1:5 {options};"));
        for setting in settings {
            assert!(made.toml.contains(setting), "{options}: {setting}\n{}", made.toml);
        }
        assert!(!made.toml.contains("is not carried over"), "{options}\n{}", made.toml);
    }
    let unlimited = passing("", "", "server 10.0.0.1:5 max_conns=0;").toml;
    assert!(!unlimited.contains("connections =") && !unlimited.contains("not carried over"));
}

#[test]
fn what_holds_for_a_whole_backend_is_told_where_servers_differ() {
    for (one, other, is_told) in [
        ("max_fails=2 fail_timeout=5s", "max_fails=2 fail_timeout=5s", false),
        ("max_fails=2", "max_fails=3", true),
        ("fail_timeout=5s", "fail_timeout=6s", true),
        ("", "fail_timeout=6s", true),
    ] {
        let made = passing("", "", &format!("server 10.0.0.1:5 {one}; server 10.0.0.2:5 {other};"));
        let told = made.toml.contains("are those of the first server");
        assert_eq!(told, is_told, "{one} {other}\n{}", made.toml);
    }
}

#[test]
fn a_hash_of_another_thing_than_the_address_is_told_of() {
    for (by, is_told) in [("$remote_addr", false), ("$binary_remote_addr", false), ("$x", true)] {
        let made = passing("", "", &format!("hash {by}; server 10.0.0.1:5;"));
        assert!(made.toml.contains("balance = \"source-hash\""), "{by}\n{}", made.toml);
        assert_eq!(made.toml.contains("is not carried over as it is"), is_told, "{by}");
    }
}

#[test]
fn a_hash_of_a_request_goes_by_the_same_words() {
    for (by, balance, hash) in [
        ("$request_uri consistent", "hash", Some("{asked_uri}")),
        ("$scheme$host", "hash", Some("{scheme}{host}")),
        ("$cookie_a", "hash", Some("{cookie:a}")),
        ("$remote_addr", "source-hash", None),
        ("$x", "source-hash", None),
        ("$uri$upstream_http_x", "source-hash", None),
        ("$status", "source-hash", None),
    ] {
        let text = format!(
            "http {{ upstream u {{ hash {by}; server 10.0.0.1:5; }} server {{ listen 80; location / {{ proxy_pass http://u; }} }} }}"
        );
        let made = from(&text).unwrap();
        assert!(made.toml.contains(&format!("balance = \"{balance}\"")), "{by}\n{}", made.toml);
        let found = made.toml.lines().find_map(|line| line.strip_prefix("hash = "));
        assert_eq!(found, hash.map(|it| format!("\"{it}\"")).as_deref(), "{by}");
        let is_told = hash.is_none() && by != "$remote_addr";
        assert_eq!(made.toml.contains("is not carried over as it is"), is_told, "{by}");
    }
}

#[test]
fn ip_hash_goes_by_three_bytes_of_an_address() {
    let text = "http { upstream u { ip_hash; server 10.0.0.1:5; } server { listen 80; location / { proxy_pass http://u; } } }";
    let made = from(text).unwrap();
    assert!(made.toml.contains("balance = \"network-hash\""), "{}", made.toml);
}

/// Whose certificate a server has to show.
#[test]
fn a_server_shows_the_certificate_of_a_name_and_of_no_address() {
    for (words, pass, name) in [
        ("", "a.example:5", Some("a.example")),
        ("", "10.0.0.1:5", None),
        ("", "[::1]:5", None),
        ("", "unix:/run/a:b", None),
        ("proxy_ssl_name b.example:5;", "a.example:5", Some("b.example")),
        ("proxy_ssl_name $proxy_host;", "a.example:5", Some("a.example")),
    ] {
        let made = imported(&format!(
            "stream {{ server {{ listen 9; proxy_ssl on; proxy_ssl_verify on; {words} proxy_pass {pass}; }} }}"
        ));
        let (_, tls) = made.toml.split_once("[backend.tls]").unwrap();
        let found = tls.lines().find_map(|line| line.strip_prefix("name = "));
        assert_eq!(found, name.map(|it| format!("\"{it}\"")).as_deref(), "{words} {pass}");
        assert!(!made.toml.contains("is not carried over"), "{words}\n{}", made.toml);
    }
}

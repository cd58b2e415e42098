//! Servers that lead elsewhere: what a listener for plain HTTP does not do is told, and who leads everybody away may answer
//! for every name.

use super::*;

/// What a server without TLS says beside its names, and what is said of it; nothing where a listener does the same.
#[test]
fn what_plain_http_does_not_do_is_told() {
    let whole = "return 301 https://$host$request_uri;";
    let alone = "speaks plain HTTP, and is left out";
    for (words, expected) in [
        (whole.to_owned(), ""),
        ("return 301 https://$host:8443$uri$is_args$args;".to_owned(), ""),
        ("return 301 https://${http_host}$request_uri;".to_owned(), ""),
        ("rewrite ^ https://$host$request_uri? permanent;".to_owned(), ""),
        ("rewrite ^/(.*)$ https://$host/$1 permanent;".to_owned(), ""),
        ("rewrite ^(.*)$ https://$host$1;".to_owned(), ""),
        (format!("if ($host = a.example) {{ {whole} }} return 404;"), ""),
        (format!("location / {{ {whole} }}"), ""),
        (format!("location /x/ {{ {whole} }} location / {{ {whole} }}"), ""),
        ("return 301 https://$host/welcome;".to_owned(), "as it is; plain HTTP leads to the path"),
        ("return 301 https://$host;".to_owned(), "as it is; plain HTTP leads to the path"),
        ("return 301 https://$host$uri;".to_owned(), "as it is; plain HTTP leads to the path"),
        ("return 301 https://$host/a$request_uri;".to_owned(), "as it is; plain HTTP leads"),
        ("rewrite ^ https://$host/x?a=$1 permanent;".to_owned(), "as it is; plain HTTP leads"),
        ("rewrite ^/(.*)$ https://$host/x/$1 permanent;".to_owned(), "as it is; plain HTTP leads"),
        ("rewrite ^/(.*)$ https://$host/$1? permanent;".to_owned(), "as it is; plain HTTP leads"),
        ("return 301 https://a.example$request_uri;".to_owned(), "not sent to a.example"),
        ("return 301 https://www.$host$request_uri;".to_owned(), "not sent to www.$host"),
        ("return 301 https://$hostname$request_uri;".to_owned(), "not sent to $hostname"),
        ("return 301 https://$server_name$request_uri;".to_owned(), "not sent to a.example"),
        ("root /srv; rewrite ^/old$ https://a.example/new permanent;".to_owned(), alone),
        ("root /srv; location = / { return 301 https://$host/home; }".to_owned(), alone),
        (
            format!("rewrite ^/old$ /new permanent; {whole}"),
            "`rewrite ^/old$ /new permanent` is not",
        ),
        (
            format!("if ($host = x) {{ return 444; }} {whole}"),
            "`if ($host = x)` is not carried over",
        ),
        (
            format!("location /old/ {{ return 301 https://$host/new/; }} location / {{ {whole} }}"),
            "`location /old/` is not carried over",
        ),
    ] {
        let plain = format!("server {{ listen 80; server_name a.example b.example; {words} }}");
        let text = server("server_name a.example b.example; root /srv;");
        let made = imported(&text.replacen("http {", &format!("http {{\n{plain}\n"), 1));
        let told = made.warnings.iter().filter(|it| it.line == 2).map(ToString::to_string);
        let told = told.collect::<Vec<_>>().join("\n");
        let has = made.toml.contains(expected);
        assert!(
            if expected.is_empty() { told.is_empty() } else { has },
            "{words}\n{told}\n{}",
            made.toml
        );
        made.config().unwrap();
    }
}

#[test]
fn servers_that_lead_to_two_ports_are_told() {
    let plain = |name: &str, port: &str| {
        format!(
            "server {{ listen 80; server_name {name}; return 301 https://$host{port}$request_uri; }}"
        )
    };
    let both = plain("a.example", "") + &plain("b.example", ":8443");
    let text = server("server_name a.example b.example; root /srv;");
    let made = imported(&text.replacen("http {", &format!("http {{ {both}"), 1));
    assert!(made.toml.contains("all names on one address are led to port 443"), "{}", made.toml);
}

/// What the default server says, and whether it answers for names that another one refuses and no site can have.
#[test]
fn only_a_server_that_leads_everybody_away_answers_for_all_names() {
    for (words, expected) in [
        ("return 301 https://b.example$request_uri;", true),
        ("rewrite ^ https://b.example/ permanent;", true),
        ("root /srv; rewrite ^/old$ https://b.example/new permanent;", false),
        ("root /srv; rewrite ^/a/(.*)$ https://b.example/$1 permanent;", false),
        ("root /srv; location / { return 301 https://b.example/; }", false),
        ("root /srv;", false),
    ] {
        let text = server(&format!("server_name a.example; {words}"));
        let guarded =
            "server { listen 443 ssl; server_name ~^(?<u>.+)\\.priv$; root /srv; deny all; }";
        let text = text.strip_suffix('}').unwrap().to_owned() + guarded + "}";
        let made = imported(&text);
        assert_eq!(made.toml.contains("default = true"), expected, "{words}\n{}", made.toml);
        made.config().unwrap();
    }
}

/// nginx goes on from a folder to its index, and to where that leads.
#[test]
fn a_folder_whose_index_leads_elsewhere_shows_neither_it_nor_a_list() {
    for (words, has_index) in [
        ("location = /index.html { rewrite ^ /a.txt break; }", false),
        ("location ~ \\.html$ { return 301 /a.txt; }", false),
        ("location ~ ^/(.*)\\.html$ { return 301 /$1; }", true),
    ] {
        let made = imported(&server(&format!("root /srv; autoindex on; {words}")));
        assert_eq!(!made.toml.contains("index = []"), has_index, "{words}\n{}", made.toml);
        assert_eq!(made.toml.contains("listing = true"), has_index, "{words}\n{}", made.toml);
    }
}

/// nginx looks for no index behind one that is there, and follows the rule from that.
#[test]
fn no_index_answers_behind_one_that_a_rule_leads_away_from() {
    for (index, left) in [
        ("a.txt index.html", ""),
        ("b.htm a.txt index.html", "b.htm"),
        ("index.html a.txt", "index.html"),
        ("index.html b.htm", "index.html b.htm"),
    ] {
        let rule = "location ~* \\.txt$ { return 301 /x; }";
        let text = server(&format!("root /srv; index {index}; {rule}"));
        assert_eq!(config(&text).sites[0].routes[0].index.join(" "), left, "{index}");
    }
}

//! Settings that contradict, repeat or need each other.

use crate::{Row, assert_found};

#[test]
fn something_must_listen_and_answer() {
    assert_found(SOMETHING_MUST_LISTEN_AND_ANSWER);
}

const SOMETHING_MUST_LISTEN_AND_ANSWER: &[Row] = &[
    (
        "#alone
",
        r#"kettle.toml:1:1: no listener is declared, so nothing could connect
help: write [[listener]] with address = "0.0.0.0:443""#,
    ),
    (
        r#"#alone
[[listener]]
address = "0.0.0.0:443""#,
        r#"kettle.toml:1:1: no site is declared, so no request could be answered
help: write [[site]] with names = ["example.org"]"#,
    ),
    (
        r#"#alone
[[site]]
names = ["a"]
self_signed = true
[[site.route]]
root = "/srv"
"#,
        r#"kettle.toml:1:1: no listener is declared, so nothing could connect
help: write [[listener]] with address = "0.0.0.0:443""#,
    ),
];

#[test]
fn listeners_do_not_collide() {
    assert_found(LISTENERS_DO_NOT_COLLIDE);
}

const LISTENERS_DO_NOT_COLLIDE: &[Row] = &[
    (
        r#"[[listener]]
address = "0.0.0.0:443"
[[listener]]
address = "[::]:443"
[[listener]]
address = "0.0.0.0:443""#,
        r#"kettle.toml:6:11: line 2 listens on 0.0.0.0:443 already
 6 | address = "0.0.0.0:443"
   |           ^^^^^^^^^^^^^
help: remove one of both, or write another port"#,
    ),
    (
        r#"[metrics]
listen = "127.0.0.1:443"
[[listener]]
address = "127.0.0.1:443""#,
        r#"kettle.toml:2:10: line 4 listens on 127.0.0.1:443 already
 2 | listen = "127.0.0.1:443"
   |          ^^^^^^^^^^^^^^^
help: remove one of both, or write another port"#,
    ),
    (
        r#"[metrics]
listen = "[::1]:443"
[[listener]]
address = "[fe80::1%1]:443"
[[listener]]
address = "[fe80::1%2]:443"
[[listener]]
address = "127.0.0.1:443"
[[listener]]
address = "0.0.0.0:443"
[[listener]]
address = "0.0.0.0:444""#,
        r#"kettle.toml:10:11: line 8 listens on 127.0.0.1:443 already
 10 | address = "0.0.0.0:443"
    |           ^^^^^^^^^^^^^
help: remove one of both, or write another port"#,
    ),
];

#[test]
fn listener_settings_have_an_effect() {
    assert_found(LISTENER_SETTINGS_HAVE_AN_EFFECT);
}

const LISTENER_SETTINGS_HAVE_AN_EFFECT: &[Row] = &[
    (
        r#"[[listener]]
address = "0.0.0.0:443"
redirect_port = 8443
redirect_status = 301"#,
        r#"kettle.toml:3:17: only a [[listener]] with kind = "http" or "redirect" uses `redirect_port`
 3 | redirect_port = 8443
   |                 ^^^^
help: remove it here
kettle.toml:4:19: only a [[listener]] with kind = "http" or "redirect" uses `redirect_status`
 4 | redirect_status = 301
   |                   ^^^
help: remove it here"#,
    ),
    (
        r#"[[listener]]
address = "0.0.0.0:80"
kind = "redirect"
path = "user"
crossover = 0"#,
        r#"kettle.toml:4:8: only a [[listener]] with kind = "https" or "tls" or "tcp" uses `path`
 4 | path = "user"
   |        ^^^^^^
help: remove it here, or write it below [[site]]
kettle.toml:5:13: only a [[listener]] with kind = "https" or "tls" or "tcp" uses `crossover`
 5 | crossover = 0
   |             ^
help: remove it here"#,
    ),
    (
        r#"[[listener]]
address = "0.0.0.0:80"
kind = "redirct"
redirect_port = 8443"#,
        r#"kettle.toml:3:8: `kind` takes one of "https", "http", "redirect", "tls", "tcp", "passthrough"
 3 | kind = "redirct"
   |        ^^^^^^^^^
help: write "redirect""#,
    ),
    (
        r#"[[listener]]
address = "0.0.0.0:80"
kind = "redirect"
redirect_status = 200"#,
        "kettle.toml:4:19: `redirect_status` takes one of 301, 302, 307, 308
 4 | redirect_status = 200
   |                   ^^^
help: write 308",
    ),
];

#[test]
fn metrics_are_private() {
    assert_found(METRICS_ARE_PRIVATE);
}

const METRICS_ARE_PRIVATE: &[Row] = &[(
    r#"[metrics]
listen = "0.0.0.0:9443""#,
    r#"kettle.toml:2:10: other machines could read the metrics on 0.0.0.0:9443; set allow_remote = true if they should
 2 | listen = "0.0.0.0:9443"
   |          ^^^^^^^^^^^^^^
help: write "127.0.0.1:9443""#,
)];

#[test]
fn site_names_and_defaults_do_not_repeat() {
    assert_found(SITE_NAMES_AND_DEFAULTS_DO_NOT_REPEAT);
}

const SITE_NAMES_AND_DEFAULTS_DO_NOT_REPEAT: &[Row] = &[
    (
        r#"[[site]]
names = ["a"]
self_signed = true
[[site.route]]
root = "/srv"
[[site]]
names = ["A"]
self_signed = true
[[site.route]]
root = "/srv"
"#,
        r#"kettle.toml:7:10: the site on line 2 is named "a" already
 7 | names = ["A"]
   |          ^^^
help: remove one of both, or name each on listeners of its own, by `sites`"#,
    ),
    (
        r#"[[site]]
names = ["a"]
default = true
self_signed = true
[[site.route]]
root = "/srv"
[[site]]
names = ["b"]
default = true
self_signed = true
[[site.route]]
root = "/srv"
"#,
        "kettle.toml:9:11: line 3 makes another site the default; only one can be
 9 | default = true
   |           ^^^^
help: write false",
    ),
    (
        r#"[[site]]
names = ["_"]
self_signed = true
[[site.route]]
root = "/srv"
[[site]]
names = ["_"]
self_signed = true
[[site.route]]
root = "/srv"
"#,
        r#"kettle.toml:7:10: line 2 makes another site the default; only one can be
 7 | names = ["_"]
   |          ^^^
help: write the names of this site"#,
    ),
    (
        r#"[[site]]
names = ["a"]
default = true
self_signed = true
[[site.route]]
root = "/srv"
[[site]]
names = ["_"]
self_signed = true
[[site.route]]
root = "/srv"
"#,
        r#"kettle.toml:8:10: line 3 makes another site the default; only one can be
 8 | names = ["_"]
   |          ^^^
help: write the names of this site"#,
    ),
];

#[test]
fn sites_have_certificates_and_routes() {
    assert_found(SITES_HAVE_CERTIFICATES_AND_ROUTES);
}

const SITES_HAVE_CERTIFICATES_AND_ROUTES: &[Row] = &[
    (
        r#"[[site]]
names = ["a"]

[[site.route]]
root = "/srv"
"#,
        r#"kettle.toml:2:10: the site has no certificate and there is an https listener
 2 | names = ["a"]
   |          ^^^
help: write [[site.certificate]] with chain = "…" and key = "…", or self_signed = true for tests"#,
    ),
    (
        r#"[[site]]
names = ["a"]
self_signed = true"#,
        r#"kettle.toml:2:10: the site has no route, so every request would be not found
 2 | names = ["a"]
   |          ^^^
help: write [[site.route]] with root = "…""#,
    ),
    (
        r#"[[site]]
names = ["a"]
self_signed = true
certificate = [{ chain = "a", key = "b" }]
[[site.route]]
root = "/srv"
"#,
        "kettle.toml:3:15: the site has a certificate, so none is generated
 3 | self_signed = true
   |               ^^^^
help: write false",
    ),
    (
        r#"[[site]]
names = ["a"]
certificate = [{ chain = "a", key = "b" }, { chain = "a", key = "c" }]
[[site.route]]
root = "/srv"
"#,
        r#"kettle.toml:3:54: line 3 names this chain already
 3 | certificate = [{ chain = "a", key = "b" }, { chain = "a", key = "c" }]
   |                                                      ^^^
help: remove one of both certificates"#,
    ),
];

#[test]
fn route_prefixes_do_not_repeat() {
    assert_found(ROUTE_PREFIXES_DO_NOT_REPEAT);
}

const ROUTE_PREFIXES_DO_NOT_REPEAT: &[Row] = &[(
    r#"[[site]]
names = ["a"]
self_signed = true
[[site.route]]
root = "/srv"
[[site.route]]
root = "/b"
prefix = "/x"
[[site.route]]
root = "/b"
prefix = "/x/"
[[site.route]]
root = "/c""#,
    r#"kettle.toml:11:10: the route on line 8 has the same prefix
 11 | prefix = "/x/"
    |          ^^^^^
help: write another `prefix` for one of both
kettle.toml:12:1: the route on line 4 has the same prefix
 12 | [[site.route]]
    | ^^^^^^^^^^^^^^
help: write another `prefix` for one of both"#,
)];

#[test]
fn hsts_keeps_to_its_rules() {
    assert_found(HSTS_KEEPS_TO_ITS_RULES);
}

const HSTS_KEEPS_TO_ITS_RULES: &[Row] = &[
    (
        r#"[[site]]
names = ["a"]
self_signed = true
hsts = { preload = true, max_age = "1d" }
[[site.route]]
root = "/srv""#,
        r#"kettle.toml:4:20: preload needs include_subdomains as well
 4 | hsts = { preload = true, max_age = "1d" }
   |                    ^^^^
help: write include_subdomains = true in this table, or preload = false
kettle.toml:4:20: preload needs a max_age of at least a year
 4 | hsts = { preload = true, max_age = "1d" }
   |                    ^^^^
help: write max_age = "365d" in this table, or preload = false"#,
    ),
    (
        r#"[[site]]
names = ["a"]
self_signed = true
hsts = { }
headers = { strict-transport-security = "max-age=1" }
[[site.route]]
root = "/srv""#,
        "kettle.toml:4:8: Strict-Transport-Security is among the headers as well
 4 | hsts = { }
   |        ^^^
help: remove it from the headers",
    ),
];

#[test]
fn key_exchanges_fit_the_versions() {
    assert_found(KEY_EXCHANGES_FIT_THE_VERSIONS);
}

const KEY_EXCHANGES_FIT_THE_VERSIONS: &[Row] = &[
    (
        r#"[tls]
versions = ["tls1.2"]
groups = ["x25519mlkem768", "x25519"]"#,
        r#"kettle.toml:3:11: "x25519mlkem768" exists in TLS 1.3 only, which `versions` leaves out
 3 | groups = ["x25519mlkem768", "x25519"]
   |           ^^^^^^^^^^^^^^^^
help: write "x25519""#,
    ),
    (
        r#"[tls]
groups = ["x25519mlkem768"]"#,
        r#"kettle.toml:2:10: TLS 1.2 is offered but has none of these key exchanges
 2 | groups = ["x25519mlkem768"]
   |          ^^^^^^^^^^^^^^^^^^
help: write ["x25519mlkem768", "x25519"]"#,
    ),
];

#[test]
fn limits_fit_each_other() {
    assert_found(LIMITS_FIT_EACH_OTHER);
}

const LIMITS_FIT_EACH_OTHER: &[Row] = &[
    (
        r#"[limits]
hot_file = "2 MiB"
hot_memory = "1 MiB""#,
        r#"kettle.toml:2:12: `hot_file` must not be larger than all of `hot_memory`
 2 | hot_file = "2 MiB"
   |            ^^^^^^^
help: write "1 MiB""#,
    ),
    (
        r#"[limits]
head = "4 KiB""#,
        r#"kettle.toml:2:8: `target` must be smaller than `head`, of which it is a part
 2 | head = "4 KiB"
   |        ^^^^^^^
help: write "16 KiB""#,
    ),
    (
        r#"[limits]
target = "16 KiB""#,
        r#"kettle.toml:2:10: `target` must be smaller than `head`, of which it is a part
 2 | target = "16 KiB"
   |          ^^^^^^^^
help: write "8 KiB""#,
    ),
];

/// What is right at the edge of a rule, and what other rules have said already.
#[test]
fn what_is_allowed_is_not_found() {
    let site = "[[site]]\nnames = [\"a\"]\nself_signed = true\n[[site.route]]\nroot = \"/srv\"\n";
    let routes = |hsts: &str| {
        format!(
            "[[site]]\nnames = [\"a\"]\nself_signed = true\n{hsts}[[site.route]]\nroot = \"/srv\"\n"
        )
    };
    let redirect = "[[listener]]\naddress = \"0.0.0.0:80\"\nkind = \"redirect\"\n";
    for snippet in [
        "[limits]\nhot_memory = \"0 B\"\n".to_owned(),
        "[limits]\nhot_memory = \"1 MiB\"\n".to_owned(),
        "[limits]\nhot_memory = \"1 MiB\"\nhot_file = \"1 MiB\"\n".to_owned(),
        "[metrics]\nlisten = \"127.0.0.1:9443\"\n".to_owned(),
        "[metrics]\nlisten = \"0.0.0.0:9443\"\nallow_remote = true\n".to_owned(),
        "[metrics]\nlisten = \"127.0.0.1:9443\"\nallow_remote = true\n".to_owned(),
        "[tls]\nversions = [\"tls1.3\"]\ngroups = [\"x25519mlkem768\"]\n".to_owned(),
        "[tls]\nversions = [\"tls1.2\"]\ngroups = [\"x25519\"]\n".to_owned(),
        "[tls]\ngroups = [\"x25519mlkem768\", \"x25519\"]\n".to_owned(),
        format!("#alone\n{redirect}"),
        format!("#alone\n{redirect}[[site]]\nnames = [\"a\"]\n"),
        format!("#alone\n{redirect}{site}"),
        routes("hsts = { preload = true, include_subdomains = true, max_age = \"365d\" }\n"),
        routes("hsts = { max_age = \"1d\" }\n"),
        routes("hsts = { }\nheaders = { x-other = \"1\" }\n"),
        "[[site]]\nnames = [\"_\"]\nself_signed = true\nroute = [{ root = \"/a\" }]\n".to_owned(),
    ] {
        assert_eq!(crate::shown(&snippet), "nothing", "in\n{snippet}");
    }
}

#[test]
fn what_cannot_be_read_is_not_called_missing() {
    let site = "[[site]]\nnames = [\"a\"]\nself_signed = true\n[[site.route]]\nroot = \"/srv\"\n";
    let listener = "[[listener]]\naddress = \"0.0.0.0:443\"\n";
    for snippet in [
        format!("#alone\nlistener = 1\n{site}"),
        format!("#alone\nsite = 1\n{listener}"),
        "[[site]]\nnames = [\"a\"]\nself_signed = true\nroute = 1\n".to_owned(),
        "[[site]]\nnames = [\"a\"]\ncertificate = 1\n[[site.route]]\nroot = \"/srv\"\n".to_owned(),
    ] {
        let shown = crate::shown(&snippet);
        assert_eq!(shown.matches("kettle.toml:").count(), 1, "in\n{snippet}\n{shown}");
    }
}

#[test]
fn a_year_is_not_a_day_less() {
    let hsts = "hsts = { preload = true, include_subdomains = true, max_age = \"364d\" }";
    let shown = crate::shown(&format!(
        "[[site]]\nnames = [\"a\"]\nself_signed = true\n{hsts}\n[[site.route]]\nroot = \"/srv\"\n"
    ));
    assert!(shown.starts_with("kettle.toml:4:20: preload needs a max_age"), "{shown}");
}

#[test]
fn a_target_as_large_as_the_head_is_found() {
    let shown = crate::shown("[limits]\nhead = \"16 KiB\"\ntarget = \"16 KiB\"\n");
    assert!(shown.starts_with("kettle.toml:3:10: `target` must be smaller"), "{shown}");
}

#[test]
fn nobody_is_asked_for_a_certificate_where_tls_only_passes_through() {
    let listeners = "[[listener]]\naddress = \"0.0.0.0:443\"\n\
        [[listener]]\naddress = \"0.0.0.0:444\"\nkind = \"tls\"\nbackend = \"app\"\n\
        certificate = [{ chain = \"s.pem\", key = \"s.key\" }]\n\
        [[listener]]\naddress = \"0.0.0.0:445\"\nkind = \"passthrough\"\nbackend = \"app\"\n";
    let site = "[[site]]\nnames = [\"a\"]\nself_signed = true\nroute = [{ root = \"/srv\" }]\n\
        client_auth = { roots = \"clients.pem\" }\n";
    let backend = "[[backend]]\nname = \"app\"\nserver = [{ address = \"127.0.0.1:80\" }]\n";
    assert_eq!(crate::shown(&format!("{listeners}{site}{backend}")), "nothing");
}

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kettle_config::{Coding, Config, Expires, LogTarget, SendProxy, Suite, TlsVersion};
use proptest::prelude::*;

use super::*;
use crate::cases::{Importer, hold as hold_cases};
use crate::files_in_memory::{Files, shown};

mod acme;
mod backends;
mod carried;
mod closed;
mod guards;
mod hidden;
mod lost;
mod maps;
mod names;
mod pages;
mod places;
mod plain;
mod programs;
mod reached;
mod shown;
mod sign_on;
mod streams;

fn from(text: &str) -> Result<Imported, Vec<Diagnostic>> {
    import_file(Path::new("/etc/nginx/nginx.conf"), &Files::with("/etc/nginx/nginx.conf", text))
}

#[track_caller]
fn imported(text: &str) -> Imported {
    from(text).unwrap_or_else(|diagnostics| panic!("{}", shown(&diagnostics)))
}

#[track_caller]
fn config(text: &str) -> Config {
    let imported = imported(text);
    imported
        .config()
        .unwrap_or_else(|diagnostics| panic!("{}\n{}", shown(&diagnostics), imported.toml))
}

/// A server by HTTPS with these words besides.
fn server(words: &str) -> String {
    let certificate = "ssl_certificate c.pem; ssl_certificate_key c.key;";
    format!("events {{}} http {{ server {{ listen 443 ssl; {certificate} {words} }} }}")
}

const NGINX: Importer = Importer {
    server,
    import: shown::import_beside_users,
    views: &[
        ("=", shown::routes),
        ("names:", names::names),
        ("served:", names::served),
        ("listeners:", shown::listeners),
    ],
};

#[test]
fn routes_are_those_of_the_cases() {
    hold_cases("nginx-routes.txt", &NGINX);
}

/// The files in `tests/nginx`, each beside what becomes of it. `KETTLE_BLESS=1` writes that anew.
#[test]
fn whole_configurations_become_what_stands_beside_them() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/nginx");
    let mut machine = Files::default();
    let mut names: Vec<PathBuf> = Vec::new();
    for entry in fs::read_dir(&folder).unwrap() {
        let name = PathBuf::from(entry.unwrap().file_name());
        if name.extension().is_some_and(|extension| extension != "toml") {
            let text = fs::read_to_string(folder.join(&name)).unwrap();
            machine.0.insert(Path::new("/etc/nginx").join(&name), text);
            names.extend((name.extension().unwrap() == "conf").then_some(name));
        }
    }
    // Its folders are there.
    let texts: Vec<String> = machine.0.values().cloned().collect();
    for path in texts.iter().flat_map(|text| text.split([' ', ';', '\n'])) {
        if path.starts_with("/srv/") {
            machine.0.insert(Path::new(path).join("file"), String::new());
        }
    }
    machine.0.insert("/etc/nginx/htpasswd".into(), "ann:$2y$05$abc\n".to_owned());
    names.sort();
    for name in names {
        let made = import_file(&Path::new("/etc/nginx").join(&name), &machine);
        let made = made.unwrap_or_else(|diagnostics| panic!("{}", shown(&diagnostics)));
        let valid = made.config();
        assert!(valid.is_ok(), "{}\n{}", shown(&valid.unwrap_err()), made.toml);
        let beside = folder.join(&name).with_extension("toml");
        if std::env::var_os("KETTLE_BLESS").is_some() {
            fs::write(&beside, &made.toml).unwrap();
        }
        assert_eq!(
            made.toml,
            fs::read_to_string(&beside).unwrap_or_default(),
            "{}",
            name.display()
        );
    }
}

/// The text of a server, and then of its first route or its site.
#[test]
fn each_setting_of_a_route_does_what_nginx_does() {
    hold(&[
        ("root /a/;", |it| it.sites[0].routes[0].root.as_ref().unwrap().value == Path::new("/a")),
        ("root /srv; limit_rate 100k; limit_rate_after 1m;", |it| {
            let route = &it.sites[0].routes[0];
            (route.limit_rate, route.limit_rate_after) == (Some(100 << 10), 1 << 20)
        }),
        ("root /srv; limit_rate 0; limit_rate_after 1m;", |it| {
            it.sites[0].routes[0].limit_rate.is_none()
        }),
        ("root /srv; limit_rate_after 1m;", |it| it.sites[0].routes[0].limit_rate_after == 0),
        ("root '/a b';", |it| {
            it.sites[0].routes[0].root.as_ref().unwrap().value == Path::new("/a b")
        }),
        ("set $top /srv; root ${top}/www;", |it| {
            it.sites[0].routes[0].root.as_ref().unwrap().value == Path::new("/srv/www")
        }),
        ("root /a; location /img/ { root /b; }", |it| {
            it.sites[0].routes[0].root.as_ref().unwrap().value == Path::new("/b")
        }),
        ("root /a; location /img/ { alias /b/; }", |it| {
            it.sites[0].routes[0].root.as_ref().unwrap().value == Path::new("/b")
                && it.sites[0].routes[0].text_prefix.as_deref() == Some("/img/")
                && it.sites[0].routes[0].strip_prefix
        }),
        ("root /a; location /img/ { alias /b/img/; }", |it| {
            it.sites[0].routes[0].root.as_ref().unwrap().value == Path::new("/b")
                && it.sites[0].routes[0].text_prefix.as_deref() == Some("/img/")
        }),
        ("root /a; location ^~ /img { alias /b; }", |it| {
            it.sites[0].routes[1].prefix.as_deref() == Some("/img") && it.sites[0].routes[1].first
        }),
        ("root /a; location /x/ { location /x/y/ { expires 1m; } }", |it| {
            it.sites[0].routes.len() == 3
                && it.sites[0].routes[1].root.as_ref().unwrap().value == Path::new("/a")
        }),
        ("root /a; location /x/ { alias /b/; location /x/y/ { expires 1m; } }", |it| {
            it.sites[0].routes[1].root.as_ref().unwrap().value == Path::new("/b/y")
        }),
        ("root /a; index a.html b.html;", |it| it.sites[0].routes[0].index == ["a.html", "b.html"]),
        ("root /a; autoindex on;", |it| it.sites[0].routes[0].listing),
        ("root /a;", |it| it.sites[0].routes[0].dotfiles),
        ("root /a; location ~ /\\.git { return 404; }", |it| {
            it.sites[0].routes[0].respond.as_ref().unwrap().status == 404
        }),
        ("root /a; charset utf-8;", |it| it.sites[0].routes[0].charset.as_deref() == Some("utf-8")),
        ("root /a;", |it| it.sites[0].routes[0].charset.is_none()),
        ("root /a; expires max;", |it| {
            it.sites[0].routes[0].expires == Some(Expires::After(Duration::from_hours(24 * 3650)))
        }),
        ("root /a; expires +1h;", |it| {
            it.sites[0].routes[0].expires == Some(Expires::After(Duration::from_hours(1)))
        }),
        ("root /a; add_header A 1; location /b/ { add_header B 2; }", |it| {
            it.sites[0].routes[0].headers == [("B".to_owned(), vec!["2".into()])]
        }),
        ("root /a; add_header A 1; location /b/ { expires 1h; }", |it| {
            it.sites[0].routes[0].headers == [("A".to_owned(), vec!["1".into()])]
        }),
        ("root /a; add_header Link x; add_header Link y;", |it| {
            it.sites[0].routes[0].headers[0].1.len() == 2
        }),
        ("root /a; gzip on; brotli on; brotli_types text/x; zstd off;", |it| {
            it.sites[0].routes[0].compress == [Coding::Br, Coding::Gzip]
        }),
        ("root /a; types { x/y yy; }", |it| it.sites[0].routes[0].mime["yy"] == "x/y"),
    ]);
}

#[test]
fn each_setting_of_a_site_does_what_nginx_does() {
    hold(&[
        ("root /a; try_files $uri /app/index.html;", |it| {
            it.sites[0].routes[0].fallback.as_deref() == Some("/app/index.html")
        }),
        ("root /a; location /x/ { try_files $uri /x/i.html; }", |it| {
            it.sites[0].routes[0].fallback.as_deref() == Some("/x/i.html")
        }),
        ("root /a; location /x/ { expires 1h; try_files $uri /i.html; }", |it| {
            it.sites[0].routes[0].fallback.as_deref() == Some("/i.html")
        }),
        ("root /a; server_name a.example .b.example;", |it| it.sites[0].names.len() == 3),
        ("root /a; server_name _;", |it| it.sites[0].names[0].value == "_"),
        ("root /a; listen [::]:444 ssl ipv6only=off;", |it| it.listeners.len() == 3),
        ("root /a;", |it| it.listeners[0].https().unwrap().http2 == Some(false)),
        ("root /a; http2 on;", |it| it.listeners[0].https().unwrap().http2 == Some(true)),
        ("root /a; listen 444 ssl http2;", |it| {
            let has = |it: &kettle_config::Listener| it.https().unwrap().http2 == Some(true);
            !has(&it.listeners[0]) && has(&it.listeners[1])
        }),
        ("root /a; listen 8080;", |it| it.listeners[1].https().is_none()),
        ("root /a; keepalive_timeout 0;", |it| it.limits.requests_per_connection == 1),
        ("root /a; ssl_protocols TLSv1.2;", |it| it.tls.versions.len() == 1),
        ("root /a; ssl_conf_command MinProtocol TLSv1.3;", |it| {
            it.tls.versions == [TlsVersion::Tls13]
        }),
        ("root /a; ssl_protocols TLSv1.2 TLSv1.3; ssl_conf_command maxprotocol TLSv1.2;", |it| {
            it.tls.versions == [TlsVersion::Tls12]
        }),
        ("root /a; ssl_conf_command Protocol -ALL,TLSv1.1,TLSv1.3;", |it| {
            it.tls.versions == [TlsVersion::Tls13]
        }),
        ("root /a; ssl_conf_command MinProtocol None; ssl_conf_command Protocol TLSv1.3;", |it| {
            it.tls.versions.len() == 2
        }),
        ("root /a; ssl_ciphers HIGH; ssl_conf_command CipherString ECDHE+AES256;", |it| {
            it.tls.suites == [Suite::Aes256Gcm]
        }),
        ("root /a; ssl_ciphers PROFILE=SYSTEM;", |it| it.tls.suites.len() == 3),
        ("root /a; large_client_header_buffers 4 8k;", |it| {
            (it.limits.head_bytes, it.limits.target_bytes) == (32 * 1024, 8 * 1024)
        }),
        ("root /a; large_client_header_buffers 4 64k;", |it| {
            (it.limits.head_bytes, it.limits.target_bytes) == (64 * 1024, 56 * 1024)
        }),
        ("root /a; large_client_header_buffers 1 8k;", |it| it.limits.target_bytes == 7 * 1024),
        ("root /a; ssl_session_timeout 1h;", |it| it.tls.ticket_rotation.as_secs() == 1800),
        ("root /a; ssl_verify_client on; ssl_client_certificate r.pem;", |it| {
            let asked = it.sites[0].client_auth.as_ref().unwrap();
            asked.roots.value == Path::new("/etc/nginx/r.pem")
        }),
        ("root /a; ssl_reject_handshake off;", |it| it.sites.len() == 1),
        ("root /a; access_log logs/a.log combined if=$x;", |it| {
            it.log.format == kettle_config::LogFormat::Combined
        }),
    ]);
}

#[test]
fn logs_of_servers_and_locations_become_those_of_sites_and_routes() {
    let text = "http { access_log /l/all.log; access_log /l/more.log json; server { \
        listen 443 ssl; server_name a.example; ssl_certificate c; ssl_certificate_key k; root /a; \
        access_log /l/a.log main buffer=8k if=$x; \
        location /health/ { access_log off; location /health/seen/ { access_log /l/a.log; } } \
        location /app/ { proxy_pass http://127.0.0.1:3000; access_log /l/app.log; } \
        location /gone/ { return 301 https://b.example$request_uri; access_log off; } \
        location = /favicon.ico { access_log off; } } \
        server { listen 443 ssl; server_name b.example; ssl_certificate c; \
        ssl_certificate_key k; root /b; } } \
        stream { server { listen 9000; proxy_pass 127.0.0.1:9; access_log /l/t.log; } }";
    let made = imported(text);
    let (config, warnings) = (made.config().unwrap(), &made.warnings);
    let file = |name: &str| Some(LogTarget::Path(Path::new("/l").join(name)));
    assert_eq!(Some(config.log.access.clone()), file("all.log"));
    let [a, b] = config.sites.as_slice() else { panic!("{:?}", config.sites) };
    assert_eq!((&a.access_log, &b.access_log), (&file("a.log"), &None));
    let routes = a.routes.iter().map(|it| (it.place().unwrap().text(), it.access_log.clone()));
    let expected = [
        ("", None),
        ("/app", None),
        ("/app/", file("app.log")),
        ("/favicon.ico", Some(LogTarget::Off)),
        ("/gone/", Some(LogTarget::Off)),
        ("/health/", Some(LogTarget::Off)),
        ("/health/seen/", None),
    ];
    let mut routes: Vec<_> = routes.collect();
    routes.sort_by_key(|(place, _)| *place);
    assert_eq!(routes, expected);
    for told in ["/l/more.log json", "if=$x", "/l/t.log", "the format"] {
        assert!(warnings.iter().any(|it| it.to_string().contains(told)), "{told}: {warnings:#?}");
    }
}

type Test = fn(&Config) -> bool;

#[track_caller]
fn hold(table: &[(&str, Test)]) {
    for (words, test) in table {
        assert!(test(&config(&server(words))), "{words}");
    }
}

#[test]
fn what_a_location_opens_again_stays_open_and_no_more() {
    let text = server("root /srv; auth_basic x; location /open/ { auth_basic off; }");
    let config = config(&text);
    assert_eq!(shown::routes(&config), "/open/* /!");
}

#[test]
fn includes_are_followed() {
    let mut machine =
        Files::with("/n/nginx.conf", "http { include sites/*.conf; include one; include one/*; }");
    for (path, text) in [
        ("/n/sites/b.conf", "server { listen 443 ssl; server_name b; include ../tls; root /b; }"),
        ("/n/sites/a.conf", "server { listen 443 ssl; server_name a; include tls; root /a; }"),
        ("/n/sites/.hidden.conf", "nonsense"),
        ("/n/sites/c.bak", "nonsense"),
        ("/n/tls", "ssl_certificate c;\nssl_certificate_key k;\nssl_stapling on;"),
        ("/n/one", "msie_padding off;\n"),
    ] {
        machine.0.insert(path.into(), text.replace("../", "").to_owned());
    }
    let made = import_file(Path::new("/n/nginx.conf"), &machine).unwrap();
    let config = made.config().unwrap();
    assert_eq!((config.sites[0].names[0].value.as_str(), config.sites.len()), ("a", 2));
    for remark in ["# /n/one:1: `msie_padding off`", "# /n/tls:3: `ssl_stapling on`"] {
        assert!(made.toml.contains(remark), "{}", made.toml);
    }
    machine.0.insert("/n/one".into(), "include nginx.conf;".to_owned());
    let diagnostics = shown(&import_file(Path::new("/n/nginx.conf"), &machine).unwrap_err());
    assert!(diagnostics.contains("/n/one:1:1: /n/nginx.conf includes itself"), "{diagnostics}");
}

/// A container's folders, say: kettle would not start with them.
#[test]
fn a_folder_that_a_machine_has_not_is_closed_whatever_is_above() {
    let text = server("location /static/ { alias /app/static/; }");
    let path = Path::new("/etc/nginx/nginx.conf");
    let mut files = Files::with("/etc/nginx/nginx.conf", &text);
    let routes = |files: &Files| import_file(path, files).unwrap().toml;
    // Of a machine that is somewhere else nobody knows.
    assert!(routes(&files).contains("root = \"/app\""));
    files.0.insert("/usr/bin/env".into(), String::new());
    let made = routes(&files);
    assert!(!made.contains("root = \"/app\"") && made.contains("status = 404"), "{made}");
    assert!(made.contains("/app is not there, so that `location /static/` gets 404"), "{made}");
    files.0.insert("/app".into(), String::new());
    assert!(!routes(&files).contains("root = \"/app\""), "a file, as /dev/null");
}

/// Each mistake with the beginning of what is said of it and its place.
#[test]
fn mistakes_are_told_with_their_place() {
    for (text, expected) in [
        ("http {", "1:1: this block is never closed"),
        ("events {}\n}", "2:1: no block is open here"),
        ("pid a\nuser b", "1:1: `pid` does not end: a `;` is missing"),
        ("http { server { root /a } }", "1:17: `root` does not end"),
        (";", "1:1: a directive should stand before this"),
        ("{", "1:1: the name of a block"),
        ("pid \"a;\n", "1:5: this text has no \" at its end"),
        ("pid 'a'b;", "1:8: a quoted text ends before"),
        ("root /a;", "1:1: `root` does not belong into the file itself"),
        ("http { listen 80; }", "1:8: `listen` does not belong into http"),
        ("http { location / { } }", "1:8: `location` does not belong into http"),
        ("http;", "1:1: `http` is a block"),
        ("pid a { }", "1:1: `pid` takes no block"),
        ("http { server { root; } }", "1:17: `root` has no value"),
        ("include nothing;", "1:1: /etc/nginx/nothing cannot be read"),
        ("include;", "1:1: `include` takes one file"),
        ("http { include closed/*.conf; }", "1:8: /etc/nginx/closed cannot be listed: permission"),
        ("worker_processes many;", "1:1: `worker_processes many` has no such value"),
        ("http { keepalive_timeout x; }", "1:8: `keepalive_timeout x` has no such value"),
        ("http { server { listen 443 ssl; root /a; } }", "1:8: this server speaks TLS and has no"),
        ("http { server { listen 99999; } }", "1:17: cannot listen on 99999"),
        ("http { server { listen a:b; } }", "1:17: cannot listen on a:b"),
        ("http { server { listen 1 ssl backlog=x; } }", "1:17: `backlog=x` is no number"),
        (
            "http { server { listen 1 ssl; root /a; ssl_conf_command MinProtocol 1.3; } }",
            "1:40: `ssl_conf_command MinProtocol 1.3` has no such value",
        ),
    ] {
        let diagnostics = shown(&from(text).map(|made| made.toml).unwrap_err());
        let expected = format!("/etc/nginx/nginx.conf:{expected}");
        assert!(
            diagnostics.lines().any(|line| line.starts_with(&expected)),
            "{expected}\n{diagnostics}"
        );
        assert!(diagnostics.contains("help: "), "{diagnostics}");
    }
    let no_cipher = server("root /a; ssl_ciphers RC4;");
    assert!(shown(&from(&no_cipher).unwrap_err()).contains("kettle has none of the ciphers `RC4`"));
}

/// A directive that nginx takes and kettle does not know is no mistake; only its place is closed, if it may decide there.
#[test]
fn what_nobody_knows_is_told_and_closes_its_place() {
    let mut machine = Files::with("/etc/nginx/fastcgi_params", FASTCGI_PARAMS);
    let php = "location ~ \\.php$ { include snippets/fastcgi-php.conf; memcached_pass unix:/run/php.sock; }";
    for (path, text) in [
        ("/etc/nginx/snippets/fastcgi-php.conf", FASTCGI_PHP.to_owned()),
        ("/etc/nginx/fastcgi.conf", FASTCGI_PARAMS.to_owned()),
        ("/etc/nginx/nginx.conf", server(&format!("root /srv; {php}"))),
    ] {
        machine.0.insert(path.into(), text);
    }
    let made = import_file(Path::new("/etc/nginx/nginx.conf"), &machine);
    let made = made.unwrap_or_else(|diagnostics| panic!("{}", shown(&diagnostics)));
    assert!(made.toml.contains("because of `memcached_pass unix:/run/php.sock`"), "{}", made.toml);
    assert!(!made.toml.contains("if that is meant"), "{}", made.toml);
    for (words, prefixes, remark) in [
        (
            "location /a/ { uwsgi_send_timeout 9s; expires 1h; }",
            2,
            "`uwsgi_send_timeout 9s` is not carried over",
        ),
        ("location /a/ { expirse 1h; }", 2, "no directive `expirse` is known; write expires"),
        ("location /a/ { expirse 1h; }", 2, "answers 403 because of `expirse 1h`"),
        ("location /a/ { js_header_filter a.b; }", 2, "because of `js_header_filter a.b`"),
    ] {
        let made = imported(&server(&format!("root /srv; {words}")));
        assert!(made.toml.contains(remark), "{remark}\n{}", made.toml);
        let routes = &made.config().unwrap().sites[0].routes;
        assert_eq!(routes.len(), prefixes, "{words}\n{}", made.toml);
        assert_eq!(routes[0].deny.is_empty(), words.contains("uwsgi"), "{words}\n{}", made.toml);
    }
}

/// As Debian's files have them.
const FASTCGI_PHP: &str = "fastcgi_split_path_info ^(.+?\\.php)(/.*)$;\ntry_files $fastcgi_script_name =404;\n\
                           set $path_info $fastcgi_path_info;\nfastcgi_param PATH_INFO $path_info;\n\
                           fastcgi_index index.php;\ninclude fastcgi.conf;\n";
const FASTCGI_PARAMS: &str = "fastcgi_param QUERY_STRING $query_string;\n\
                              fastcgi_param HTTPS $https if_not_empty;\n";

#[test]
fn every_directive_that_is_not_carried_over_is_told_of() {
    for words in [
        "msie_padding off;",
        "ssl_dhparam d.pem;",
        "http3 on;",
        "limit_rate $rate;",
        "add_header X $upstream_status;",
        "add_header Content-Type text/x;",
        "error_page 404 =200 /x$host.html;",
        "error_page 404 @named;",
        "try_files $uri @app;",
        "gzip_comp_level 9;",
        "client_body_timeout 1m;",
        "server_name ~^(?=a);",
        "listen 444 ssl quic;",
        "limit_req zone=nothing;",
        "ssl_conf_command Curves X25519;",
        "large_client_header_buffers 8 128k;",
        "location /x/ { autoindex_localtime on; }",
        "vhost_traffic_status_zone;",
        "expires modified 1h;",
    ] {
        let made = imported(&server(&format!("root /a;\n{words}\n")));
        let remark = "# /etc/nginx/nginx.conf:2: ";
        assert!(made.toml.contains(remark), "{words}\n{}", made.toml);
        assert!(made.config().is_ok(), "{words}\n{}", made.toml);
    }
}

/// The statements of nginx.conf, in any order and with any words.
fn directives() -> impl Strategy<Value = String> {
    let names: Vec<&str> = vocabulary::Term::names();
    let word = prop_oneof![
        Just("on".to_owned()),
        Just("/srv/www".to_owned()),
        Just("443 ssl".to_owned()),
        Just("$uri $host".to_owned()),
        Just("10m".to_owned()),
        Just("a.example".to_owned()),
        Just("\\.(a|b)$".to_owned()),
        "[ -~]{0,8}",
    ];
    let one = (prop::sample::select(names), word, any::<bool>()).prop_map(|(name, word, block)| {
        if block { format!("{name} {word} {{ }}\n") } else { format!("{name} {word};\n") }
    });
    prop::collection::vec(one, 0..6).prop_map(|all| all.concat())
}

proptest! {
    /// The printed text is the text that is run, and no words break its lines.
    #[test]
    fn the_text_and_the_configuration_are_the_same(words in directives()) {
        let Ok(made) = from(&server(&format!("root /a; {words}"))) else { return Ok(()) };
        let Ok(used) = made.config() else { return Ok(()) };
        let read = kettle_config::parse(&made.toml, &made.path).unwrap();
        prop_assert_eq!(&read.listeners, &used.listeners);
        prop_assert_eq!(&read.sites, &used.sites);
    }

    #[test]
    fn no_text_makes_it_fail_without_a_word(text in "[ -~\n]{0,80}") {
        match from(&text) {
            Ok(made) => _ = made.config(),
            Err(diagnostics) => prop_assert!(!diagnostics.is_empty()),
        }
    }
}

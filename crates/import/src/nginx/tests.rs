use std::fs;
use std::path::{Path, PathBuf};

use kettle_config::{Config, LogTarget, SendProxy};
use proptest::prelude::*;

use super::*;
use crate::cases::{Importer, hold, listeners, names_of_servers};
use crate::files_in_memory::{Files, shown};

mod acme;
mod backends;
mod closed;
mod names;
mod programs;
mod shown;
mod sign_on;

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
    import: shown::beside_users,
    views: &[
        ("=", shown::routes),
        ("names:", names::names),
        ("served:", names::served),
        ("stream:", shown::stream),
        ("listeners:", listeners),
        ("shows:", names_of_servers),
        ("refuses-slashes:", shown::refuses_slashes),
    ],
};

#[test]
fn routes_are_those_of_the_cases() {
    hold("nginx-routes.txt", &NGINX);
}

#[test]
fn settings_are_those_of_the_cases() {
    hold("nginx-toml.txt", &NGINX);
}

#[test]
fn listeners_and_their_sites_are_those_of_the_cases() {
    hold("nginx-listeners.txt", &NGINX);
}

#[test]
fn mistakes_are_those_of_the_cases() {
    hold("nginx-mistakes.txt", &NGINX);
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
    let config = made.config().unwrap();
    let warnings = &made.warnings;
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
}

/// As Debian's files have them.
const FASTCGI_PHP: &str = "fastcgi_split_path_info ^(.+?\\.php)(/.*)$;\ntry_files $fastcgi_script_name =404;\n\
                           set $path_info $fastcgi_path_info;\nfastcgi_param PATH_INFO $path_info;\n\
                           fastcgi_index index.php;\ninclude fastcgi.conf;\n";
const FASTCGI_PARAMS: &str = "fastcgi_param QUERY_STRING $query_string;\n\
                              fastcgi_param HTTPS $https if_not_empty;\n";

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

//! Configurations without mistakes, and what becomes of them.

#![allow(clippy::unwrap_used, reason = "a test that cannot parse its file has failed")]

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kettle_config::{
    CacheControl, CacheRule, Coding, Config, Group, ListenerKind, LogFormat, LogTarget, Network,
    Suite, Symlinks, TlsVersion, TxPathChoice, parse,
};

fn parsed(text: &str) -> Config {
    parse(text, Path::new("/etc/kettle/kettle.toml")).unwrap()
}

const SMALLEST: &str = r#"
[[listener]]
address = "0.0.0.0:443"

[[site]]
names = ["Example.org"]

[[site.certificate]]
chain = "example.pem"
key = "/keys/example.key"

[[site.route]]
root = "www"
"#;

#[test]
fn the_unit_starts_what_it_can_and_lets_go_what_it_need_not() {
    let unit = include_str!("../../../packaging/kettle.service");
    let said: Vec<&str> = unit.lines().filter(|line| !line.starts_with('#')).collect();
    // An expired certificate is a warning to `run`, and an error to `check`: it must not keep the server down.
    assert!(!said.iter().any(|line| line.contains("kettle check")), "{unit}");
    let kept =
        ["ProtectProc=invisible", "ProtectHome=yes", "SystemCallFilter=~@privileged @resources"];
    for line in kept {
        assert!(said.contains(&line), "{line}");
    }
}

#[test]
fn every_packaged_example_is_valid() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/examples");
    let mut examples = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        if let Err(diagnostics) = kettle_config::parse(&text, &path) {
            let shown: Vec<_> = diagnostics.iter().map(ToString::to_string).collect();
            panic!("{}", shown.join("\n"));
        }
        examples += 1;
    }
    assert!(examples > 3, "{examples}");
}

#[test]
fn the_example_is_valid() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/kettle.example.toml");
    let config = parsed(&std::fs::read_to_string(path).unwrap());
    assert_eq!(config.listeners.len(), 4);
    assert_eq!(config.sites.len(), 2);
}

#[test]
fn the_example_names_only_defaults_in_its_comments() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/kettle.example.toml");
    let text = std::fs::read_to_string(path).unwrap();
    let uncommented: Vec<&str> = text
        .lines()
        .map(|line| line.strip_prefix("# ").filter(|rest| is_setting(rest)).unwrap_or(line))
        .collect();
    let mut with_defaults = parsed(&uncommented.join("\n"));
    let mut expected = parsed(&text);
    for config in [&mut with_defaults, &mut expected] {
        config.fill_in_http2();
    }
    // The three examples that are no defaults.
    with_defaults.listeners.retain(|listener| listener.http().is_none());
    expected.server.workers = Some(4);
    expected.sites[0].certificates[0].ocsp = with_defaults.sites[0].certificates[0].ocsp.clone();
    expected.sites[0].hsts = with_defaults.sites[0].hsts.clone();
    assert_eq!(expected.server, with_defaults.server);
    assert_eq!(expected.tls, with_defaults.tls);
    assert_eq!(expected.log, with_defaults.log);
    assert_eq!(expected.limits, with_defaults.limits);
    assert_eq!(expected.listeners, with_defaults.listeners);
    assert_eq!(expected.sites, with_defaults.sites);
}

fn is_setting(line: &str) -> bool {
    let is_key =
        |(key, _): (&str, &str)| key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    line == "[[listener]]" || line.split_once(" = ").is_some_and(is_key)
}

#[test]
fn the_reference_page_shows_a_valid_file() {
    let page = kettle_config::reference_markdown();
    let (_, example) = page.split_once("```toml\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    assert_eq!(parsed(example).sites.len(), 1);
}

#[test]
fn relative_paths_start_from_the_folder_of_the_file() {
    let config = parsed(SMALLEST);
    let site = &config.sites[0];
    assert_eq!(site.certificates[0].chain.value, PathBuf::from("/etc/kettle/example.pem"));
    assert_eq!(site.certificates[0].key.value, PathBuf::from("/keys/example.key"));
    assert_eq!(site.routes[0].root.as_ref().unwrap().value, PathBuf::from("/etc/kettle/www"));
    assert_eq!(config.path, PathBuf::from("/etc/kettle/kettle.toml"));
}

#[test]
fn located_values_know_their_place() {
    let config = parsed(SMALLEST);
    let root = config.sites[0].routes[0].root.as_ref().unwrap();
    assert_eq!((root.at.line, root.at.column), (13, 8));
    let diagnostic = config.diagnostic(root.at, "", "no such folder", None);
    let expected =
        "/etc/kettle/kettle.toml:13:8: no such folder\n 13 | root = \"www\"\n    |        ^^^^^";
    assert_eq!(diagnostic.to_string(), expected);
    assert_eq!(config.position_of("site.0.route").line, 12);
    assert!(!config.position_of("server.user").is_written());
}

#[test]
fn defaults_are_those_of_the_documentation() {
    let config = parsed(SMALLEST);
    assert_eq!(config.limits.head_bytes, 16 * 1024);
    assert_eq!(config.limits.idle_timeout, Duration::from_secs(75));
    assert_eq!(config.limits.hot_memory_bytes, 64 * 1024 * 1024);
    assert_eq!(config.server.drain_timeout, Duration::from_secs(30));
    assert_eq!(config.server.workers, None);
    assert_eq!(config.tls.versions, [TlsVersion::Tls12, TlsVersion::Tls13]);
    assert_eq!(config.tls.suites[0], Suite::Aes128Gcm);
    assert_eq!(config.tls.groups[0], Group::X25519MlKem768);
    assert_eq!(config.tls.ticket_rotation, Duration::from_hours(6));
    assert_eq!(config.log.access, LogTarget::Off);
    let listener = &config.listeners[0];
    let https = listener.https().unwrap();
    assert_eq!((https.path, https.crossover), (TxPathChoice::Auto, 65_536));
    let route = &config.sites[0].routes[0];
    assert_eq!(
        (route.prefix.as_deref(), route.place()),
        (None, Some(kettle_config::Place::Prefix("")))
    );
    assert_eq!(route.index, ["index.html"]);
    assert_eq!(route.symlinks, Symlinks::Beneath);
    assert_eq!(route.charset.as_deref(), Some("utf-8"));
    assert_eq!(config.sites[0].path, None);
}

#[test]
fn http_2_is_on_unless_sendfile_is_asked_for() {
    let offers = |listener: &str, site: &str| {
        let listener = format!("[[listener]]\n{listener}");
        let text = SMALLEST.replace("[[listener]]", &listener) + site;
        let mut config = parsed(&text);
        assert_eq!(
            config.listeners[0].https().unwrap().http2.is_some(),
            listener.contains("http2")
        );
        config.fill_in_http2();
        config.listeners[0].https().unwrap().http2.unwrap()
    };
    let sendfile = "path = \"kernel-sendfile\"\n";
    let site = |more: &str| format!("[[site]]\nnames = [\"a\"]\n{sendfile}{more}");
    let route = "self_signed = true\n[[site.route]]\nroot = \"a\"\n";
    // It is not on https listeners.
    let tunnel = "backend = \"b\"\n[[backend]]\nname = \"b\"\n[[backend.server]]\naddress = \"127.0.0.1:1\"\n\
                  [[listener]]\naddress = \"0.0.0.0:2\"\nkind = \"passthrough\"\n";
    assert!(offers("", ""));
    assert!(!offers(sendfile, ""));
    assert!(!offers("", &site(route)));
    assert!(offers("", &site(tunnel)));
    assert!(offers(&format!("http2 = true\n{sendfile}"), &site(route)));
    assert!(!offers("http2 = false\n", ""));
}

#[test]
fn every_setting_can_be_written() {
    let config = parsed(
        r#"
        server = { workers = 2, pin_workers = true, user = "www", group = "33", drain_timeout = "1m30s", state_directory = "state" }
        tls = { versions = ["tls1.3"], suites = ["chacha20-poly1305"], groups = ["p-384"], tickets = 0, ticket_rotation = "90 minutes", session_cache = 0, handshake_timeout = "500ms" }
        log = { access = "stdout", format = "combined", buffer = 0, level = "debug" }
        admin.socket = "/run/k.sock"
        metrics = { listen = "[::]:9000", allow_remote = true }
        limits = { connections_per_worker = 1, idle_timeout = "1s", request_timeout = "1s", write_timeout = "1s", disk_timeout = "1s", body_discard = "1 MiB", head = 4096, target = "1KiB", headers = 8, requests_per_connection = 1, open_files = 0, hot_file = 0, hot_memory = 0, revalidate = "0s" }

        [[listener]]
        address = "[::1]:8443"
        path = "kernel-write"
        crossover = "1 GiB"
        backlog = 1

        [[listener]]
        address = "127.0.0.1:80"
        kind = "redirect"
        redirect_port = 8443
        redirect_status = 301

        [[site]]
        names = ["*.a.example", "_", "127.0.0.1", "::1"]
        path = "user"
        headers = { Link = ["</a>", "</b>"], X-One = "1" }
        error_pages = { 404 = "404.html", 503 = "/503.html" }
        certificate = [{ chain = "a", key = "b", ocsp = "c" }]
        hsts = { max_age = "730d", include_subdomains = true, preload = true }

        [[site.route]]
        prefix = "/img/"
        root = "/srv"
        index = []
        listing = true
        symlinks = "follow"
        dotfiles = true
        precompressed = ["zstd", "br"]
        cache_control = { "*.css" = "max-age=60", "/a/**" = "no-store", "*" = "" }
        headers = { X-Two = "2" }
        charset = "off"
        mime = { WASM = "application/wasm", txt = "text/plain; charset=ascii" }
        "#,
    );
    assert_eq!(config.server.drain_timeout, Duration::from_secs(90));
    assert_eq!(config.server.state_directory, PathBuf::from("/etc/kettle/state"));
    assert_eq!(config.tls.ticket_rotation, Duration::from_secs(5400));
    assert_eq!(config.log.access, LogTarget::Stdout);
    assert_eq!(config.log.format, LogFormat::Combined);
    assert_eq!(config.limits.target_bytes, 1024);
    assert_eq!(config.listeners[0].https().unwrap().crossover, 1 << 30);
    let ListenerKind::Redirect(redirect) = &config.listeners[1].kind else { panic!("no redirect") };
    assert_eq!(redirect.redirect_status, 301);
    let site = &config.sites[0];
    assert!(site.default, "the name `_` makes a site the default");
    assert_eq!(site.path, Some(TxPathChoice::User));
    let header = |name: &str, values: &[&str]| {
        (name.to_owned(), values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>())
    };
    assert_eq!(site.headers, [header("Link", &["</a>", "</b>"]), header("X-One", &["1"])]);
    assert_eq!(site.error_pages[&404].file().unwrap().value, PathBuf::from("/etc/kettle/404.html"));
    let hsts = site.hsts.as_ref().map(|hsts| hsts.header_value());
    assert_eq!(hsts.as_deref(), Some("max-age=63072000; includeSubDomains; preload"));
    let route = &site.routes[0];
    assert_eq!(route.precompressed, [Coding::Zstd, Coding::Br]);
    let patterns: Vec<&str> =
        route.cache_control.iter().map(|rule| rule.pattern.as_str()).collect();
    assert_eq!(patterns, ["*.css", "/a/**", "*"], "rules keep the order of the file");
    assert_eq!(route.charset, None);
    assert_eq!(route.mime["wasm"], "application/wasm");
}

#[test]
fn cache_rules_fit_names_and_paths() {
    let rule = |pattern: &str| CacheRule { pattern: pattern.to_owned(), value: pattern.to_owned() };
    let rules = CacheControl::new(&["/a/*", "*.css", "/a/**", "b*"].map(rule));
    for (path, expected) in [
        ("/a/b.css", Some("/a/*")),
        ("/b/b.css", Some("*.css")),
        ("/a/b/c.css", Some("*.css")),
        ("/a/b/c", Some("/a/**")),
        ("/x/bc", Some("b*")),
        ("/b/c", None),
    ] {
        assert_eq!(rules.value(path), expected, "{path}");
    }
}

#[test]
fn a_folder_is_served_with_a_generated_certificate() {
    let address: SocketAddr = "127.0.0.1:8443".parse().unwrap();
    let config = Config::for_folder(Path::new("/srv"), address);
    assert_eq!(config.listeners[0].address.value, address.into());
    let site = &config.sites[0];
    assert!(site.self_signed && site.default);
    assert_eq!(site.routes[0].root.as_ref().unwrap().value, PathBuf::from("/srv"));
    let diagnostic =
        config.diagnostic(site.routes[0].root.as_ref().unwrap().at, "/srv", "no such folder", None);
    assert_eq!(diagnostic.to_string(), "no such folder");
}

#[test]
fn words_can_be_read_and_shown() {
    assert_eq!("kernel-write".parse(), Ok(TxPathChoice::KernelWrite));
    assert_eq!(TxPathChoice::KernelSendfile.to_string(), "kernel-sendfile");
    let error = "nic".parse::<TxPathChoice>().unwrap_err();
    assert_eq!(error.to_string(), "\"nic\" is none of: auto, user, kernel-write, kernel-sendfile");
}

#[test]
fn networks_contain_the_addresses_that_begin_alike() {
    let network = |text: &str| -> Network {
        let file = format!(
            "[[listener]]\naddress = \"[::]:443\"\naccept_proxy = [\"{text}\"]\n[[site]]\nnames = [\"_\"]\nself_signed = true\n[[site.route]]\nroot = \"/srv\"\n"
        );
        parsed(&file).listeners[0].accept_proxy.networks[0]
    };
    for (text, inside, outside) in [
        (
            "10.0.0.0/8",
            ["10.0.0.0", "10.255.255.255", "::ffff:10.1.2.3"],
            ["9.255.255.255", "11.0.0.0", "::10.0.0.1"],
        ),
        (
            "192.0.2.7",
            ["192.0.2.7", "::ffff:192.0.2.7", "192.0.2.7"],
            ["192.0.2.6", "192.0.2.8", "::1"],
        ),
        ("0.0.0.0/0", ["0.0.0.0", "255.255.255.255", "127.0.0.1"], ["::", "::1", "fd00::1"]),
        ("fd00::/8", ["fd00::", "fdff::1", "fd12:3456::"], ["fc00::1", "fe80::1", "10.0.0.1"]),
        ("::/0", ["::", "ffff::", "::1"], ["0.0.0.0", "10.0.0.1", "::ffff:10.0.0.1"]),
        ("[::1]", ["::1", "::1", "::1"], ["::2", "::", "127.0.0.1"]),
    ] {
        for address in inside {
            assert!(network(text).contains(address.parse().unwrap()), "{text} has {address}");
        }
        for address in outside {
            assert!(!network(text).contains(address.parse().unwrap()), "{text} has no {address}");
        }
    }
}

#[test]
fn pins_are_taken_as_curl_writes_them_and_with_one_slash() {
    let hash = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
    // A hash that begins with a slash itself.
    let slashed = format!("/{}", &hash[1..]);
    for (written, read) in [
        (format!("sha256/{hash}"), hash),
        (format!("sha256//{hash}"), hash),
        (format!("sha256/{slashed}"), slashed.as_str()),
        (format!("sha256//{slashed}"), slashed.as_str()),
    ] {
        let backend = format!(
            "\n[[backend]]\nname = \"db\"\nserver = [{{ address = \"127.0.0.1:1\" }}]\n\
             tls = {{ pins = [\"{written}\"] }}\n"
        );
        let config = parsed(&(SMALLEST.to_owned() + &backend));
        let tls = config.backends.first().and_then(|backend| backend.tls.as_ref()).unwrap();
        assert_eq!(tls.pins, [format!("sha256/{read}")]);
    }
}

#[test]
fn files_of_tls_are_all_that_a_handshake_rests_on() {
    let config = parsed(
        r#"
        tls.ticket_secret = "/secret"
        [[listener]]
        address = "127.0.0.1:443"
        kind = "tls"
        [[site]]
        names = ["a"]
        backend = "app"
        client_auth = { roots = "/clients", crl = "/revoked" }
        [[site.certificate]]
        chain = "/chain"
        key = "/key"
        ocsp = "/staple"
        [[site]]
        names = ["b"]
        backend = "app"
        [[site.certificate]]
        chain = "/chain"
        key = "/key"
        [[backend]]
        name = "app"
        [[backend.server]]
        address = "127.0.0.1:1"
        [backend.tls]
        name = "app.example"
        roots = "/roots"
        certificate = { chain = "/own", key = "/own.key" }
        "#,
    );
    let files: Vec<_> =
        config.watched_files().into_iter().map(|file| file.to_str().unwrap()).collect();
    let expected = [
        "/chain", "/clients", "/key", "/own", "/own.key", "/revoked", "/roots", "/secret",
        "/staple",
    ];
    assert_eq!(files, expected);
}

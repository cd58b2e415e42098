//! Configurations of nginx, imported and served, beside nginx itself.

mod beside_nginx;
mod one_path;
mod originals;
mod proxies;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use kettle_tests::environment::has_kernel_tls;
use kettle_tests::kernel_counts::{KernelCounts, Turn};
use kettle_tests::prelude::*;
use kettle_tests::tool::{Running, wait_until_listening};
use tempfile::TempDir;

/// A folder with a certificate and an nginx.conf, in which `FOLDER` and `ADDRESS` stand for what they are, and the words of `SAID` for
/// what all of them say.
struct Place {
    folder: TempDir,
    config: &'static str,
}

impl Place {
    fn new(config: &'static str, files: &[(&str, Vec<u8>)]) -> Self {
        let folder = TempDir::new().unwrap();
        let issued = issue(&["localhost"], Kind::Ecdsa);
        let own = [
            ("ssl/example.crt", issued.chain.into_bytes()),
            ("ssl/example.key", issued.key.into_bytes()),
        ];
        let place = Self { folder, config };
        for (name, content) in own
            .iter()
            .map(|(name, content)| (*name, content))
            .chain(files.iter().map(|(name, content)| (*name, content)))
        {
            let path = place.path(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn nginx_conf(&self, address: SocketAddr) -> PathBuf {
        let folder = self.folder.path().to_str().unwrap();
        let text =
            SAID.iter().fold(self.config.to_owned(), |text, (word, said)| text.replace(word, said));
        let text = text.replace("ADDRESS", &address.to_string()).replace("FOLDER", folder);
        let path = self.path("nginx.conf");
        fs::write(&path, text).unwrap();
        path
    }

    /// kettle with what it makes of the configuration.
    fn kettle(&self) -> (Running, SocketAddr) {
        let address = unused_address();
        let from = self.nginx_conf(address);
        let words = ["import".as_ref(), "nginx".as_ref(), from.as_os_str(), "--check".as_ref()];
        let made = Tool::kettle(words).output();
        assert!(made.status.success(), "{}", made.stderr);
        let config = self.path("kettle.toml");
        // Tests run at the same time, and on machines where no package made /run/kettle.
        let socket = self.path("admin.sock").display().to_string();
        fs::write(&config, made.text().replace("/run/kettle/admin.sock", &socket)).unwrap();
        let running = Tool::kettle(["run".as_ref(), config.as_os_str()]).start();
        wait_until_listening(address);
        (running, address)
    }

    fn nginx(&self) -> Option<(Running, SocketAddr)> {
        let program = Path::new("/usr/sbin/nginx");
        if !program.exists() {
            skip("nginx is not installed");
            return None;
        }
        let address = unused_address();
        let config = self.nginx_conf(address);
        let running = Tool::new(program).args(["-e", "stderr", "-c"]).args([&config]).start();
        wait_until_listening(address);
        Some((running, address))
    }
}

/// An nginx that is ours alone, in the foreground.
const SAID: [(&str, &str); 3] = [
    (
        "PROCESS",
        "daemon off;
master_process off;
worker_processes 1;
pid FOLDER/pid;
error_log stderr;
events { worker_connections 64; }",
    ),
    (
        "TEMPORARY",
        "client_body_temp_path FOLDER/t/a; proxy_temp_path FOLDER/t/b; fastcgi_temp_path FOLDER/t/c;
    uwsgi_temp_path FOLDER/t/d; scgi_temp_path FOLDER/t/e;",
    ),
    (
        "SITE",
        "listen ADDRESS ssl;
        server_name localhost;
        ssl_protocols TLSv1.2 TLSv1.3;
        ssl_certificate ssl/example.crt;
        ssl_certificate_key ssl/example.key;
        root FOLDER/www;",
    ),
];

#[test]
fn the_configuration_for_kernel_tls_is_served_by_kernel_tls() {
    let has_kernel_tls = has_kernel_tls();
    let _turn = Turn::alone();
    let config = include_str!("../../../crates/import/tests/nginx/ktls.conf");
    let config: &'static str =
        config.replace("443", "ADDRESS").replace("/data", "FOLDER/data").leak();
    let place = Place::new(config, &[("data/film", content(1 << 20))]);
    let (_kettle, address) = place.kettle();
    let counts = KernelCounts::now();
    let mut client = Dialer::default().connect(address);
    let response = client.get("/film");
    assert_same(&response.body, &content(1 << 20), "film");
    assert_eq!(response.status, 200);
    if has_kernel_tls {
        assert_eq!(counts.growth("TlsTxSw"), 1);
    } else {
        skip("the kernel has no kernel TLS; the file came by user space");
    }
}

#[test]
fn where_nothing_is_left_the_reasons_are_told() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("stunnel.conf");
    let service = "client = yes\naccept = 127.0.0.1:110\nconnect = 127.0.0.1:995\nOCSPaia = yes\n";
    fs::write(&file, format!("[mail]\n{service}")).unwrap();
    let ended = Tool::kettle(["import".as_ref(), "stunnel".as_ref(), file.as_os_str()]).output();
    assert_eq!((ended.status.code(), ended.text().as_str()), (Some(1), ""));
    for told in ["OCSPaia", "left out", "every server was left out"] {
        assert!(ended.stderr.contains(told), "{told}: {}", ended.stderr);
    }
}

/// A place that cannot be carried over is closed, and takes nothing else with it.
#[test]
fn an_import_closes_what_it_cannot_carry_over_and_starts() {
    for (config, told, statuses) in [
        ("http { server { SITE } } stream { waf on; }", "", [200, 404]),
        (
            "http { server { SITE location /b/ { root FOLDER/none; } } }",
            "FOLDER/none is not there",
            [200, 404],
        ),
        (
            "http { server { SITE location /b/ { try_files $uri @c; } \
             location @c { memcached_pass 127.0.0.1:1; } } }",
            "try_files $uri @c",
            [200, 403],
        ),
        (
            "http { server { SITE location ~ (b)/\\1 { } location ~ ^/(?!a)b { } } }",
            "(?!a)b",
            [200, 403],
        ),
        ("http { waf on; server { SITE } }", "waf on", [403, 403]),
        ("http { server { SITE if ($unknown) { return 403; } } }", "if ($unknown)", [403, 403]),
    ] {
        let place = Place::new(config, &[("www/a", Vec::new())]);
        let (_kettle, address) = place.kettle();
        let text = fs::read_to_string(place.path("kettle.toml")).unwrap();
        let folder = place.folder.path().to_str().unwrap();
        assert!(text.contains(&told.replace("FOLDER", folder)), "{config}\n{text}");
        let found = ["/a", "/b/b"].map(|target| answer(address, target, "").status);
        assert_eq!(found, statuses, "{config}\n{text}");
    }
}

/// One command says whether a configuration can move, and its exit code says it to programs.
#[test]
fn a_summary_says_what_would_become_of_a_configuration() {
    for (config, code, said) in [
        ("http { server { SITE } }", 0, "1 of 1 place carried over."),
        (
            "http { server { SITE location /b/ { memcached_pass 127.0.0.1:1; } } }",
            3,
            "1 of 2 places carried over, 1 answers 403.",
        ),
        (
            "http { server { SITE auth_basic a; auth_basic_user_file FOLDER; } }",
            1,
            "kettle would not start with it on this machine:",
        ),
    ] {
        let place = Place::new(config, &[("www/a", Vec::new())]);
        let from = place.nginx_conf(unused_address());
        let words = ["import".as_ref(), "nginx".as_ref(), from.as_os_str(), "--summary".as_ref()];
        let ended = Tool::kettle(words).output();
        let text = ended.text();
        assert_eq!(ended.status.code(), Some(code), "{config}\n{text}\n{}", ended.stderr);
        assert!(text.contains(said) && !text.contains("[[site]]"), "{config}\n{text}");
    }
}

/// A field, in one line where it stands in several.
fn field(response: &Response, name: &str) -> String {
    let fields = response.head.lines().filter_map(|line| line.split_once(": "));
    let values =
        fields.filter(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value);
    let mut values: Vec<&str> = values.collect();
    values.sort_unstable();
    values.join(", ")
}

/// The response to a request.
fn answer(address: SocketAddr, target: &str, headers: &str) -> Response {
    let mut client = Dialer::default().connect(address);
    client.exchange(&request("GET", target, headers))
}

#[test]
fn kettle_answers_what_nginx_answers() {
    let files = [
        // nginx makes the folders below this one.
        ("t/x", Vec::new()),
        ("www/index.html", b"<p>home".to_vec()),
        ("www/style.css", b"p {}".to_vec()),
        ("www/data.zst", b"data".to_vec()),
        ("www/.hidden", b"secret".to_vec()),
        ("www/docs/index.htm", b"<p>docs".to_vec()),
        ("www/docs/empty/x", b"x".to_vec()),
        ("www/lists/a", b"a".to_vec()),
        ("www/Ünïcode name.txt", b"name".to_vec()),
        ("pictures/a.png", b"png".to_vec()),
        ("films/hls/a.ts", b"ts".to_vec()),
        ("films/hls/live/b.ts", b"live".to_vec()),
        ("pages/404.html", b"<p>none".to_vec()),
        ("app/index.html", b"<p>app".to_vec()),
        ("www/app/other.html", b"<p>not seen".to_vec()),
        ("www/large", content(300_000)),
        ("www/inside/a", b"inside".to_vec()),
        ("www/outside/a", b"outside".to_vec()),
        ("www/closed/a", b"closed".to_vec()),
        ("www/members/a", b"members".to_vec()),
        ("www/members/open/a", b"open".to_vec()),
        ("www/new/a", b"new".to_vec()),
        ("www/shared/a", b"shared".to_vec()),
        ("www/limited/a", b"limited".to_vec()),
        // `ann` with the password `secret`.
        ("users", b"ann:$2y$05$KBCwKxOzLha2MUDgW0PjXeGy8zDyKFegpVV4y0qPBUgij10WNyKY6\n".to_vec()),
    ];
    let place = Place::new(NGINX, &files);
    let Some((_nginx, nginx)) = place.nginx() else { return };
    let (_kettle, kettle) = place.kettle();
    let plain = TARGETS.lines().map(|target| (target, ""));
    for (target, asked) in plain.chain(ASKED) {
        let theirs = answer(nginx, target, asked);
        let ours = answer(kettle, target, asked);
        assert_eq!(ours.status, theirs.status, "{target}\n{}\n{}", ours.head, theirs.head);
        let headers = [
            "content-type",
            "cache-control",
            "x-site",
            "x-live",
            "location",
            "content-length",
            "access-control-allow-origin",
        ];
        let is_plain =
            theirs.status == 200 || theirs.status == 404 && theirs.body.starts_with(b"<p>");
        for name in headers.iter().filter(|name| is_plain || **name == "location") {
            // nginx adds fields to good answers only, kettle to all.
            let is_added = theirs.status != 200 && name.starts_with("x-");
            // A guarded response is private here.
            let is_private = *name == "cache-control" && field(&ours, name) == "private";
            if !is_added && !is_private {
                assert_eq!(field(&ours, name), field(&theirs, name), "{target}: {name}");
            }
        }
        if is_plain {
            assert_same(&ours.body, &theirs.body, target);
        }
    }
    let listed = String::from_utf8(answer(kettle, "/lists/", "").body).unwrap();
    assert!(listed.contains(">a<"), "{listed}");
    for (address, refused) in [(nginx, 503), (kettle, 429)] {
        let statuses: Vec<u16> = (0..4).map(|_| answer(address, "/limited/a", "").status).collect();
        assert_eq!(statuses, [200, 200, 200, refused]);
    }
}

/// Requests with more than their target.
const ASKED: [(&str, &str); 6] = [
    ("/members/a", "Authorization: Basic YW5uOnNlY3JldA==\r\n"),
    ("/members/a", "Authorization: Basic YW5uOndyb25n\r\n"),
    ("/members/open/a", "Authorization: Basic YW5uOndyb25n\r\n"),
    ("/shared/a", "Origin: https://app.example\r\n"),
    ("/outside/a", "X-Forwarded-For: 10.0.0.1\r\n"),
    ("/index.html", "Accept-Encoding: gzip\r\n"),
];

const TARGETS: &str = include_str!("import/answers.txt");
const NGINX: &str = include_str!("import/answers.conf");

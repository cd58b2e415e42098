//! PHP-FPM and fcgiwrap themselves, where Debian's packages are here.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use kettle_tests::tool::Running;

use super::*;
use crate::proxy::any_response;

const EXAMPLE: &str = include_str!("../../../../packaging/examples/wordpress.toml");

/// Each PHP file of these tests: it says what it was told, or what its query asks for.
const SAYS: &str = r#"<?php
if (isset($_GET['status'])) { header('Location: /there'); http_response_code((int) $_GET['status']); setcookie('a', 'b'); }
if (isset($_GET['log'])) { error_log('a word for the log'); }
if (isset($_GET['wait'])) { usleep(100000); }
if (isset($_GET['large'])) { header('Content-Length: 2000000'); echo str_repeat('x', 2000000); exit; }
if (isset($_GET['huge'])) { for ($i = 0; $i < 12; $i++) { echo str_repeat('x', 1000000); } exit; }
if (isset($_GET['die'])) { exit; }
echo json_encode(['script' => $_SERVER['SCRIPT_NAME'], 'file' => basename(__FILE__), 'info' => $_SERVER['PATH_INFO'] ?? null,
    'post' => $_POST, 'bytes' => strlen(file_get_contents('php://input')), 'uri' => $_SERVER['REQUEST_URI'],
    'method' => $_SERVER['REQUEST_METHOD'], 'https' => $_SERVER['HTTPS'] ?? null, 'host' => $_SERVER['HTTP_HOST']]);
"#;

/// The first program whose name begins so.
pub(super) fn program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
    let entries = folders.filter_map(|folder| fs::read_dir(folder).ok()).flatten();
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_it = |path: &PathBuf| {
        path.file_name().is_some_and(|it| it.to_string_lossy().starts_with(name)) && path.is_file()
    };
    let found = paths.into_iter().find(is_it);
    if found.is_none() {
        skip(&format!("there is no {name} here"));
    }
    found
}

/// PHP-FPM with so many processes.
struct Php {
    address: SocketAddr,
    _folder: TempDir,
    _running: Running,
}

impl Php {
    fn start(processes: usize) -> Option<Self> {
        let program = program("php-fpm")?;
        let address = unused_address();
        let folder = TempDir::new().unwrap();
        let pool = format!(
            "[global]\nerror_log = /dev/stderr\ndaemonize = no\n[www]\nuser = root\ngroup = root\nlisten = {address}\npm = static\n\
             pm.max_children = {processes}\nping.path = /ping\nphp_admin_value[post_max_size] = 8M\n\
             php_admin_flag[display_errors] = off\nphp_admin_flag[log_errors] = on\n"
        );
        let config = folder.path().join("php-fpm.conf");
        fs::write(&config, pool).unwrap();
        let running = Tool::new(program).args(["-n", "-F", "-R", "-y"]).args([&config]).start();
        wait_until_listening(address);
        Some(Self { address, _folder: folder, _running: running })
    }
}

fn with_programs(setup: Setup) -> Setup {
    ["index.php", "a.php", "wp-admin/index.php"]
        .iter()
        .fold(setup, |setup, name| setup.file(&format!("www/{name}"), SAYS))
        .file("www/b.css", "css")
}

pub(super) fn asked(
    kettle: SocketAddr,
    method: &str,
    target: &str,
    headers: &str,
    body: &[u8],
) -> Response {
    let mut client = Dialer::default().connect(kettle);
    client.send(&[&request(method, target, headers), body].concat()).unwrap();
    match method {
        "HEAD" => client.response_head(),
        _ => any_response(&mut client),
    }
}

#[track_caller]
pub(super) fn assert_says(response: &Response, parts: &[&str]) {
    let body = String::from_utf8_lossy(&response.body).replace("\\/", "/");
    assert_eq!(response.status, 200, "{body}");
    for part in parts {
        assert!(body.contains(part), "{part} is not in {body}");
    }
}

#[test]
fn php_answers_as_it_does_behind_nginx() {
    let Some(php) = Php::start(3) else { return };
    for keep_alive in [0, 2] {
        let settings =
            format!("keep_alive = {keep_alive}\ncheck = {{ kind = \"http\", path = \"/ping\" }}");
        let setup =
            programs("", "index = \"index.php\", path_info = true", &settings, &[php.address]);
        let kettle = Kettle::start(with_programs(setup));
        let get = |target: &str| asked(kettle.address(), "GET", target, "", b"");
        assert_says(
            &get("/a.php?x=1"),
            &["\"script\":\"/a.php\"", "\"uri\":\"/a.php?x=1\"", "\"https\":\"on\""],
        );
        assert_says(&get("/a.php/more/b"), &["\"script\":\"/a.php\"", "\"info\":\"/more/b\""]);
        assert_says(&get("/2024/hello/"), &["\"file\":\"index.php\"", "\"uri\":\"/2024/hello/\""]);
        assert_says(&get("/wp-admin/"), &["\"script\":\"/wp-admin/index.php\""]);
        assert_eq!(get("/b.css").body, b"css");
        let form = "Content-Type: application/x-www-form-urlencoded\r\n";
        let length = format!("{form}Content-Length: 7\r\n");
        assert_says(
            &asked(kettle.address(), "POST", "/a.php", &length, b"a=1&b=2"),
            &["\"post\":{\"a\":\"1\",\"b\":\"2\"}"],
        );
        let chunked = format!("{form}Transfer-Encoding: chunked\r\n");
        let sent = asked(kettle.address(), "POST", "/form", &chunked, b"7\r\na=1&b=2\r\n0\r\n\r\n");
        assert_says(&sent, &["\"post\":{\"a\":\"1\",\"b\":\"2\"}", "\"bytes\":7"]);
        let large = vec![b'y'; 3_000_000];
        let length = format!("Content-Length: {}\r\n", large.len());
        assert_says(
            &asked(kettle.address(), "PUT", "/a.php", &length, &large),
            &["\"bytes\":3000000", "\"method\":\"PUT\""],
        );
        assert_eq!(get("/a.php?large").body.len(), 2_000_000);
        let head = asked(kettle.address(), "HEAD", "/a.php?large", "", b"");
        assert_eq!(head.header("content-length"), Some("2000000"));
        for status in [302, 404, 500] {
            let response = get(&format!("/a.php?status={status}"));
            assert_eq!((response.status, response.header("location")), (status, Some("/there")));
            assert_eq!(response.header("set-cookie"), Some("a=b"));
        }
        assert_says(&get("/a.php?log"), &["a.php"]);
        kettle.messages().wait_for("a word for the log");
        assert_eq!(get("/a.php?die").status, 200);
        kettle.wait_for_status("/backends/0/servers/0/health", "up");
    }
}

/// A request that has no process waits for one in the queue, and nobody is turned away.
#[test]
fn more_clients_than_processes_are_all_answered() {
    let Some(php) = Php::start(2) else { return };
    let setup = programs("", "", "queue_timeout = \"60s\"", &[php.address]);
    let kettle = Kettle::start(with_programs(setup.more("connections = 2\n")));
    let address = kettle.address();
    thread::scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| {
                assert_says(&asked(address, "GET", "/a.php?wait", "", b""), &["/a.php"]);
            });
        }
    });
}

/// Each of two processes is free as soon as it has said all, whoever reads that, and when.
#[test]
fn clients_that_take_their_time_keep_no_process() {
    let Some(php) = Php::start(2) else { return };
    let settings = "queue_timeout = \"60s\"";
    let setup = programs("", "", settings, &[php.address]).more("connections = 2\n");
    let kettle = Kettle::start(with_programs(setup));
    let mut slow: Vec<_> = (0..10)
        .map(|_| {
            let mut client = Dialer::default().reading_slowly().connect(kettle.address());
            client.send(&request("GET", "/a.php?huge", "")).unwrap();
            client
        })
        .collect();
    assert_says(&asked(kettle.address(), "GET", "/a.php", "", b""), &["/a.php"]);
    for client in &mut slow {
        assert_eq!(any_response(client).body.len(), 12_000_000);
    }
    kettle.wait_for_status("/spool/bytes", 0);
}

/// Both processes stay free for a quick client while ten take 10 KB in a second each.
#[test]
fn ten_clients_of_ten_kilobytes_in_a_second_keep_no_process() {
    let Some(php) = Php::start(2) else { return };
    let setup = programs("", "", "queue_timeout = \"60s\"", &[php.address]);
    let kettle = Kettle::start(with_programs(setup.more("connections = 2\n")));
    let address = kettle.address();
    let is_over = AtomicBool::new(false);
    let paced = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| {
                let mut client = Dialer::default().reading_slowly().connect(address);
                client.send(&request("GET", "/a.php?huge", "")).unwrap();
                while !is_over.load(Ordering::Relaxed) {
                    let mut room = [0; 1_000];
                    paced.fetch_add(client.receive(&mut room).unwrap(), Ordering::Relaxed);
                    thread::park_timeout(Duration::from_millis(100));
                }
            });
        }
        // Each has begun, and has 12 MB to come.
        wait_until("ten clients read", || paced.load(Ordering::Relaxed) >= 10_000);
        let begun = Instant::now();
        for _ in 0..20 {
            assert_says(&asked(address, "GET", "/a.php", "", b""), &["/a.php"]);
        }
        is_over.store(true, Ordering::Relaxed);
        // Taken at that speed one of the responses alone lasts 20 minutes.
        assert!(begun.elapsed() < patience());
    });
    kettle.wait_for_status("/spool/bytes", 0);
}

/// The example that comes with packages, on PHP itself.
#[test]
fn wordpress_is_served_as_its_example_has_it() {
    let Some(php) = Php::start(2) else { return };
    let own = &EXAMPLE[EXAMPLE.find("compress = ").unwrap()..];
    let own = own.replace("unix:/run/php/php8.4-fpm.sock", &php.address.to_string());
    let (route, rest) = own.split_once("[site.route.fastcgi]").unwrap();
    let setup = Setup::default()
        .route(&format!("backend = \"php\"\n{route}"))
        .more(&format!("[site.route.fastcgi]{rest}"));
    let setup = with_programs(setup).file("www/wp-content/uploads/evil.php", SAYS);
    let kettle = Kettle::start(setup.file("www/wp-config.php", SAYS));
    let get = |target: &str| asked(kettle.address(), "GET", target, "", b"");
    assert_says(&get("/a/post/?p=1"), &["\"file\":\"index.php\"", "\"uri\":\"/a/post/?p=1\""]);
    assert_says(&get("/wp-admin/"), &["\"script\":\"/wp-admin/index.php\""]);
    assert_eq!(get("/b.css").header("cache-control"), Some("max-age=31536000"));
    for target in ["/xmlrpc.php", "/wp-config.php", "/wp-content/uploads/evil.php"] {
        assert_eq!(get(target).status, 403, "{target}");
    }
    assert_says(&get("/wp-content/uploads/evil.php/x"), &["\"file\":\"index.php\""]);
}

#[test]
fn a_cgi_program_runs_behind_fcgiwrap() {
    let Some(program) = program("fcgiwrap") else { return };
    let address = unused_address();
    let folder = TempDir::new().unwrap();
    let script = folder.path().join("says");
    // Its lines end with LF alone.
    let text = "#!/bin/sh\necho 'Content-Type: text/plain'\necho \"X-Info: $PATH_INFO\"\necho\n\
                echo \"$SCRIPT_NAME $GIT_ROOT $REMOTE_USER|\"\ncat\necho 'for the log' >&2\n";
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
    let _running = Tool::new(program).args(["-s", &format!("tcp:{address}")]).start();
    wait_until_listening(address);
    let more = format!(
        "\n[[site.route]]\nprefix = \"/git\"\nbackend = \"cgi\"\n[site.route.fastcgi]\nscript = \"{}\"\npath_info = true\n\
         params = {{ GIT_ROOT = \"/srv/git\" }}\n[[backend]]\nname = \"cgi\"\nprotocol = \"fastcgi\"\n\
         [[backend.server]]\naddress = \"{address}\"\n",
        script.display()
    );
    let kettle = Kettle::start(Setup::default().more(&more));
    let response =
        asked(kettle.address(), "POST", "/git/a.git/x?y", "Content-Length: 4\r\n", b"sent");
    assert_eq!(response.header("x-info"), Some("/a.git/x"));
    assert_eq!(String::from_utf8_lossy(&response.body), "/git /srv/git |\nsent");
}

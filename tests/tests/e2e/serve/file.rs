//! Which file answers for which path, and with which head.

use std::fs::File;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use kettle_tests::client::Client;
use kettle_tests::environment::scaled;
use kettle_tests::http::{Connection, Response, request};
use kettle_tests::kettle::Kettle;
use kettle_tests::setup::Setup;
use kettle_tests::suite::TLS13_AES_128;
use kettle_tests::tool::Tool;
use kettle_tests::transcript::contains;

#[test]
fn nothing_outside_the_root_is_served() {
    let setup = Setup::default().file("secret", "the secret").file("www/inside/a", "a");
    let kettle = Kettle::start(setup);
    symlink(kettle.folder.path("secret"), kettle.folder.path("www/link")).unwrap();
    symlink("../..", kettle.folder.path("www/inside/up")).unwrap();
    let mut client = kettle.connect(TLS13_AES_128);
    for target in [
        "/../secret",
        "/inside/../../secret",
        "/..%2fsecret",
        "/%2e%2e/secret",
        "/.%2e/secret",
        "/%252e%252e/secret",
        "/..\\secret",
        "/..%5csecret",
        "/..%c0%afsecret",
        "/%c0%ae%c0%ae/secret",
        "/inside/..%00/secret",
        "/secret%00",
        "/link",
        "/inside/up/secret",
        "https://localhost/../secret",
        "//../secret",
        "/inside//../../secret",
    ] {
        client.send(&request("GET", target, "")).unwrap();
        let response = client.response();
        assert!(matches!(response.status, 400 | 403 | 404), "{target}: {}", response.status);
        assert!(!contains(&response.body, b"the secret"), "{target}");
        if response.header("connection") == Some("close") {
            client = kettle.connect(TLS13_AES_128);
        }
    }
}

#[test]
fn a_file_exchanged_for_a_link_again_and_again_lets_nothing_out() {
    let setup = Setup::default().file("secret", "the secret").set("limits", "revalidate = \"0s\"");
    let kettle = Kettle::start(setup);
    let (file, link) = (kettle.folder.path("www/a"), kettle.folder.path("www/link"));
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                kettle.folder.replace("www/a", "harmless");
                symlink("../secret", &link).unwrap();
                std::fs::rename(&link, &file).unwrap();
            }
        });
        // Also when an assertion fails: the other thread would go on for ever.
        let _ends = Ends(&is_over);
        let mut client = kettle.connect(TLS13_AES_128);
        for _ in 0..1_000 {
            let response = client.get("/a");
            assert!(response.status == 404 || response.body == b"harmless", "{}", response.head);
        }
    });
}

/// Says that something is over when it goes.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn links_below_the_root_are_followed_unless_forbidden() {
    for (rule, status) in [("beneath", 200), ("never", 404)] {
        let setup = Setup::default().file("www/a", "a").route(&format!("symlinks = {rule:?}"));
        let kettle = Kettle::start(setup);
        symlink("a", kettle.folder.path("www/link")).unwrap();
        assert_eq!(kettle.connect(TLS13_AES_128).get("/link").status, status, "{rule}");
    }
}

#[test]
fn only_regular_files_without_a_dot_are_served() {
    let kettle =
        Kettle::start(Setup::default().file("www/.hidden", "x").file("www/.git/config", "x"));
    let fifo = kettle.folder.path("www/fifo");
    kettle_tests::tool::Tool::new("mkfifo").args([&fifo]).run();
    let mut client = kettle.connect(TLS13_AES_128);
    for target in
        ["/.hidden", "/.git/config", "/fifo", "/nothing", &format!("/{}", "x".repeat(300))]
    {
        assert_eq!(client.get(target).status, 404, "{target}");
    }
}

#[test]
fn a_folder_answers_with_its_index_after_a_redirect_to_its_slash() {
    let kettle = Kettle::start(Setup::default().file("www/folder/index.html", "the index"));
    let mut client = kettle.connect(TLS13_AES_128);
    let redirect = client.get("/folder?query");
    assert_eq!((redirect.status, redirect.header("location")), (301, Some("/folder/?query")));
    let index = client.get("/folder/");
    assert_eq!((index.status, index.body), (200, b"the index".to_vec()));
    assert!(index.head.contains("text/html; charset=utf-8"));
}

#[test]
fn a_folder_without_an_index_is_listed_only_where_the_configuration_says() {
    let name = "www/a <b>&\"c\".txt";
    for (listing, status) in [("false", 403), ("true", 200)] {
        let setup = Setup::default().file(name, "x").route(&format!("listing = {listing}"));
        let kettle = Kettle::start(setup);
        let mut client = kettle.connect(TLS13_AES_128);
        let page = client.get("/");
        assert_eq!(page.status, status);
        if status == 200 {
            let text = String::from_utf8(page.body).unwrap();
            assert!(text.contains("a &lt;b&gt;&amp;") && !text.contains("<b>"), "{text}");
            let json = ask(&mut client, "/", "Accept: application/json\r\n");
            assert_eq!(json.header("content-type"), Some("application/json"));
            let items: serde_json::Value = serde_json::from_slice(&json.body).unwrap();
            assert!(items.to_string().contains("a <b>&"), "{items}");
        }
    }
}

#[test]
fn the_compressed_form_that_the_client_ranks_highest_is_sent() {
    let setup = Setup::default()
        .route("precompressed = [\"br\", \"zstd\", \"gzip\"]")
        .file("www/a.html", "plain")
        .file("www/a.html.br", "brotli")
        .file("www/a.html.zst", "zstandard")
        .file("www/a.html.gz", "gzip");
    let kettle = Kettle::start(setup);
    let mut client = kettle.connect(TLS13_AES_128);
    for (accepted, body, coding) in [
        ("", "plain", None),
        ("Accept-Encoding: gzip\r\n", "gzip", Some("gzip")),
        ("Accept-Encoding: gzip, br\r\n", "brotli", Some("br")),
        ("Accept-Encoding: gzip;q=1, br;q=0.5, zstd;q=0\r\n", "gzip", Some("gzip")),
        ("Accept-Encoding: zstd\r\n", "zstandard", Some("zstd")),
        ("Accept-Encoding: identity\r\n", "plain", None),
    ] {
        let response = ask(&mut client, "/a.html", accepted);
        assert_eq!(String::from_utf8_lossy(&response.body), body, "{accepted}");
        assert_eq!(response.header("content-encoding"), coding, "{accepted}");
        assert_eq!(response.header("vary"), Some("accept-encoding"));
        assert_eq!(response.header("content-type"), Some("text/html; charset=utf-8"));
    }
}

#[test]
fn a_changed_file_is_served_anew() {
    let setup = Setup::default().file("www/a", "old").set("limits", "revalidate = \"0s\"");
    let kettle = Kettle::start(setup);
    let mut client = kettle.connect(TLS13_AES_128);
    let old = client.get("/a");
    kettle.folder.replace("www/a", "the new content");
    let new = client.get("/a");
    assert_eq!(new.body, b"the new content");
    assert_ne!(new.header("etag"), old.header("etag"));
}

#[test]
fn releases_exchanged_under_load_are_never_missing_and_never_mixed() {
    let setup = Setup::default().file("www/unused", "").set("limits", "revalidate = \"1ms\"");
    let kettle = Kettle::start(setup);
    let root = kettle.folder.path("www");
    let release = |number: usize| {
        let path = kettle.folder.path(&format!("release-{number}"));
        std::fs::create_dir(&path).unwrap();
        for name in ["small", "large"] {
            let line = format!("{number}\n");
            let lines = if name == "small" { 10 } else { 100_000 };
            std::fs::write(path.join(name), line.repeat(lines)).unwrap();
        }
        symlink(&path, kettle.folder.path("next")).unwrap();
        path
    };
    std::fs::remove_dir_all(&root).unwrap();
    let mut current = release(0);
    std::fs::rename(kettle.folder.path("next"), &root).unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for name in ["small", "large", "small"] {
            let mut client = kettle.connect(TLS13_AES_128);
            let is_over = &is_over;
            scope.spawn(move || {
                let mut newest = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let response = client.get(&format!("/{name}"));
                    assert_eq!(response.status, 200, "{}", response.head);
                    let text = String::from_utf8(response.body).unwrap();
                    let number: usize = text.lines().next().unwrap().parse().unwrap();
                    assert!(text.lines().all(|line| line.parse() == Ok(number)), "two in one");
                    assert!(number >= newest, "{number} after {newest}");
                    newest = number;
                }
            });
        }
        for number in 1..=scaled(200, 20) {
            let next = release(number);
            std::fs::rename(kettle.folder.path("next"), &root).unwrap();
            std::fs::remove_dir_all(std::mem::replace(&mut current, next)).unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_root_that_is_not_there_ends_the_start_with_its_name() {
    let (_, folder) = Setup::default().lay_out();
    std::fs::remove_dir(folder.path("www")).unwrap();
    let ended = Tool::kettle(["run".into(), "--config".into(), folder.config()]).output();
    assert!(!ended.status.success());
    assert!(ended.stderr.contains("www"), "{}", ended.stderr);
}

/// Small files by their content; larger ones where hosts are said to have copies with the same times.
#[test]
fn hosts_agree_on_the_tag_of_a_file_and_contents_do_not() {
    const LARGE: usize = 70_000;
    let start = |route: &str| {
        let setup = Setup::default().file("www/a", "one").file("www/b", "two").route(route);
        let setup = setup.file("www/large", [b'1'; LARGE]).file("www/other", [b'2'; LARGE]);
        let kettle = Kettle::start(setup);
        let time = SystemTime::UNIX_EPOCH + Duration::new(1_700_000_000, 123_456_789);
        for name in ["www/a", "www/b", "www/large", "www/other"] {
            let file = File::options().write(true).open(kettle.folder.path(name)).unwrap();
            file.set_modified(time).unwrap();
        }
        let mut client = kettle.connect(TLS13_AES_128);
        ["/a", "/b", "/large", "/other"]
            .map(|target| client.get(target).header("etag").unwrap().to_owned())
    };
    let [a, b, large, _] = start("");
    let [same_a, same_b, large_there, _] = start("");
    assert_eq!((&a, &b), (&same_a, &same_b));
    assert_ne!(a, b);
    assert_ne!(large, large_there);
    let [here, there] = [(); 2].map(|()| start("same_files = true"));
    assert_eq!(here, there);
    assert_eq!(here[0], a);
    assert_eq!(here[2], here[3], "all that is known is the same");
}

#[test]
fn a_condition_that_holds_saves_the_body() {
    let kettle = Kettle::start(Setup::default().file("www/a", "content"));
    let mut client = kettle.connect(TLS13_AES_128);
    let response = client.get("/a");
    let etag = response.header("etag").unwrap();
    let modified = response.header("last-modified").unwrap();
    for (condition, status) in [
        (format!("If-None-Match: {etag}"), 304),
        (format!("If-None-Match: \"other\", W/{etag}"), 304),
        ("If-None-Match: *".to_owned(), 304),
        ("If-None-Match: \"other\"".to_owned(), 200),
        (format!("If-Modified-Since: {modified}"), 304),
        ("If-Modified-Since: Thu, 01 Jan 1998 00:00:00 GMT".to_owned(), 200),
        (format!("If-Match: {etag}"), 200),
        ("If-Match: \"other\"".to_owned(), 412),
        ("If-Unmodified-Since: Thu, 01 Jan 1998 00:00:00 GMT".to_owned(), 412),
    ] {
        let response = ask(&mut client, "/a", &format!("{condition}\r\n"));
        assert_eq!(response.status, status, "{condition}");
        if status == 304 {
            assert_eq!(response.header("etag"), Some(etag));
        }
    }
}

#[test]
fn head_says_what_get_would() {
    let kettle = Kettle::start(Setup::default().file("www/a.css", "content"));
    let mut client = kettle.connect(TLS13_AES_128);
    for target in ["/a.css", "/missing"] {
        let got = client.get(target);
        client.send(&request("HEAD", target, "")).unwrap();
        let of_head = client.response_head();
        let lines = |head: &str| -> Vec<String> {
            head.lines().filter(|line| !line.starts_with("date:")).map(str::to_owned).collect()
        };
        assert_eq!(lines(&of_head.head), lines(&got.head));
    }
}

/// Memory is taken for more than the bytes of files: for their heads, their names, and by the tables.
#[test]
fn small_files_take_no_more_memory_than_they_are_given() {
    for (bytes, files) in [(512, 12_000), (2_048, 6_000), (16 * 1024, 900)] {
        let setup = Setup::default().set("limits", &format!("hot_memory = \"{HOT_MIB}MiB\""));
        let setup = setup.set("server", "workers = 1").set("server", "dumpable = true");
        let kettle = Kettle::start(setup.file("www/first", "x"));
        for file in 0..files {
            kettle.folder.write(&format!("www/{file}"), vec![b'x'; bytes]);
        }
        let mut client = kettle.connect(TLS13_AES_128);
        assert_eq!(client.get("/first").status, 200);
        let before = kettle.memory_bytes();
        (0..files).for_each(|file| assert_eq!(client.get(&format!("/{file}")).body.len(), bytes));
        let grown = kettle.memory_bytes().saturating_sub(before) as f64;
        let share = grown / f64::from(HOT_MIB << 20);
        assert!((0.8..1.15).contains(&share), "{bytes} bytes: {share:.2} of hot_memory");
    }
}

/// For small files, in the test above.
const HOT_MIB: u32 = 12;

fn ask(client: &mut Client, target: &str, fields: &str) -> Response {
    client.send(&request("GET", target, fields)).unwrap();
    client.response()
}

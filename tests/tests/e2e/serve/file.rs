//! Which file answers for which path, and with which head.

use std::fs::File;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use kettle_tests::transcript::contains;

use kettle_tests::environment::Ends;

use super::*;

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
        let response = client.exchange(&request("GET", target, ""));
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
    let file = kettle.folder.path("www/a");
    let link = kettle.folder.path("www/link");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                kettle.folder.replace("www/a", "harmless");
                symlink("../secret", &link).unwrap();
                std::fs::rename(&link, &file).unwrap();
            }
        });
        let _ends = Ends(&is_over);
        let mut client = kettle.connect(TLS13_AES_128);
        for _ in 0..1_000 {
            let response = client.get("/a");
            assert!(response.status == 404 || response.body == b"harmless", "{}", response.head);
        }
    });
}

#[test]
fn links_below_the_root_are_followed_unless_forbidden() {
    for (rule, status) in [("beneath", 200), ("never", 403)] {
        let setup = Setup::default().file("www/a", "a").route(&format!("symlinks = {rule:?}"));
        let kettle = Kettle::start(setup);
        symlink("a", kettle.folder.path("www/link")).unwrap();
        assert_eq!(kettle.connect(TLS13_AES_128).get("/link").status, status, "{rule}");
    }
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
    folder.kettle("run").fail("www");
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

//! The verdict of other people's suites and clients on it.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

use kettle_tests::environment::go_program_or_skip;
use kettle_tests::websocket::agreement;

use super::*;

fn is_here_or_skip(program: &str) -> bool {
    let mut command = Command::new(program);
    let asked = command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    asked.is_ok() || {
        skip(&format!("no {program} here"));
        false
    }
}

fn setup() -> Setup {
    any_name(over_http2())
}

/// With a site for addresses, which these clients ask for.
fn any_name(setup: Setup) -> Setup {
    setup.sizes(&SIZES).another_site(&["_"], "localhost", "[[site.route]]\nroot = \"www\"")
}

/// The streams of a connection were served whole, over HTTP/2, and nothing of them is left.
fn assert_served(kettle: &Kettle, targets: impl IntoIterator<Item = (String, usize)>) {
    let mut streams = 0;
    for (target, bytes) in targets {
        let entry = kettle.entry(&target);
        let found = (entry.text("version"), entry.path(), entry.number("body_bytes"));
        assert!(entry.is_complete(), "{target}");
        assert_eq!((found.0, found.2), ("HTTP/2.0", bytes as u64), "{target}");
        assert!(found.1.starts_with("user"), "{target}: {}", found.1);
        streams += 1;
    }
    kettle.wait_for_status("/total/http2_streams", streams);
    kettle.wait_until_idle();
}

#[test]
fn h2spec_finds_nothing_even_where_it_is_strict() {
    let Some(program) = go_program_or_skip("h2spec") else { return };
    for path in ["user", "kernel-write"] {
        if paths_here().contains(&path) {
            let listener = format!("http2 = true\npath = {path:?}");
            let kettle = Kettle::start(any_name(Setup::default().listener(&listener)));
            let words = ["--tls", "--insecure"];
            h2spec_finds_nothing(&program, &kettle, kettle.address(), (&words, 146));
        }
    }
    let plain = "kind = \"http\"\nsites = [\"_\"]\nhttp2 = true";
    let kettle = Kettle::start(any_name(Setup::default().listener("").listener(plain)));
    // All but the preface (`http2/3`): what begins otherwise is HTTP/1.1 there, and is answered so.
    let words = ["generic", "hpack", "http2/4", "http2/5", "http2/6", "http2/7", "http2/8"];
    h2spec_finds_nothing(&program, &kettle, kettle.addresses[1], (&words, 144));
}

fn h2spec_finds_nothing(
    program: &Path,
    kettle: &Kettle,
    address: SocketAddr,
    (how, tests): (&[&str], u32),
) {
    let host = address.ip().to_string();
    let port = address.port().to_string();
    let words = [&["--strict", "--host", &host, "--port", &port], how].concat();
    // A frame that does not come within this many seconds is a failure of that one test.
    let words = [&words[..], &["--timeout", scaled("5", "20")]].concat();
    // A stream that is over before h2spec has sent all it wanted to cannot end in the error it waits for.
    let ended = Tool::new(program).args(words).args(["--path", "/1048576"]).output();
    let text = ended.text();
    let last = text.lines().rev().find(|line| line.contains(" tests, ")).unwrap_or_default();
    assert_eq!(last, format!("{tests} tests, {tests} passed, 0 skipped, 0 failed"), "{text}");
    assert!(ended.status.success());
    kettle.wait_until_idle();
}

#[test]
fn h2load_gets_each_of_many_answers_over_few_connections() {
    if !is_here_or_skip("h2load") {
        return;
    }
    let kettle = Kettle::start(setup());
    let resolved = format!("https://{}/1000", kettle.address());
    let words = ["-n", "5000", "-c", "5", "-m", "100", &resolved];
    let said = Tool::new("h2load").args(words).succeed();
    assert!(said.contains("5000 succeeded, 0 failed, 0 errored, 0 timeout"), "{said}");
    kettle.wait_for_status("/total/http2_streams", 5_000);
    kettle.wait_until_idle();
}

/// Whatever order its streams come in, there is nothing but this letter.
#[test]
fn nghttp_gets_a_hundred_streams_at_once() {
    if !is_here_or_skip("nghttp") {
        return;
    }
    let kettle = Kettle::start(setup().file("www/k", "k".repeat(50_000)));
    let asked = format!("https://{}/k", kettle.address());
    let got = Tool::new("nghttp").args(["--multiply=100", &asked]).output();
    assert_eq!(got.stdout.len(), 100 * 50_000, "{}", got.stderr);
    assert!(got.stdout.iter().all(|byte| *byte == b'k'));
    assert_served(&kettle, vec![("/k".to_owned(), 50_000); 100]);
}

#[test]
fn curl_gets_many_files_at_once_over_one_connection() {
    let kettle = Kettle::start(setup());
    let output = kettle.folder.path("got/#1-#2").display().to_string();
    let words = ["--http2", "--parallel", "--parallel-max", "90", "--create-dirs"];
    let words = [&words[..], &["--output", &output, "--fail"]].concat();
    let _ = kettle.curl(&words, "/{1000,16375,1048576}?[1-30]").succeed();
    let asked = SIZES.iter().flat_map(|bytes| (1..=30).map(move |number| (*bytes, number)));
    for (bytes, number) in asked.clone() {
        let got = std::fs::read(kettle.folder.path(&format!("got/{bytes}-{number}"))).unwrap();
        assert_same(&got, &content(bytes), &format!("{bytes}-{number}"));
    }
    assert_served(&kettle, asked.map(|(bytes, number)| (format!("/{bytes}?{number}"), bytes)));
}

#[test]
fn the_client_of_go_gets_many_files_at_once_over_one_connection() {
    let Some(program) = go_program_or_skip("client") else { return };
    let kettle = Kettle::start(setup());
    let names = SIZES.map(|bytes| bytes.to_string());
    let said = Tool::new(program)
        .args([format!("https://{}", kettle.address())])
        .args([kettle.folder.path("www")])
        .args(["90"])
        .args(&names)
        .succeed();
    assert_eq!(said, "90 whole\n");
    let asked = (0..90).map(|number| SIZES[number % SIZES.len()]);
    assert_served(&kettle, asked.map(|bytes| (format!("/{bytes}"), bytes)));
    assert_eq!(kettle.status("/total/connections"), 1);
}

#[test]
fn the_client_of_python_gets_files_and_sends_bodies_at_once_over_one_connection() {
    const PYTHON: &str = "/usr/bin/python3";
    let has_client = Tool::new(PYTHON).args(["-c", "import h2, httpx"]).output().status.success();
    if !has_client {
        return skip("no httpx for Debian's Python here");
    }
    let servers = Backend::listen();
    let route = "[[site.route]]\nprefix = \"/app\"\nbackend = \"app\"\n";
    let app = backend("app", "", &[servers.address()]);
    let kettle = Kettle::start(setup().more(route).more(&app));
    let url = format!("https://{}", kettle.address());
    let asking = std::thread::spawn(move || {
        Tool::new(PYTHON)
            .args(["-c", ASK_MANY])
            .args([url])
            .args(SIZES.map(|it| it.to_string()))
            .succeed()
    });
    let mut server = servers.accept_request();
    assert_same(&read_exactly(&mut server, 300_000), &vec![b'x'; 300_000], "a body");
    server.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone").unwrap();
    assert_eq!(asking.join().unwrap(), "HTTP/2 30 whole, done\n");
    assert_eq!(kettle.status("/total/http2_streams"), 31);
    assert_eq!(kettle.status("/total/connections"), 1);
}

#[test]
fn chromium_shows_a_page_of_a_hundred_images() {
    if !is_here_or_skip("chromium") {
        return;
    }
    let image = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"8\" height=\"8\"/>";
    let mut page = String::from("<!doctype html><link rel=icon href=data:,><body>");
    let mut setup = setup();
    for number in 0..100 {
        write!(page, "<img src={number}.svg>").unwrap();
        setup = setup.file(&format!("www/{number}.svg"), image);
    }
    page.push_str(COUNT_IMAGES);
    let kettle = Kettle::start(setup.file("www/page.html", page.as_str()));
    let profile = format!("--user-data-dir={}", kettle.folder.path("profile").display());
    let url = format!("https://{}/page.html", kettle.address());
    let shown = Tool::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--ignore-certificate-errors"])
        .args([&profile, "--dump-dom", &url])
        .succeed();
    assert!(shown.contains("data-images=\"100\""), "{shown}");
    let images = (0..100).map(|number| (format!("/{number}.svg"), image.len()));
    assert_served(&kettle, images.chain([("/page.html".to_owned(), page.len())]));
}

#[test]
fn chromium_speaks_websocket_over_the_connection_it_has() {
    if !is_here_or_skip("chromium") {
        return;
    }
    let servers = Backend::listen();
    let route = "[[site.route]]\nprefix = \"/ws\"\nbackend = \"app\"\nwebsocket = true\n";
    let setup = setup().more(route).more(&backend("app", "", &[servers.address()]));
    let kettle = Kettle::start(setup.file("www/page.html", SAY_HELLO));
    let profile = format!("--user-data-dir={}", kettle.folder.path("profile").display());
    let url = format!("https://{}/page.html", kettle.address());
    let showing = std::thread::spawn(move || {
        Tool::new("chromium")
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--ignore-certificate-errors"])
            .args([&profile, "--dump-dom", &url])
            .succeed()
    });
    let asked = || {
        let mut server = servers.accept();
        let head = String::from_utf8(read_until(&mut server, b"\r\n\r\n")).unwrap();
        (server, head)
    };
    let mut both = [asked(), asked()];
    both.sort_by_key(|(_, head)| head.contains("/ws/last"));
    let [(mut server, head), (mut last, _)] = both;
    server.write_all(agreement(&head).as_bytes()).unwrap();
    // A text of five letters, masked as a client's frames are (RFC 6455 §5.2).
    let asked = read_exactly(&mut server, 11);
    assert_eq!(asked[..2], [0x81, 0x85]);
    let text: Vec<u8> =
        asked[6..].iter().zip(&asked[2..6].repeat(2)).map(|(it, key)| it ^ key).collect();
    assert_eq!(text, b"hello");
    server.write_all(b"\x81\x05world").unwrap();
    // It says goodbye with a status.
    assert_eq!(read_exactly(&mut server, 2)[0], 0x88);
    server.write_all(b"\x88\x02\x03\xe8").unwrap();
    // Until this image is there, the page is not.
    last.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").unwrap();
    drop(server);
    let shown = showing.join().unwrap();
    assert!(shown.contains("data-said=\"world\""), "{shown}");
    let entry = kettle.entry("/ws");
    assert_eq!((entry.text("version"), entry.number("status")), ("HTTP/2.0", 200));
    assert_eq!(kettle.tunnel().number("connection"), entry.number("connection"));
}

/// Asks for files of these sizes, ten each, and sends a body meanwhile.
const ASK_MANY: &str = "
import asyncio, httpx, sys
async def main(url, sizes):
    limits = httpx.Limits(max_connections=1)
    async with httpx.AsyncClient(http2=True, verify=False, limits=limits, timeout=60) as client:
        await client.get(f'{url}/{sizes[0]}')
        files = [client.get(f'{url}/{size}') for size in sizes * 10][1:]
        sent, *got = await asyncio.gather(client.post(f'{url}/app/x', content=b'x' * 300_000), *files)
        whole = sum(len(it.content) == int(it.url.path[1:]) for it in got) + 1
        print(sent.http_version, whole, 'whole,', sent.text)
asyncio.run(main(sys.argv[1], sys.argv[2:]))
";

/// Says a word over WebSocket, and shows what comes back.
const SAY_HELLO: &str = "<!doctype html><link rel=icon href=data:,><body><img src=/ws/last><script>
    const socket = new WebSocket(`wss://${location.host}/ws`);
    socket.onopen = () => socket.send('hello');
    socket.onmessage = it => { document.body.dataset.said = it.data; socket.close(); };
</script>";

const SIZES: [usize; 3] = [1_000, 16_375, 1 << 20];

const COUNT_IMAGES: &str = "<script>onload = () => document.body.dataset.images = \
    [...document.images].filter(it => it.naturalWidth > 0).length</script>";

//! Random configurations, served by nginx and by kettle as it imports them. Nothing may become looser: kettle answers with
//! success, and asks a backend, only where nginx does so with the same bytes, and names no type that browsers run where nginx
//! names another.
//!
//! `KETTLE_IMPORT_CONFIGURATIONS` says how many configurations are made of a fresh seed beside the fixed ones, and
//! `KETTLE_IMPORT_SEED` which one is made alone. A fault names its seed.

mod cases;
mod random;

use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use random::{Configuration, Random, Request};

use super::*;

#[test]
fn no_random_configuration_becomes_looser() {
    if !Path::new(NGINX_PROGRAM).exists() {
        return skip("nginx is not installed");
    }
    let number = |name: &str| std::env::var(name).ok().and_then(|it| it.parse::<u64>().ok());
    let seeds: Vec<u64> = match number("KETTLE_IMPORT_SEED") {
        Some(seed) => vec![seed],
        None => {
            let fixed = FIXED.lines().map(|seed| seed.parse().unwrap());
            let fresh = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64;
            let count = number("KETTLE_IMPORT_CONFIGURATIONS").unwrap_or(FRESH);
            println!("fresh seeds begin at {fresh}");
            fixed.chain(fresh..fresh.saturating_add(count)).collect()
        }
    };
    let mut served = 0;
    let mut faults = Vec::new();
    for seed in seeds {
        let _seed = Seed(seed);
        let Some(mut found) = Trial::new(seed).faults() else { continue };
        served += 1;
        faults.append(&mut found);
        if faults.len() >= FAULTS_MAX {
            break;
        }
    }
    assert!(faults.is_empty(), "{}", faults.concat());
    println!("{served} configurations were taken by nginx and served by kettle");
}

/// Says the seed of what fails otherwise than by a fault.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("KETTLE_IMPORT_SEED={} does it again", self.0);
        }
    }
}

/// Both programs with one configuration.
struct Trial {
    seed: u64,
    random: Random,
    configuration: Configuration,
    place: Place,
}

/// The outcome of a request.
#[derive(PartialEq, Eq)]
struct Outcome {
    status: u16,
    kind: String,
    body: Vec<u8>,
    /// True if a backend was asked.
    is_passed: bool,
}

impl Trial {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let configuration = random.configuration();
        let mut files: Vec<(&str, Vec<u8>)> = vec![("t/x", Vec::new())];
        files.extend(FILES.lines().map(|name| (name, format!("this is {name}").into_bytes())));
        files.push(("users", USERS.as_bytes().to_vec()));
        let place = Place::new("", &files);
        let issued = issue(&HOSTS, Kind::Ecdsa);
        fs::write(place.path("ssl/example.crt"), issued.chain).unwrap();
        fs::write(place.path("ssl/example.key"), issued.key).unwrap();
        Self { seed, random, configuration, place }
    }

    /// The faults of kettle; nothing where nginx does not take the configuration, or nothing is left of it.
    fn faults(mut self) -> Option<Vec<String>> {
        let theirs = Server::nginx(&self)?;
        let ours = Server::kettle(&self)?;
        let mut faults = Vec::new();
        for _ in 0..REQUESTS {
            let request = self.random.request();
            let host = request.host;
            let [expected, found] = [&theirs, &ours].map(|server| server.ask(&request, host));
            // nginx 1.22 falls over a path that `try_files` made shorter than its location, before `proxy_pass` with a path.
            if expected.status == 0 && TcpStream::connect(theirs.address).is_err() {
                println!("seed {}: nginx ended at {request}", self.seed);
                break;
            }
            // Servers are asked for paths without what kettle merges and resolves.
            let has_other_page = || {
                expected.is_passed && found.is_passed && request.is_resolved()
                    || request.is_for_folder() && theirs.has_page(&found, host)
            };
            if let Some(why) = looser(&expected, &found, has_other_page) {
                let said = format!("{request}\nnginx:  {expected}\nkettle: {found}");
                faults.push(self.described(&format!("{why}: {said}"), &ours));
                break;
            }
        }
        for (number, (nginx, kettle)) in theirs.streams.iter().zip(&ours.streams).enumerate() {
            let [is_passed_there, is_passed] = [theirs.carries(*nginx), ours.carries(*kettle)];
            if is_passed && !is_passed_there {
                let why = format!("stream {number} is carried, and not by nginx");
                faults.push(self.described(&why, &ours));
            }
        }
        Some(faults)
    }

    fn described(&self, why: &str, ours: &Server) -> String {
        let Self { seed, configuration, .. } = self;
        let said = ours.text.lines().filter(|line| !line.is_empty());
        let said: Vec<&str> = said.skip_while(|line| !line.starts_with("# ")).collect();
        format!("\nseed {seed}: {why}\n{configuration}\n{}\n", said.join("\n"))
    }

    fn text(&self, address: SocketAddr, streams: &[SocketAddr], backend: SocketAddr) -> PathBuf {
        let mut text = self.configuration.to_string();
        for (number, stream) in streams.iter().enumerate() {
            text = text.replace(&format!("STREAM{number}"), &stream.to_string());
        }
        let text = text.replace("BACKEND", &backend.to_string());
        let folder = self.place.folder.path().to_str().unwrap();
        let text = SAID.iter().fold(text, |text, (word, said)| text.replace(word, said));
        let text = text.replace("ADDRESS", &address.to_string()).replace("FOLDER", folder);
        let path = self.place.path("nginx.conf");
        fs::write(&path, text).unwrap();
        path
    }
}

/// Returns why kettle's answer is looser than nginx's. Another index of a folder is one page more that nginx gives to the same client.
fn looser(
    nginx: &Outcome,
    kettle: &Outcome,
    has_other_page: impl Fn() -> bool,
) -> Option<&'static str> {
    let is_good = |status: u16| (200..300).contains(&status);
    if kettle.status == 0 && kettle.body.is_empty() {
        return Some("no answer");
    }
    if kettle.is_passed && !nginx.is_passed {
        return Some("a backend is asked");
    }
    if !is_good(kettle.status) {
        return None;
    }
    if !is_good(nginx.status) {
        return Some("success");
    }
    // Lists of folders have a form of their own.
    let is_list = |it: &Outcome| it.body.windows(8).any(|bytes| bytes == b"Index of");
    // Where two beginnings of a path meet, a backend is sent one slash here and two by nginx.
    let is_slashed = kettle.is_passed
        && String::from_utf8_lossy(&nginx.body).replace("//", "/")
            == String::from_utf8_lossy(&kettle.body);
    if nginx.body != kettle.body && !is_list(nginx) && !is_slashed && !has_other_page() {
        return Some("another body");
    }
    let is_run = RUN.iter().any(|kind| kettle.kind.contains(kind));
    // The configuration's own text is one, and of one type here.
    let is_said = kettle.body == b"said";
    (is_run && !is_said && class(&kettle.kind) != class(&nginx.kind))
        .then_some("a type that browsers run")
}

/// One word for all names of a type.
fn class(kind: &str) -> &str {
    match kind {
        kind if kind.contains("javascript") => "javascript",
        "text/xml" => "application/xml",
        kind => kind,
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { status, kind, body, is_passed } = self;
        let body = String::from_utf8_lossy(body.get(..80).unwrap_or(body)).replace('\n', " ");
        let passed = if *is_passed { " from a backend" } else { "" };
        write!(formatter, "{status}{passed} {kind} {body:?}")
    }
}

/// One of both programs.
struct Server {
    _running: Running,
    address: SocketAddr,
    streams: Vec<SocketAddr>,
    backend: Arc<AtomicUsize>,
    /// The configuration that kettle was started with.
    text: String,
}

impl Server {
    fn nginx(trial: &Trial) -> Option<Self> {
        let (backend, asked) = backend();
        let address = unused_address();
        let streams = trial.configuration.streams(unused_address);
        let config = trial.text(address, &streams, backend);
        let words = |tool: Tool| tool.args(["-e", "stderr", "-c"]).args([&config]);
        if !words(Tool::new(NGINX_PROGRAM).args(["-t"])).output().status.success() {
            return None;
        }
        let running = words(Tool::new(NGINX_PROGRAM)).start();
        wait_until_listening(address);
        Some(Self { _running: running, address, streams, backend: asked, text: String::new() })
    }

    fn kettle(trial: &Trial) -> Option<Self> {
        let (backend, asked) = backend();
        let address = unused_address();
        let streams = trial.configuration.streams(unused_address);
        let config = trial.text(address, &streams, backend);
        let words = ["import".as_ref(), "nginx".as_ref(), config.as_os_str()];
        let made = Tool::kettle(words).output();
        let text = made.text();
        let stderr = made.stderr;
        if text.is_empty() {
            let is_told = stderr.contains("every server was left out");
            assert!(is_told, "seed {}: {stderr}\n{}", trial.seed, trial.configuration);
            return None;
        }
        let socket = trial.place.path("admin.sock").display().to_string();
        let config = trial.place.path("kettle.toml");
        fs::write(&config, text.replace("/run/kettle/admin.sock", &socket)).unwrap();
        let checked = Tool::kettle(["check".as_ref(), config.as_os_str()]).output();
        if !checked.status.success() {
            let seed = trial.seed;
            let why = checked.text();
            assert!(
                !made.status.success(),
                "seed {seed}: what was made does not start: {why}\n{text}"
            );
            return None;
        }
        let running = Tool::kettle(["run".as_ref(), config.as_os_str()]).start();
        let first = text.split("\naddress = \"").nth(1)?.split('"').next()?.parse().unwrap();
        wait_until_listening(first);
        Some(Self { _running: running, address, streams, backend: asked, text })
    }

    /// True if an answer is an index that can be had by its own name.
    fn has_page(&self, answer: &Outcome, host: &'static str) -> bool {
        let text = String::from_utf8_lossy(&answer.body);
        let Some(path) = text.strip_prefix("this is www") else { return false };
        let page = self.ask(&Request::get(host, path), host);
        page.status == 200 && page.body == answer.body
    }

    fn ask(&self, request: &Request, host: &str) -> Outcome {
        let before = self.backend.load(Ordering::SeqCst);
        let dialer = Dialer::default().server_name(host);
        let client =
            TcpStream::connect(self.address).and_then(|_| dialer.try_connect(self.address));
        let (status, kind, body) = match client {
            Ok(client) => exchange(client, request),
            // A connection or a handshake that is refused is an answer, too.
            Err(error) => (0, String::new(), error.to_string().into_bytes()),
        };
        Outcome { status, kind, body, is_passed: self.backend.load(Ordering::SeqCst) > before }
    }

    /// True if a connection of a stream reaches the backend.
    fn carries(&self, stream: SocketAddr) -> bool {
        let before = self.backend.load(Ordering::SeqCst);
        let Ok(mut socket) = TcpStream::connect(stream) else { return false };
        socket.set_read_timeout(Some(patience())).unwrap();
        let _ = socket.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let _ = socket.read_to_end(&mut Vec::new());
        self.backend.load(Ordering::SeqCst) > before
    }
}

/// The status, the type and the body of an answer; no status where the connection ends without one.
fn exchange(mut client: Client, request: &Request) -> (u16, String, Vec<u8>) {
    let _ = client.send(&request.bytes());
    let _ = client.end();
    if client.beyond().is_empty() {
        return (0, String::new(), Vec::new());
    }
    let response = client.response_head();
    let kind = field(&response, "content-type").to_ascii_lowercase();
    let kind = kind.split(';').next().unwrap_or_default().to_owned();
    (response.status, kind, std::mem::take(client.beyond()))
}

/// A server that answers each request with its target, and how often it was asked.
fn backend() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    std::thread::spawn(move || {
        for socket in listener.incoming().map_while(Result::ok) {
            let mut lines = BufReader::new(&socket).lines().map_while(Result::ok);
            let first = lines.next().unwrap_or_default();
            // Each of both asks by a version of its own.
            let first = first.rsplit_once(' ').map_or("", |(asked, _)| asked);
            let length = first.len();
            lines.take_while(|line| !line.is_empty()).for_each(drop);
            if length > 0 {
                counted.fetch_add(1, Ordering::SeqCst);
            }
            let head =
                format!("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {length}");
            // The client may have gone.
            let _ = write!(&socket, "{head}\r\nConnection: close\r\n\r\n{first}");
        }
    });
    (address, asked)
}

const NGINX_PROGRAM: &str = "/usr/sbin/nginx";
/// Behind the first few are those that found something once.
const FIXED: &str = include_str!("beside_nginx/seeds.txt");
const FRESH: u64 = 2;
const REQUESTS: usize = 60;
const FAULTS_MAX: usize = 5;
const HOSTS: [&str; 3] = ["a.example", "b.example", "c.example"];
/// Types that a browser runs, or renders with scripts in them.
const RUN: [&str; 6] = ["html", "svg", "xml", "javascript", "wasm", "ecmascript"];
/// `ann` with the password `secret`.
const USERS: &str = "ann:$2y$05$KBCwKxOzLha2MUDgW0PjXeGy8zDyKFegpVV4y0qPBUgij10WNyKY6\n";
const FILES: &str = include_str!("beside_nginx/files.txt");

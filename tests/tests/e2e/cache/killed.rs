//! The program itself is killed at many moments while its store fills: what it serves after each start is whole, and what it had is
//! there. `KETTLE_KILLS=1000` does it a thousand times.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Instant;
use std::{env, fs, io};

use kettle_tests::setup::unused_ip;

use super::*;

#[test]
fn killed_at_any_moment_it_serves_whole_objects_and_has_what_it_had() {
    let kills: u64 = env::var("KETTLE_KILLS").map_or(10, |kills| kills.parse().unwrap());
    let store = TempDir::new().unwrap();
    let mut kettle = Kettle::start(setup(store.path(), origin()));
    let mut kept = BTreeSet::new();
    let mut hits = 0;
    let mut fills = 0;
    for round in 0..kills {
        // A purged object comes anew, so that there is always something to fill.
        let purged = round % GROUPS;
        let prefix = format!("https://localhost/app/{purged}/");
        let _ = kettle.ctl(&["cache", "purge", "--prefix", &prefix]).succeed();
        let oldest = VERSION.load(Ordering::Relaxed);
        kept.retain(|key| key % GROUPS != purged);
        let seen = fill_until_killed(&mut kettle, round);
        fills += seen.fills;
        kept.extend(seen.kept);
        kettle.start_again();
        let there = look(&kettle, store.path());
        let lost: Vec<_> = kept.iter().filter(|key| !there.contains_key(key)).collect();
        assert!(lost.is_empty(), "kill {round} lost {lost:?}");
        let of_purged = there.iter().filter(|(key, _)| *key % GROUPS == purged);
        let back: Vec<_> = of_purged.filter(|(_, version)| **version < oldest).collect();
        assert!(back.is_empty(), "kill {round} brought back {back:?}");
        hits += there.len();
        kept = there.into_keys().collect();
    }
    println!("{kills} kills, {fills} responses that were filled, {hits} hits of what was there");
    assert!(kills == 0 || (hits > 0 && fills > 0));
}

#[test]
fn what_is_purged_is_gone_after_a_loss_of_power() {
    let [folder, image, after] = [(); 3].map(|()| TempDir::new().unwrap());
    let nothing = image.path().join("nothing");
    let image = image.path().join("image");
    fs::create_dir(&nothing).unwrap();
    let mounted = Mounted::holding(folder.path().into(), "ext4", &image, &nothing);
    let Ok(_mounted) = mounted else { return skip("no ext4 can be mounted here") };
    let setup = Setup::default().set("limits", "revalidate = \"0s\"");
    let cached = Cached::in_folder(folder, setup, "", "", "");
    for target in ["/app/x", "/app/y", "/app/z"] {
        let response = ok("Cache-Control: max-age=100\r\n", "body");
        cached.get_through(target, "", &response);
        cached.wait_until_kept(target);
    }
    rustix::fs::syncfs(fs::File::open(cached.folder.path()).unwrap()).unwrap();
    let purged = cached.kettle.ctl(&["cache", "purge", "https://localhost/app/x"]).succeed();
    assert!(purged.contains("(1 files)"), "{purged}");
    // A write has removed its file before, and left it to the disk when to do so.
    cached.write("/app/z");
    cached.purge(&["https://localhost/app/z"]);
    let _after = Mounted::after_power_loss(after.path().into(), "ext4", &image).unwrap();
    assert_eq!(files(after.path()), 1);
}

/// The responses that clients saw before the end.
#[derive(Default)]
struct Seen {
    /// Those that the store had answered with, and which no validation changes.
    kept: BTreeSet<u64>,
    fills: usize,
}

/// Asks for all objects, over and over, until a kill.
fn fill_until_killed(kettle: &mut Kettle, round: u64) -> Seen {
    let is_killed = AtomicBool::new(false);
    // All are there before the kill: nobody connects behind it.
    let clients: Vec<_> =
        (0..CLIENTS).map(|_| Dialer::default().connect(kettle.address())).collect();
    let (whole, responses) = channel();
    let mut seen = Seen::default();
    thread::scope(|scope| {
        for (number, mut client) in (0..).zip(clients) {
            let whole = whole.clone();
            let is_killed = &is_killed;
            scope.spawn(move || ask_until_killed(&mut client, number + round, &whole, is_killed));
        }
        // A moment that differs by what was done, not by a clock: behind some response, or in the middle of one.
        let steps = round * 37 % 91;
        let (whole_ones, pieces) = if round.is_multiple_of(2) { (steps, 0) } else { (0, steps) };
        for _ in 0..=whole_ones {
            seen.note(responses.recv().expect("clients ask until the kill"));
        }
        let pieces = PIECES.load(Ordering::Relaxed) + pieces;
        let deadline = Instant::now() + patience();
        while PIECES.load(Ordering::Relaxed) < pieces && Instant::now() < deadline {
            thread::yield_now();
        }
        is_killed.store(true, Ordering::Release);
        kettle.kill();
        drop(whole);
        responses.iter().for_each(|it| seen.note(it));
    });
    seen
}

fn ask_until_killed(
    client: &mut Client,
    seed: u64,
    whole: &Sender<(u64, String)>,
    is_killed: &AtomicBool,
) {
    for step in 0.. {
        // Each has an order of its own, so that they meet at some and not at others.
        let key = (seed * 7 + step * (2 * seed + 1)) % KEYS;
        match ask(client, key) {
            Ok(response) => {
                whole_version(&response, key);
                let _ = whole.send((key, status(&response).to_owned()));
            }
            Err(_) if is_killed.load(Ordering::Acquire) => return,
            Err(error) => panic!("{key} was cut before the kill: {error}"),
        }
    }
}

impl Seen {
    fn note(&mut self, (key, status): (u64, String)) {
        self.fills += usize::from(status.contains("; stored"));
        if status.starts_with("kettle; hit") && !is_validated(key) {
            self.kept.insert(key);
        }
    }
}

/// Looks at the store before anybody fills it again: which objects are fresh in it, and of which version. Those that are not cost
/// a request.
fn look(kettle: &Kettle, store: &Path) -> BTreeMap<u64, u64> {
    let mut client = Dialer::default().connect(kettle.address());
    let mut fresh = BTreeMap::new();
    for key in 0..KEYS {
        let response = ask(&mut client, key).unwrap();
        let version = whole_version(&response, key);
        if status(&response).starts_with("kettle; hit") {
            fresh.insert(key, version);
        }
    }
    // An object that arrived just now gets its name a moment after its answer; what the kill left without one is gone.
    let deadline = Instant::now() + patience();
    loop {
        let status = kettle.ctl(&["cache", "status"]).succeed();
        let files = files(store);
        let is_counted = status.starts_with(&format!("main: {files} objects, "));
        if is_counted && !status.contains("still being counted") {
            return fresh;
        }
        assert!(Instant::now() < deadline, "{files} files, and {status}");
    }
}

/// The number of files there are, those of the past among them.
fn files(store: &Path) -> usize {
    let folders = fs::read_dir(store).unwrap().map(|it| it.unwrap());
    let folders = folders.filter(|it| it.file_type().unwrap().is_dir());
    folders.map(|it| fs::read_dir(it.path()).map_or(0, Iterator::count)).sum()
}

fn ask(client: &mut Client, key: u64) -> io::Result<Response> {
    client.send(&get(&format!("/app/{}/{key}", key % GROUPS)))?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.extend(receive(client, 1)?);
    }
    let head = String::from_utf8(head).unwrap();
    let mut response = Response { status: 0, head, body: Vec::new() };
    if response.header("transfer-encoding").is_none() {
        response.body = receive(client, response.announced_bytes())?;
        return Ok(response);
    }
    loop {
        let mut size = Vec::new();
        while !size.ends_with(b"\r\n") {
            size.extend(receive(client, 1)?);
        }
        let size = usize::from_str_radix(std::str::from_utf8(&size).unwrap().trim(), 16).unwrap();
        response.body.extend(receive(client, size)?);
        receive(client, 2)?;
        if size == 0 {
            return Ok(response);
        }
    }
}

/// As [`Connection::receive_exactly`], for connections that may end.
fn receive(client: &mut Client, bytes: usize) -> io::Result<Vec<u8>> {
    let mut room = [0; 16_384];
    while client.beyond().len() < bytes {
        match client.receive(&mut room)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => client.beyond().extend_from_slice(&room[..count]),
        }
    }
    Ok(client.beyond().drain(..bytes).collect())
}

/// Its bytes say which object they are of, and of which answer to which request.
fn whole_version(response: &Response, key: u64) -> u64 {
    let version: u64 = response.header("x-version").unwrap().parse().unwrap();
    assert!(response.body == body(key, version), "torn: {key}, {}", response.head);
    version
}

fn body(key: u64, version: u64) -> Vec<u8> {
    let stamp = format!("{key} {version}\n").into_bytes();
    stamp.iter().copied().cycle().take(length(key, version)).collect()
}

/// From nothing to half a mebibyte: in memory and in a file, with a sum and without, in one piece and in many.
fn length(key: u64, version: u64) -> usize {
    usize::try_from(key * key * 300 + version % 13 * 1_000).unwrap()
}

/// True if an object is asked about each time: the head of its file is written anew then.
fn is_validated(key: u64) -> bool {
    key % 2 == 1
}

fn setup(store: &Path, origin: SocketAddr) -> Setup {
    let route = "[[site.route]]\nprefix = \"/app\"\nbackend = \"app\"\n[site.route.cache]\nstore = \"main\"\n";
    let cache = format!("[[cache]]\nname = \"main\"\ndirectory = \"{}\"\n", store.display());
    Setup::default()
        .set("server", "workers = 2")
        .set("limits", "revalidate = \"0s\"")
        .set("log", "access = \"off\"")
        .more(route)
        .more(&backend("app", "", &[origin]))
        .more(&cache)
}

/// A backend that answers whatever is asked for, each time with another version of it.
fn origin() -> SocketAddr {
    let listener = TcpListener::bind((unused_ip(), 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for socket in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || {
                let mut socket = socket;
                while serve(&mut socket).is_ok() {}
            });
        }
    });
    address
}

fn serve(socket: &mut TcpStream) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        socket.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let version = VERSION.fetch_add(1, Ordering::Relaxed);
    let key = head.split([' ', '/']).nth(4).and_then(|key| key.parse().ok()).unwrap();
    let fields = match is_validated(key) {
        true => format!("Cache-Control: max-age=0\r\nETag: \"{key}\"\r\n"),
        false => "Cache-Control: max-age=100000\r\n".to_owned(),
    };
    if head.contains("if-none-match") && version.is_multiple_of(3) {
        let more = "x".repeat(usize::try_from(version % 900).unwrap());
        return write!(socket, "HTTP/1.1 304 Not Modified\r\n{fields}X-More: {more}\r\n\r\n");
    }
    let body = body(key, version);
    let fields = format!("{fields}X-Version: {version}\r\n");
    if version.is_multiple_of(2) {
        write!(socket, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n{fields}\r\n", body.len())?;
        return body.chunks(30_000).try_for_each(|piece| {
            PIECES.fetch_add(1, Ordering::Relaxed);
            socket.write_all(piece)
        });
    }
    write!(socket, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{fields}\r\n")?;
    for piece in body.chunks(30_000) {
        PIECES.fetch_add(1, Ordering::Relaxed);
        write!(socket, "{:x}\r\n", piece.len())?;
        socket.write_all(piece)?;
        socket.write_all(b"\r\n")?;
    }
    socket.write_all(b"0\r\n\r\n")
}

/// The number of requests the backend has had, and how many pieces it has sent.
static VERSION: AtomicU64 = AtomicU64::new(0);
static PIECES: AtomicU64 = AtomicU64::new(0);

const CLIENTS: usize = 4;
/// Folders of objects, each purged in its turn: odd, so that there are both kinds in each.
const GROUPS: u64 = 5;
const KEYS: u64 = 40;

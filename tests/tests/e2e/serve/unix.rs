//! Listeners on Unix sockets.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use kettle_tests::backend::answer;
use tempfile::TempDir;

use super::*;

const NOTHING: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// A folder for sockets, with the path of one in it.
fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.sock");
    (folder, path)
}

/// Another listener, on this socket.
fn listener(path: &Path, settings: &str) -> String {
    format!("\n[[listener]]\naddress = \"unix:{}\"\n{settings}\n", path.display())
}

fn curl(kettle: &Kettle, path: &Path, words: &[&str], target: &str) -> Tool {
    let socket = path.to_str().unwrap();
    kettle.curl(&[&["--unix-socket", socket], words].concat(), target)
}

fn mode_of(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

/// An address whose connections go to this socket, with `header` before them.
fn relayed(path: &Path, header: &'static [u8]) -> SocketAddr {
    let path = path.to_owned();
    Backend::serving(move |client| {
        let mut socket = UnixStream::connect(&path).unwrap();
        socket.write_all(header).unwrap();
        let mut from = client.try_clone().unwrap();
        let mut to = socket.try_clone().unwrap();
        thread::spawn(move || {
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(std::net::Shutdown::Write);
        });
        let mut from = socket;
        let mut to = client;
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(std::net::Shutdown::Write);
    })
}

#[test]
fn files_are_served_over_a_unix_socket_by_all_workers() {
    let (folder, path) = place();
    let setup = Setup::default().set("server", "workers = 4").sizes(&[1, 1_000_000]);
    let mut kettle = Kettle::start(setup.more(&listener(&path, "path = \"kernel-write\"")));
    assert_eq!(mode_of(&path), 0o660);
    for protocol in ["--http1.1", "--http2"] {
        for bytes in [1, 1_000_000] {
            let target = format!("/{bytes}");
            let words = [protocol, "--output", "-"];
            let got = curl(&kettle, &path, &words, &target).output().stdout;
            assert_same(&got, &content(bytes), &target);
            let entry = kettle.entry(&target);
            assert_eq!(entry.text("remote"), "unix:");
            assert_eq!(entry.path(), "user (unix_socket)", "{protocol} {bytes}");
        }
    }
    // Nobody is forgotten, though all workers hear of each.
    let connected: Vec<_> = (0..200).map(|_| UnixStream::connect(&path).unwrap()).collect();
    kettle.wait_for_status("/total/connections_open", 200);
    drop(connected);
    kettle.wait_until_idle();
    assert_eq!(kettle.status("/total/not_preferred/unix_socket"), 4);
    assert_eq!(kettle.status("/total/connections_rejected"), serde_json::json!({}));

    kettle.stop();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "the file goes with its server");
}

#[test]
fn a_killed_server_leaves_a_socket_that_the_next_one_replaces_and_no_second_one_takes() {
    let (_folder, path) = place();
    let mut kettle = Kettle::start(Setup::default().sizes(&[1]).more(&listener(&path, "")));
    let second = kettle.folder.kettle("run");
    kettle.folder.change_config("admin.sock", "other.sock");
    let address = format!("address = \"{}\"", kettle.address());
    kettle.folder.change_config(&address, "address = \"127.0.0.1:1\"");
    second.fail("another server answers on it");
    let _ = curl(&kettle, &path, &["--fail", "--output", "/dev/null"], "/1").succeed();

    kettle.folder.change_config("other.sock", "admin.sock");
    kettle.folder.change_config("address = \"127.0.0.1:1\"", &address);
    kettle.kill();
    assert!(fs::symlink_metadata(&path).unwrap().file_type().is_socket());
    UnixStream::connect(&path).unwrap_err();
    kettle.start_again();
    let _ = curl(&kettle, &path, &["--fail", "--output", "/dev/null"], "/1").succeed();
}

#[test]
fn what_is_no_socket_keeps_its_place() {
    let (_folder, path) = place();
    fs::write(&path, "precious").unwrap();
    let (_, folder) = Setup::default().more(&listener(&path, "")).lay_out();
    let said = folder.kettle("run").fail("something that is not a socket is in its place");
    assert!(said.contains("kettle.toml:"), "{said}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
}

#[test]
fn the_file_has_the_rights_that_are_written() {
    let (_folder, path) = place();
    let setup = Setup::default().more(&listener(&path, "mode = \"0666\"\ngroup = \"65534\""));
    if !rustix::process::geteuid().is_root() {
        return kettle_tests::environment::skip("only root gives files to other groups");
    }
    let kettle = Kettle::start(setup.launched_by(&["sh", "-c", "umask 077; exec \"$@\"", "sh"]));
    assert_eq!((mode_of(&path), fs::metadata(&path).unwrap().gid()), (0o666, 65_534));
    // By its name, which is looked up in a sandbox.
    kettle.reload_with("\"65534\"", "\"daemon\"");
    assert_eq!(fs::metadata(&path).unwrap().gid(), 1);
    kettle.folder.change_config("\"daemon\"", "\"no-such-group\"");
    let refused = kettle.ctl(&["reload"]).output();
    assert!(refused.text().contains("there is no group `no-such-group`"), "{}", refused.text());
}

#[test]
fn a_load_balancer_on_a_unix_socket_says_who_its_clients_are() {
    let (_folder, path) = place();
    let setup = Setup::default().sizes(&[1]).more(&listener(&path, "accept_proxy = [\"unix:\"]"));
    let kettle = Kettle::start(setup);
    for (header, remote) in [
        (&b"PROXY TCP4 192.0.2.7 192.0.2.1 40000 443\r\n"[..], "192.0.2.7"),
        (b"PROXY UNKNOWN\r\n", "unix:"),
        (b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0", "unix:"),
    ] {
        let mut client = Dialer::suite(TLS13_AES_128).connect(relayed(&path, header));
        assert_eq!(client.get("/1").body, content(1));
        assert_eq!(kettle.entry("/1").text("remote"), remote);
    }
    // All who come here speak it.
    curl(&kettle, &path, &[], "/1").fail("");
}

#[test]
fn clients_without_an_address_are_one_that_no_network_holds() {
    let (folder, trusting) = place();
    let plain = folder.path().join("plain.sock");
    let app = Backend::listen();
    let address = app.address();
    let routes = "\n[[site.route]]\nprefix = \"/inside\"\nroot = \"www\"\nallow = [\"0.0.0.0/0\", \"::/0\"]\n\
                  [[site.route]]\nprefix = \"/but\"\nroot = \"www\"\ndeny = [\"0.0.0.0/0\"]\n\
                  [[site.route]]\nprefix = \"/rated\"\nroot = \"www\"\n[site.route.rate_limit]\nrequests = 1\nburst = 1\nperiod = \"1h\"\n\
                  [[site.route]]\nprefix = \"/app\"\nbackend = \"app\"\n";
    let listeners = listener(&plain, "") + &listener(&trusting, "trusted_proxies = [\"unix:\"]");
    let setup =
        Setup::default().more(routes).more(&listeners).more(&backend("app", "", &[address]));
    let kettle = Kettle::start(setup);
    let status = |path: &Path, words: &[&str], target: &str| {
        let code = ["--output", "/dev/null", "--write-out", "%{http_code}"];
        curl(&kettle, path, &[&code, words].concat(), target).succeed()
    };
    let named = ["--header", "X-Forwarded-For: 192.0.2.7"];
    assert_eq!(status(&plain, &named, "/inside/a"), "403");
    assert_eq!(status(&trusting, &[], "/inside/a"), "403");
    assert_eq!(status(&trusting, &named, "/inside/a"), "404");
    assert_eq!(status(&plain, &named, "/but/a"), "404");
    assert_eq!(status(&trusting, &named, "/but/a"), "403");
    // One bucket for all of them, and one for each that a proxy names.
    let rated = [&plain, &trusting, &plain].map(|path| status(path, &[], "/rated/a"));
    assert_eq!(rated, ["404", "429", "429"]);
    assert_eq!(status(&trusting, &named, "/rated/a"), "404");

    for (path, words, remote, said) in [
        (&plain, &[][..], "unix:", ["x-forwarded-for: unix:\r\n", "forwarded: for=unknown;"]),
        (
            &trusting,
            &named,
            "192.0.2.7",
            ["x-forwarded-for: 192.0.2.7, unix:\r\n", ", for=unknown\r\n"],
        ),
    ] {
        let asking = curl(&kettle, path, words, "/app").start();
        let head = answer(&mut app.accept(), NOTHING).to_ascii_lowercase();
        assert!(said.iter().all(|said| head.contains(said)), "{head}");
        assert!(asking.finish().status.success());
        assert_eq!(kettle.entry("/app").text("remote"), remote);
    }
}

#[test]
fn reloads_add_keep_change_and_remove_sockets_and_refuse_nobody() {
    let (folder, kept) = place();
    let added = folder.path().join("added.sock");
    let setup = Setup::default().set("server", "workers = 2").sizes(&[1]);
    let kettle = Kettle::start(setup.more(&listener(&kept, "mode = \"0600\"")));
    let inode = fs::metadata(&kept).unwrap().ino();
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        let client = scope.spawn(|| {
            let mut connected = 0;
            while !is_done.load(Ordering::Relaxed) {
                UnixStream::connect(&kept).unwrap();
                connected += 1;
            }
            connected
        });
        let old = listener(&kept, "mode = \"0600\"");
        let more = listener(&added, "");
        let new = listener(&kept, "mode = \"0666\"\nbacklog = 100") + &more;
        for _ in 0..10 {
            kettle.folder.change_config(&old, &new);
            assert!(kettle.ctl(&["reload"]).output().status.success());
            assert_eq!((mode_of(&kept), mode_of(&added)), (0o666, 0o660));
            let _ = curl(&kettle, &added, &["--fail", "--output", "/dev/null"], "/1").succeed();
            kettle.folder.change_config(&new, &old);
            assert!(kettle.ctl(&["reload"]).output().status.success());
            assert_eq!(mode_of(&kept), 0o600);
            assert!(fs::symlink_metadata(&added).is_err(), "it goes with its listener");
        }
        is_done.store(true, Ordering::Relaxed);
        assert!(client.join().unwrap() > 0);
    });
    assert_eq!(fs::metadata(&kept).unwrap().ino(), inode);
    kettle.wait_until_idle();
    assert_eq!(kettle.status("/total/connections_rejected"), serde_json::json!({}));
    let log = kettle.messages().text();
    assert!(!log.contains("cannot"), "{log}");

    // A configuration that is not put in force leaves nothing.
    let _taken = UnixListener::bind(folder.path().join("taken.sock")).unwrap();
    let taken = listener(&folder.path().join("taken.sock"), "");
    kettle.folder.change_config("[[site]]", &format!("{}{taken}\n[[site]]", listener(&added, "")));
    assert!(!kettle.ctl(&["reload"]).output().status.success());
    assert!(fs::symlink_metadata(&added).is_err());
}

#[test]
fn a_tunnel_begins_at_a_unix_socket() {
    let (_folder, path) = place();
    let app = Backend::listen();
    let address = app.address();
    let settings = "kind = \"tls\"\nbackend = \"app\"\n";
    let setup = Setup::default().more(&listener(&path, settings));
    let kettle = Kettle::start(setup.more(&backend("app", "send_proxy = \"v1\"", &[address])));
    let client = thread::spawn({
        let address = relayed(&path, b"");
        move || {
            let mut client = Dialer::suite(TLS13_AES_128).connect(address);
            client.send(b"ping").unwrap();
            client.receive_exactly(4)
        }
    });
    let mut server = app.accept();
    let said = kettle_tests::backend::read_exactly(&mut server, 19);
    assert_eq!(said, b"PROXY UNKNOWN\r\nping");
    let shown = kettle.ctl(&["tunnels"]).succeed();
    let row = shown.lines().nth(1).unwrap();
    assert!(row.contains(" unix: ") && row.contains(path.to_str().unwrap()), "{shown}");
    server.write_all(b"pong").unwrap();
    assert_eq!(client.join().unwrap(), b"pong");
    drop(server);
    let entry = kettle.tunnel();
    assert_eq!(entry.text("remote"), "unix:");
    assert_eq!(entry.text("listener"), format!("unix:{}", path.display()));
}

#[test]
fn plain_http_is_answered_and_redirected_over_a_unix_socket() {
    let (folder, https) = place();
    let redirect = folder.path().join("redirect.sock");
    let listeners = listener(&https, "plain_http = \"redirect\"")
        + &listener(&redirect, "kind = \"redirect\"\nredirect_port = 8443");
    let kettle = Kettle::start(Setup::default().more(&listeners));
    for (path, host, expected) in [
        (&https, "localhost", "https://localhost/a"),
        (&https, "localhost:8080", "https://localhost:8080/a"),
        (&redirect, "localhost", "https://localhost:8443/a"),
    ] {
        let got = Tool::new("curl")
            .args(["-sS", "--unix-socket", path.to_str().unwrap(), "--output", "/dev/null"])
            .args(["--write-out", "%{redirect_url}", &format!("http://{host}/a")])
            .succeed();
        assert_eq!(got, expected, "{host}");
    }
    wait_until("both are closed", || kettle.status("/total/connections_open") == 0);
}

/// Behind a proxy on the same machine, which speaks for its clients.
#[test]
fn sites_without_tls_are_served_on_a_unix_socket() {
    let (_folder, path) = place();
    let plain = "kind = \"http\"\nsites = [\"localhost\"]\ntrusted_proxies = [\"unix:\"]";
    let setup = Setup::default().sizes(&[1_000_000]).more(&listener(&path, plain));
    let kettle = Kettle::start(setup);
    let socket = path.to_str().unwrap();
    let words = ["--silent", "--unix-socket", socket, "--header", "X-Forwarded-For: 192.0.2.7"];
    let got = Tool::new("curl").args(words).args(["http://localhost/1000000"]).output();
    assert_same(&got.stdout, &content(1_000_000), "plain");
    let entry = kettle.entry("/1000000");
    assert_eq!((entry.text("path"), entry.text("reason")), ("plain", "sendfile"));
    assert_eq!(entry.text("remote"), "192.0.2.7");
}

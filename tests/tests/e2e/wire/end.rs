//! A connection whose responses are complete ends with close_notify, by every path; one that was cut never does.

use super::*;

#[test]
fn a_response_that_announced_the_end_is_followed_by_close_notify() {
    let kettle = Kettle::start(Setup::paths(paths_here()).sizes(&[0, 16_384, 200_000]));
    for (path, suite) in paths_and_versions() {
        for bytes in [0, 16_384, 200_000] {
            let mut client = kettle.connect_by(path, suite);
            client.send(&request("GET", &format!("/{bytes}"), "Connection: close\r\n")).unwrap();
            let response = client.response();
            assert_eq!(response.header("connection"), Some("close"));
            assert_same(&response.body, &content(bytes), path);
            assert_eq!(client.end(), End::Orderly, "{path} {}", suite.name);
            assert!(client.beyond().is_empty());
        }
    }
}

/// The kernel takes more than TCP has room for; none of it may be dropped when our side ends.
#[test]
fn a_closing_download_reaches_slow_clients_whole() {
    let bytes = 1 << 20;
    let kettle = Kettle::start(Setup::paths(paths_here()).sizes(&[bytes]));
    for (path, suite) in paths_and_versions() {
        let address = kettle.address_by(path);
        let download = || {
            let mut client = Dialer::suite(suite).reading_slowly().connect(address);
            let target = format!("/{bytes}");
            assert_same(
                &client.exchange(&request("GET", &target, "Connection: close\r\n")).body,
                &content(bytes),
                path,
            );
            assert_eq!(client.end(), End::Orderly, "{path} {}", suite.name);
        };
        std::thread::scope(|threads| {
            for _ in 0..6 {
                threads.spawn(download);
            }
        });
    }
    kettle.wait_until_idle();
}

#[test]
fn an_error_that_ends_the_connection_is_followed_by_close_notify() {
    let kettle = Kettle::start(Setup::paths(paths_here()).sizes(&[70_000]));
    for (path, suite) in paths_and_versions() {
        let mut client = kettle.connect_by(path, suite);
        client.get("/70000");
        assert_eq!(client.exchange(b"GET / HTTP/1.1\nHost: localhost\n\n").status, 400);
        assert_eq!(client.end(), End::Orderly, "{path}");
    }
}

#[test]
fn an_idle_connection_is_ended_with_close_notify() {
    let setup = Setup::paths(paths_here()).sizes(&[70_000]);
    let kettle = Kettle::start(setup.set("limits", "idle_timeout = \"1s\""));
    let clients = paths_here().iter().map(|path| {
        let mut client = kettle.connect_by(path, TLS13_AES_128);
        client.get("/70000");
        client
    });
    for mut client in clients.collect::<Vec<_>>() {
        assert_eq!(client.end(), End::Orderly);
    }
}

#[test]
fn openssl_sees_no_end_that_was_unexpected() {
    let kettle = Kettle::start(Setup::paths(paths_here()).sizes(&[200_000]));
    for path in paths_here() {
        for version in ["-tls1_2", "-tls1_3"] {
            let address = kettle.address_by(path).to_string();
            let words = ["s_client", "-connect", &address, "-servername", "localhost", version];
            let ended = Tool::new("openssl").args(words).args(["-quiet"]).typed(request(
                "GET",
                "/200000",
                "Connection: close\r\n",
            ));
            assert!(!ended.stderr.contains("unexpected eof"), "{path}: {}", ended.stderr);
            assert!(ended.stdout.ends_with(&content(200_000)), "{path} {version}");
        }
    }
}

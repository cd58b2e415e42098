//! The moment at which a connection moves into the kernel, and what may be under way just then.

use super::*;

#[test]
fn auto_moves_a_connection_at_its_first_large_body_and_keeps_it_there() {
    let Some(kettle) = Kettle::start_in_kernel(
        Setup::path("auto").sizes(&[1, 65_535, 65_536]).without_memory().alone(),
    ) else {
        return;
    };
    let counts = KernelCounts::now();
    let mut client = kettle.connect(TLS13_AES_128);
    for (bytes, path) in [
        (1, "user"),
        (65_535, "user"),
        (65_536, "kernel-sendfile"),
        (1, "kernel-write"),
        (65_536, "kernel-sendfile"),
    ] {
        let target = format!("/{bytes}");
        assert_same(&client.get(&target).body, &content(bytes), path);
        assert_eq!(kettle.entry(&target).path(), path);
    }
    assert_eq!(counts.growth("TlsTxSw"), 1);
    assert_eq!(kettle.status("/total/switches"), 1);
}

#[test]
fn the_move_may_come_after_any_number_of_records() {
    let Some(kettle) = Kettle::start_in_kernel(Setup::path("auto").sizes(&[10, 70_000])) else {
        return;
    };
    for suite in SUITES {
        for records_before in [0, 1, 30] {
            let mut client = kettle.connect(suite);
            for _ in 0..records_before {
                assert_same(&client.get("/10").body, &content(10), suite.name);
            }
            for bytes in [70_000, 10, 70_000] {
                let response = client.get(&format!("/{bytes}"));
                assert_same(&response.body, &content(bytes), suite.name);
            }
        }
    }
    assert_eq!(kettle.status("/total/switches"), 3 * SUITES.len());
}

#[test]
fn the_crossover_of_the_configuration_is_where_auto_moves() {
    let setup = Setup::default().listener("path = \"auto\"\ncrossover = 1000");
    let Some(kettle) = Kettle::start_in_kernel(setup.sizes(&[999, 1000]).without_memory()) else {
        return;
    };
    for (target, path) in [("/999", "user"), ("/1000", "kernel-sendfile")] {
        kettle.connect(TLS13_AES_128).get(target);
        assert_eq!(kettle.entry(target).path(), path);
    }
}

#[test]
fn a_site_that_wants_user_space_says_why_a_connection_is_in_the_kernel_already() {
    let Some(kettle) =
        Kettle::start_in_kernel(Setup::path("user").sizes(&[1]).site("path = \"kernel-write\""))
    else {
        return;
    };
    let mut client = kettle.connect(TLS13_AES_128);
    client.get("/1");
    assert_eq!(kettle.entry("/1").path(), "kernel-write");
    kettle.reload_with("path = \"kernel-write\"", "path = \"user\"");
    client.get("/1");
    assert_eq!(kettle.entry("/1").path(), "kernel-write (already_offloaded)");
    assert_eq!(kettle.status("/total/not_preferred/already_offloaded"), 1);
    kettle.connect(TLS13_AES_128).get("/1");
    assert_eq!(kettle.entry("/1").path(), "user");
}

#[test]
fn a_body_in_memory_is_written_to_the_kernel_where_sendfile_was_wanted() {
    let Some(kettle) = Kettle::start_in_kernel(Setup::path("kernel-sendfile")) else { return };
    assert_eq!(kettle.connect(TLS13_AES_128).get("/not-there").status, 404);
    assert_eq!(kettle.entry("/not-there").path(), "kernel-write (not_a_file)");
    assert_eq!(kettle.status("/total/not_preferred/not_a_file"), 1);
}

#[test]
fn without_kernel_tls_every_path_stays_in_user_space_and_says_why() {
    if kettle_tests::environment::has_kernel_tls() {
        return skip("this kernel has kTLS");
    }
    let kettle = Kettle::start(Setup::paths(&["kernel-write", "kernel-sendfile"]).sizes(&[70_000]));
    for path in ["kernel-write", "kernel-sendfile"] {
        for suite in SUITES {
            let response = kettle.connect_by(path, suite).get("/70000");
            assert_same(&response.body, &content(70_000), path);
            assert_eq!(kettle.entry("/70000").path(), "user (kernel_lacks_suite)");
        }
    }
    assert!(kettle.messages().text().contains("TLS: user space — this kernel has no kTLS"));
}

#[test]
fn requests_sent_together_with_the_end_of_the_handshake_are_answered() {
    let kettle = Kettle::start(Setup::paths(paths_here()).sizes(&[10, 70_000]).without_memory());
    for path in paths_here() {
        let requests = [get("/70000"), get("/10"), get("/70000")].concat();
        let dialer = kettle_tests::client::Dialer::suite(TLS13_AES_128);
        let mut client = dialer.begin(kettle.address_by(path));
        client.finish_handshake_with(&requests);
        for bytes in [70_000, 10, 70_000] {
            assert_same(&client.response().body, &content(bytes), path);
        }
    }
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let kettle = Kettle::start(Setup::paths(paths_here()).sizes(&[10, 70_000]).without_memory());
    for (path, suite) in paths_and_versions() {
        let mut client = kettle.connect_by(path, suite);
        let sizes = [10, 70_000, 70_000, 10, 70_000, 10, 10];
        let requests = sizes.map(|bytes| get(&format!("/{bytes}")));
        client.send(&requests.concat()).unwrap();
        for bytes in sizes {
            assert_same(&client.response().body, &content(bytes), path);
        }
    }
}

#[test]
fn half_a_request_that_was_read_before_the_switch_is_not_lost() {
    let kettle = Kettle::start(Setup::paths(paths_here()).sizes(&[10, 70_000]).without_memory());
    let next = request("GET", "/10", "X-Padding: 0123456789\r\n");
    for path in paths_here() {
        for cut in [1, 20, next.len() - 1] {
            let mut client = kettle.connect_by(path, TLS13_AES_128);
            let (read_before, read_after) = next.split_at(cut);
            assert_same(
                &client.exchange(&[&get("/70000"), read_before].concat()).body,
                &content(70_000),
                path,
            );
            assert_same(&client.exchange(read_after).body, &content(10), path);
        }
    }
}

#[test]
fn half_a_record_that_was_read_before_the_switch_is_not_lost() {
    let kettle = Kettle::start(Setup::paths(paths_here()).sizes(&[10, 70_000]).without_memory());
    for path in paths_here() {
        for cut in [1, 5, 40] {
            let mut session = RawSession::connect(kettle.address_by(path));
            let first = session.sending.seal(APPLICATION_DATA, &get("/70000"));
            let next = session.sending.seal(APPLICATION_DATA, &get("/10"));
            session.send_bytes(&[&first, &next[..cut]].concat());
            assert_same(&session.bodies(70_000).0, &content(70_000), path);
            session.send_bytes(&next[cut..]);
            assert_same(&session.bodies(10).0, &content(10), path);
        }
    }
}

#[test]
fn a_head_request_moves_nothing_but_its_head() {
    let kettle = Kettle::start(Setup::paths(paths_here()).sizes(&[70_000]).without_memory());
    for path in paths_here() {
        let mut client = kettle.connect_by(path, TLS13_AES_128);
        client.send(&request("HEAD", "/70000", "")).unwrap();
        assert_eq!(client.response_head().announced_bytes(), 70_000);
        assert_same(&client.get("/70000").body, &content(70_000), path);
        client.send(&request("HEAD", "/70000", "")).unwrap();
        assert_eq!(client.response_head().announced_bytes(), 70_000);
        assert_eq!(client.get("/70000").status, 200);
    }
}

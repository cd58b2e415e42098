//! Many connections at once.

use std::thread;

use kettle_tests::environment::raise_open_files_limit;

use super::*;

#[test]
fn a_crowd_of_connections_is_served_and_leaves_nothing_behind() {
    raise_open_files_limit();
    let setup = Setup::paths(paths_here()).sizes(&[70_000]).set("server", "workers = 2");
    // The first waits until all have come, and has its turn a thousand answers later.
    let setup = setup.set("limits", "idle_timeout = \"1h\"\nrequest_timeout = \"10m\"");
    let kettle = Kettle::start(setup.set("server", "dumpable = true"));
    kettle.connect(TLS13_AES_128).get("/70000");
    kettle.wait_until_idle();
    let open_before = kettle.open_descriptors();
    let crowd = scaled(1_000, 60);
    let paths = paths_here().iter().cycle();
    let mut clients: Vec<_> =
        paths.take(crowd).map(|path| kettle.connect_by(path, TLS13_AES_128)).collect();
    assert_eq!(kettle.status("/total/connections_open"), crowd);
    for _ in 0..2 {
        for client in &mut clients {
            assert_same(&client.get("/70000").body, &content(70_000), "one of many");
        }
    }
    drop(clients);
    kettle.wait_until_idle();
    // Each worker may hold the file that it keeps for later requests, and the control connection of the last question may
    // still be on its way out.
    assert!(kettle.open_descriptors() <= open_before + 2);
}

#[test]
fn downloads_at_the_same_time_do_not_mix() {
    let sizes = [100, 20_000, 70_000, 300_000];
    let setup = Setup::paths(paths_here()).sizes(&sizes).set("server", "workers = 2");
    let kettle = Kettle::start(setup);
    thread::scope(|scope| {
        for (index, suite) in SUITES.into_iter().enumerate() {
            let path = paths_here()[index % paths_here().len()];
            let address = kettle.address_by(path);
            scope.spawn(move || {
                let dialer = kettle_tests::client::Dialer::suite(suite);
                for round in 0..scaled(20, 3) {
                    let mut client = dialer.connect(address);
                    for step in 0..8 {
                        let bytes = sizes[(index + round + step) % sizes.len()];
                        let response = client.get(&format!("/{bytes}"));
                        assert_same(&response.body, &content(bytes), path);
                    }
                }
            });
        }
    });
}

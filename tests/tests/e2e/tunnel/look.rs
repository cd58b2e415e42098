//! Open tunnels as the operator sees them.

use serde_json::Value;

use super::*;

/// A client that has had so many bytes and has said as many.
fn echoed(kettle: &Kettle, bytes: usize) -> Client {
    let mut client = kettle.ask(&vec![b'.'; bytes]);
    let mut received = vec![0; bytes];
    let mut filled = 0;
    while filled < bytes {
        filled += client.receive(&mut received[filled..]).unwrap();
    }
    client
}

fn tunnels(kettle: &Kettle, words: &[&str]) -> Value {
    let words = [&["tunnels", "--json"], words].concat();
    serde_json::from_str(&kettle.ctl(&words).succeed()).unwrap()
}

#[test]
fn open_tunnels_are_shown_by_any_order_and_summed_up() {
    let setup = Setup::default()
        .set("server", "workers = 2")
        .listener("kind = \"tls\"\nbackend = \"app\"")
        .more(&backend("app", "", &[Backend::echoing()]));
    let kettle = Kettle::start(setup);
    assert_eq!(tunnels(&kettle, &[])["open"], 0);

    let mut clients = [30, 10, 20].map(|bytes| echoed(&kettle, bytes));
    let shown = |words: &[&str]| {
        let status = tunnels(&kettle, words);
        assert_eq!((&status["open"], &status["silent_workers"]), (&3.into(), &0.into()));
        assert_eq!(status["to_backend_bytes"], 60);
        assert_eq!(status["to_client_bytes"], 60);
        let tunnels = status["tunnels"].as_array().unwrap().iter();
        let time = |it: &Value, name: &str| it[name].as_u64().unwrap();
        let is_idle_for_longer = |it| time(it, "idle_seconds") > time(it, "age_seconds");
        assert!(!tunnels.clone().any(is_idle_for_longer), "{status}");
        tunnels.map(|it| it["to_client"]["bytes"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(shown(&[]), [20, 10, 30]);
    assert_eq!(shown(&["--by", "oldest", "--top", "2"]), [30, 10]);
    assert_eq!(shown(&["--by", "bytes"]), [30, 20, 10]);
    assert_eq!(shown(&["--top", "0"]), [0; 0]);

    let newest = tunnels(&kettle, &["--top", "1"])["tunnels"][0].clone();
    assert_eq!(newest["backend"], "app");
    assert_eq!(newest["listener"], kettle.address().to_string());
    assert_eq!(newest["server_name"], "localhost");
    assert_eq!(newest["to_backend"]["path"], "plain");
    assert_eq!(newest["to_backend"]["reason"], "received_here");
    let screen = kettle.ctl(&["tunnels", "--top", "1"]).succeed();
    let lines: Vec<_> = screen.lines().collect();
    assert!(lines[0].starts_with("age"), "{screen}");
    assert!(lines[1].contains(newest["client"].as_str().unwrap()), "{screen}");
    assert_eq!(
        lines[2],
        "3 tunnels are open: 60 B to backends, 60 B to clients; 1 of them are shown"
    );

    for client in &mut clients {
        client.close_sending();
        _ = client.end();
    }
    kettle.wait_until_idle();
    assert_eq!(tunnels(&kettle, &[])["open"], 0);
}

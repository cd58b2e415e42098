//! Which server of a backend gets a connection: limits, failures, checks, the operator's word.

use super::*;

fn balancing(settings: &str, servers: &str) -> Kettle {
    let app = format!("\n[[backend]]\nname = \"app\"\n{settings}\n{servers}");
    Kettle::start(before_app("tls", "", &app))
}

fn server(name: &str, address: SocketAddr, more: &str) -> String {
    format!("[[backend.server]]\nname = \"{name}\"\naddress = \"{address}\"\n{more}\n")
}

/// A connection that its backend has answered with one byte.
fn answered(kettle: &Kettle) -> Client {
    let mut client = kettle.ask(b"?");
    assert_eq!(client.receive(&mut [0; 1]).unwrap(), 1);
    client
}

/// Answers each connection's first byte with one, and keeps it open.
fn answering() -> SocketAddr {
    Backend::serving(|mut socket| {
        let _ = read_exactly(&mut socket, 1);
        let _ = socket.write_all(b"!");
        let _ = socket.read(&mut [0; 1]);
    })
}

/// The servers of the next tunnels that end.
fn servers_of(kettle: &Kettle, tunnels: usize) -> Vec<String> {
    let mut servers: Vec<_> =
        (0..tunnels).map(|_| kettle.tunnel().text("server").to_owned()).collect();
    servers.sort();
    servers
}

#[test]
fn the_next_server_is_tried_and_a_backup_is_the_last() {
    let nobody = unused_address();
    let servers = server("gone", nobody, "") + &server("spare", answering(), "backup = true");
    let kettle = balancing("balance = \"first\"", &servers);
    let clients: Vec<_> = (0..3).map(|_| answered(&kettle)).collect();
    drop(clients);
    assert_eq!(servers_of(&kettle, 3), ["spare"; 3]);
}

#[test]
fn who_finds_all_full_waits_in_order_or_is_sent_away() {
    let servers = server("a", answering(), "connections = 1");
    let kettle = balancing("queue = 1\nqueue_timeout = \"5m\"", &servers);
    let first = answered(&kettle);
    let mut second = kettle.ask(b"?");
    kettle.wait_for_status("/backends/0/waiting", 1);
    // The queue is full.
    let mut third = Dialer::default().connect(kettle.address());
    assert_eq!(third.end(), End::Cut);
    assert_eq!(kettle.tunnel().text("end"), "queue_full");
    drop(first);
    assert_eq!(second.receive(&mut [0; 1]).unwrap(), 1);
}

#[test]
fn waiting_has_an_end() {
    let servers = server("a", answering(), "connections = 1");
    let kettle = balancing("queue_timeout = \"50ms\"", &servers);
    let _first = answered(&kettle);
    let mut second = Dialer::default().connect(kettle.address());
    assert_eq!(second.end(), End::Cut);
    assert_eq!(kettle.tunnel().text("end"), "queue_timeout");
}

#[test]
fn a_drained_server_gets_no_more_until_it_is_ready() {
    let servers = server("a", answering(), "") + &server("b", answering(), "");
    let kettle = balancing("balance = \"first\"", &servers);
    let at_a = answered(&kettle);
    assert!(kettle.ctl(&["drain", "app/a"]).succeed().contains("app/a"));
    drop(answered(&kettle));
    assert_eq!(kettle.tunnel().text("server"), "b");
    let shown = kettle.ctl(&["backends"]).succeed();
    assert!(shown.contains("draining") && shown.contains("up"), "{shown}");
    assert!(kettle.ctl(&["ready", "app/a"]).succeed().contains("app/a"));
    drop(answered(&kettle));
    assert_eq!(kettle.tunnel().text("server"), "a");
    drop(at_a);
    for wrong in ["app", "app/c", "nobody/a"] {
        assert!(!kettle.ctl(&["drain", wrong]).output().status.success(), "{wrong}");
    }
}

#[test]
fn checks_take_a_server_out_and_bring_it_back() {
    let listening = Backend::listen();
    let address = listening.address();
    let check = "[backend.check]\ninterval = \"50ms\"\nfall = 1\nrise = 1";
    let servers = format!("{check}\n{}", server("a", address, ""));
    let kettle = balancing("", &servers);
    kettle.wait_for_status("/backends/0/servers/0/health", "up");
    drop(listening);
    kettle.wait_for_status("/backends/0/servers/0/health", "down");
    let again = std::net::TcpListener::bind(address).unwrap();
    kettle.wait_for_status("/backends/0/servers/0/health", "up");
    drop(again);
}

#[test]
fn metrics_have_the_servers() {
    let listen = unused_address();
    let app = backend("app", "", &[answering()]);
    let setup = before_app("tls", "", &app);
    let kettle = Kettle::start(setup.metrics(listen));
    drop(answered(&kettle));
    let _ = kettle.tunnel();
    let text = kettle_tests::tool::scrape(listen);
    for line in [
        "kettle_tunnels_total 1",
        "kettle_tunnels_ended_total{end=\"client_cut\"} 1",
        "outcome=\"connected\"} 1",
        "kettle_backend_up{backend=\"app\"",
    ] {
        assert!(text.contains(line), "no {line} in\n{text}");
    }
}

#[test]
fn who_has_gone_waits_no_more() {
    let servers = server("a", answering(), "connections = 1");
    let kettle = balancing("queue = 2\nqueue_timeout = \"5m\"", &servers);
    let first = answered(&kettle);
    let waiting = [(); 2].map(|()| Dialer::default().connect(kettle.address()));
    kettle.wait_for_status("/backends/0/waiting", 2);
    let [mut orderly, cut] = waiting;
    orderly.close_sending();
    drop(cut);
    kettle.wait_for_status("/backends/0/waiting", 0);
    let mut ends = [kettle.tunnel(), kettle.tunnel()].map(|it| it.text("end").to_owned());
    ends.sort();
    assert!(ends.iter().all(|end| end.starts_with("client_")), "{ends:?}");
    // Their places are free, and what a client says before it ends is not nothing.
    let mut asking = kettle.ask(b"?");
    asking.close_sending();
    kettle.wait_for_status("/backends/0/waiting", 1);
    drop(first);
    assert_eq!(asking.receive(&mut [0; 1]).unwrap(), 1);
}

/// A record with a word in it is no longer than one with a close_notify.
#[test]
fn who_said_a_short_word_and_ended_is_served() {
    let servers = server("a", answering(), "connections = 1");
    let kettle = balancing("queue_timeout = \"5m\"", &servers);
    for suite in ONE_OF_EACH_VERSION {
        let first = answered(&kettle);
        let mut asking = Dialer::suite(suite).connect(kettle.address());
        asking.send(b"?").unwrap();
        asking.wire.socket.shutdown(Shutdown::Write).unwrap();
        kettle.wait_for_status("/backends/0/waiting", 1);
        drop(first);
        assert_eq!(asking.receive(&mut [0; 1]).unwrap(), 1, "{}", suite.name);
    }
}

#[test]
fn a_backup_serves_those_that_wait_when_checks_fail() {
    let listening = Backend::listen();
    let address = listening.address();
    let check = "[backend.check]\ninterval = \"50ms\"\nfall = 1\nrise = 1";
    let servers =
        server("a", address, "connections = 1") + &server("b", answering(), "backup = true");
    let kettle = balancing("queue_timeout = \"5m\"", &format!("{check}\n{servers}"));
    kettle.wait_for_status("/backends/0/servers/0/health", "up");
    let _first = kettle.ask(b"?");
    kettle.wait_for_status("/backends/0/servers/0/connections", 1);
    let mut second = kettle.ask(b"?");
    kettle.wait_for_status("/backends/0/waiting", 1);
    drop(listening);
    assert_eq!(second.receive(&mut [0; 1]).unwrap(), 1);
}

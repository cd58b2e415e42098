use kettle_runtime::metrics::Shape;
use tokio::net::{UnixListener, UnixStream};

use super::*;

#[tokio::test]
async fn a_connection_leads_to_the_server_and_is_counted() {
    let listeners = some_listeners(1).await;
    let app = app(&settings(servers_of(&listeners)));
    let connected = app.connect(CLIENT).await.unwrap();
    let (_accepted, from) = listeners[0].accept().await.unwrap();
    let Socket::Tcp(stream) = &connected.socket else { panic!("not TCP") };
    assert_eq!(stream.local_addr().unwrap(), from);
    assert!(stream.nodelay().unwrap());
    assert_eq!(connected.server.state.connections(), 1);
    assert_eq!(*connected.server.name, *listeners[0].local_addr().unwrap().to_string());
    drop(connected.slot);
    assert_eq!(app.servers[0].state.connections(), 0);
    assert_eq!(count(&app, 0, Outcome::Connected), 1);
}

#[tokio::test]
async fn a_server_that_refuses_leads_to_the_next() {
    let listeners = some_listeners(1).await;
    let mut settings = settings(vec![refusing().await]);
    settings.servers.extend(servers_of(&listeners));
    settings.balance = kettle_config::Balance::First;
    let app = app(&settings);
    let connected = app.connect(CLIENT).await.unwrap();
    assert!(Arc::ptr_eq(&connected.server, &app.servers[1]));
    assert_eq!(count(&app, 0, Outcome::Refused), 1);
    assert_eq!(app.servers[0].state.connections(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_leads_to_the_next_after_its_time() {
    let (hanging, _kept) = hanging();
    let listeners = some_listeners(1).await;
    let mut settings = settings(vec![hanging]);
    settings.servers.extend(servers_of(&listeners));
    settings.balance = kettle_config::Balance::First;
    let app = app(&settings);
    let begun = Instant::now();
    let connected = app.connect(CLIENT).await.unwrap();
    assert!(Arc::ptr_eq(&connected.server, &app.servers[1]));
    assert_eq!(begun.elapsed().as_secs(), settings.connect_timeout.as_secs());
    assert_eq!(count(&app, 0, Outcome::TimedOut), 1);
}

#[tokio::test(start_paused = true)]
async fn of_a_name_s_addresses_all_are_tried_and_share_the_time() {
    let (hanging, _kept) = hanging();
    let listeners = some_listeners(1).await;
    let addresses = [hanging, refusing().await].map(|it| match it.address.value {
        ServerAddress::Socket(address) => address,
        other => panic!("{other}"),
    });
    let app = app(&settings(vec![at("app.example:1")]));
    let state = &app.servers[0].state;
    state.found_at(&[addresses[0], addresses[1], listeners[0].local_addr().unwrap()]);
    let connected = app.connect(CLIENT).await.unwrap();
    let share = app.settings.connect_timeout / 3;
    assert!(connected.connect_time >= share && connected.connect_time < share * 2);
    close(listeners);
    assert_eq!(app.connect(CLIENT).await.unwrap_err().reason(), "refused");
    assert_eq!(count(&app, 0, Outcome::Connected) + count(&app, 0, Outcome::Refused), 2);
}

#[tokio::test(start_paused = true)]
async fn of_a_name_s_addresses_the_one_that_was_connected_to_last_comes_first() {
    let (hanging, _kept) = hanging();
    let ServerAddress::Socket(hanging) = hanging.address.value else { panic!("a name") };
    let listener = listener().await;
    let good = listener.local_addr().unwrap();
    let app = app(&settings(vec![at("app.example:1")]));
    let share = app.settings.connect_timeout / 2;
    for (addresses, takes_long) in
        [([hanging, good], true), ([good, hanging], false), ([hanging, good], false)]
    {
        app.servers[0].state.found_at(&addresses);
        for takes_long in [takes_long, false] {
            let connected = app.connect(CLIENT).await.unwrap();
            assert_eq!(connected.connect_time >= share, takes_long, "{addresses:?}");
        }
    }
    // The others are tried behind it.
    let dead = dead_address();
    app.servers[0].state.found_at(&[good, hanging, dead]);
    app.servers[0].state.connected_to(dead);
    assert!(app.connect(CLIENT).await.unwrap().connect_time < share);
}

#[tokio::test(start_paused = true)]
async fn of_a_name_s_addresses_the_next_is_tried_where_nothing_can_be_made_of_one() {
    let listeners = some_listeners(3).await;
    let addresses: Vec<_> = listeners.iter().map(|it| it.local_addr().unwrap()).collect();
    let app = app(&settings(vec![at("app.example:1")]));
    app.servers[0].state.found_at(&addresses);
    let handshake = async |socket, _: &Server| {
        let Socket::Tcp(stream) = socket else { panic!("not TCP") };
        match stream.peer_addr().unwrap() {
            first if first == addresses[0] => Err(Failure::new(Outcome::Tls, "no")),
            second if second == addresses[1] => std::future::pending().await,
            third => Ok(third),
        }
    };
    let connected = app.connect_with(CLIENT, handshake).await.unwrap();
    assert_eq!(connected.socket, addresses[2]);
    let share = app.settings.connect_timeout / 2;
    assert!(connected.connect_time >= share && connected.connect_time < share * 2);
    assert_eq!(count(&app, 0, Outcome::Connected), 1);
    app.servers[0].state.found_at(&addresses[..2]);
    assert_eq!(app.connect_with(CLIENT, handshake).await.unwrap_err().reason(), "timeout");
}

#[tokio::test]
async fn an_address_where_nobody_listens_takes_no_word_from_one_where_somebody_does() {
    let listener = some_listeners(1).await;
    let there = listener[0].local_addr().unwrap();
    let dead = dead_address();
    let app = app(&settings(vec![at("app.example:1")]));
    app.servers[0].state.found_at(&[there, dead]);
    for outcome in [Outcome::Tls, Outcome::TurnedAway] {
        let handshake =
            async |_, _: &Server| -> Result<(), Failure> { Err(Failure::new(outcome, "no")) };
        app.connect_with(CLIENT, handshake).await.unwrap_err();
        assert_eq!(count(&app, 0, outcome), 1);
    }
    assert_eq!(count(&app, 0, Outcome::Refused), 0);
}

#[tokio::test]
async fn each_balance_finds_a_server() {
    use kettle_config::Balance::{First, LeastConnections, RandomTwo, RoundRobin, SourceHash};
    let listeners = some_listeners(3).await;
    for (balance, most) in
        [(First, 6), (LeastConnections, 2), (RoundRobin, 2), (SourceHash, 6), (RandomTwo, 3)]
    {
        let app = app(&kettle_config::Backend { balance, ..settings(servers_of(&listeners)) });
        let mut held = Vec::new();
        for _ in 0..6 {
            held.push(app.connect(CLIENT).await.unwrap());
        }
        let busiest = app.servers.iter().map(|it| it.state.connections()).max();
        assert!(busiest <= Some(most), "{balance}: {busiest:?}");
    }
}

/// By their addresses alone, one of them would get nobody, and clients of the others keep their server.
#[tokio::test]
async fn of_two_servers_at_one_address_each_has_clients_by_their_hash() {
    let listeners = some_listeners(2).await;
    let servers = servers_of(&listeners);
    let named = |name: &str| BackendServer { name: Some(name.to_owned()), ..servers[0].clone() };
    let balance = kettle_config::Balance::SourceHash;
    let servers = vec![named("a"), named("b"), servers[1].clone()];
    let app = app(&kettle_config::Backend { balance, ..settings(servers) });
    let mut held = Vec::new();
    for last in 0..64 {
        held.push(app.connect(IpAddr::V4(Ipv4Addr::new(192, 0, 2, last)).into()).await.unwrap());
    }
    let connections = app.servers.iter().map(|it| it.state.connections()).collect::<Vec<_>>();
    assert!(connections.iter().all(|count| *count > 0), "{connections:?}");
    let address = listeners[1].local_addr().unwrap().to_string();
    assert_eq!(app.servers[2].key, balance::key_of(&address));
}

#[tokio::test]
async fn each_server_is_tried_once_and_the_last_failure_is_told() {
    let app = app(&settings(vec![refusing().await, refusing().await, at("unix:/nobody/here")]));
    let error = app.connect(CLIENT).await.unwrap_err();
    assert!(matches!(error, ConnectError::AllFailed(_)), "{error}");
    let tries: u64 = (0..2).map(|server| count(&app, server, Outcome::Refused)).sum();
    assert_eq!((tries, count(&app, 2, Outcome::NoSocket)), (2, 1));
}

/// A server with a Unix socket, and what listens at it.
fn unix(folder: &tempfile::TempDir) -> (UnixListener, BackendServer) {
    let path = folder.path().join("app.sock");
    (UnixListener::bind(&path).unwrap(), at(format!("unix:{}", path.display())))
}

/// Fills the backlog of a Unix socket, until one more connection does not fit.
async fn fill(listener: &UnixListener) -> Vec<UnixStream> {
    rustix::net::listen(listener, 0).unwrap();
    let address = listener.local_addr().unwrap();
    let mut kept = Vec::new();
    while let Ok(stream) = UnixStream::connect(address.as_pathname().unwrap()).await {
        kept.push(stream);
    }
    kept
}

#[tokio::test]
async fn a_unix_socket_is_a_server_too() {
    let folder = tempfile::tempdir().unwrap();
    let (listener, server) = unix(&folder);
    let app = app(&settings(vec![server]));
    let connected = app.connect(CLIENT).await.unwrap();
    assert!(matches!(connected.socket, Socket::Unix(_)));
    listener.accept().await.unwrap();
}

#[tokio::test]
async fn a_unix_socket_with_a_full_backlog_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let (listener, server) = unix(&folder);
    let kept = fill(&listener).await;
    let mut settings = settings(vec![server]);
    settings.connect_timeout = Duration::from_secs(60);
    let app = app(&settings);
    let (connected, ()) = tokio::join!(app.connect(CLIENT), async {
        for _ in 0..=kept.len() {
            listener.accept().await.unwrap();
        }
    });
    assert!(connected.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_unix_socket_whose_backlog_stays_full_has_the_same_time_as_others() {
    let folder = tempfile::tempdir().unwrap();
    let (listener, server) = unix(&folder);
    let _kept = fill(&listener).await;
    let app = app(&settings(vec![server]));
    let error = app.connect(CLIENT).await.unwrap_err();
    assert_eq!(error.reason(), "timeout");
}

#[tokio::test(start_paused = true)]
async fn what_is_made_of_the_connection_shares_its_time_and_its_retry() {
    let listeners = some_listeners(3).await;
    let mut settings = settings(servers_of(&listeners));
    settings.balance = kettle_config::Balance::First;
    let app = app(&settings);
    let names: Vec<_> = app.servers.iter().map(|it| Arc::clone(&it.name)).collect();
    let handshake = async |_socket, server: &Server| match &*server.name {
        name if *name == *names[0] => Err(Failure::new(Outcome::Tls, "no")),
        name if *name == *names[1] => std::future::pending().await,
        name => Ok(name.to_owned()),
    };
    let connected = app.connect_with(CLIENT, handshake).await.unwrap();
    assert_eq!(connected.socket, *names[2]);
    assert_eq!(count(&app, 0, Outcome::Tls), 1);
    assert_eq!(count(&app, 1, Outcome::TimedOut), 1);
    assert_eq!(count(&app, 2, Outcome::Connected), 1);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_goes_away_is_neither_success_nor_failure() {
    let (hanging, _kept) = hanging();
    let app = app(&settings(vec![hanging]));
    let soon = Duration::from_millis(10);
    assert!(tokio::time::timeout(soon, app.connect(CLIENT)).await.is_err());
    assert_eq!(count(&app, 0, Outcome::Abandoned), 1);
    assert_eq!(app.servers[0].state.connections(), 0);
    assert_eq!(app.servers[0].state.last_failure(), None);
}

#[tokio::test]
async fn backups_are_for_when_no_other_can_be_reached() {
    let listeners = some_listeners(2).await;
    let mut settings = settings(servers_of(&listeners));
    settings.servers[0].backup = true;
    let app = app(&settings);
    for _ in 0..4 {
        let connected = app.connect(CLIENT).await.unwrap();
        assert!(Arc::ptr_eq(&connected.server, &app.servers[1]));
    }
    close(listeners);
    // Now the other refuses, so the backup is tried, and it refuses as well.
    let error = app.connect(CLIENT).await.unwrap_err();
    assert_eq!(error.reason(), "refused");
    assert_eq!(count(&app, 0, Outcome::Refused), 1);
}

#[tokio::test(start_paused = true)]
async fn a_full_server_is_no_reason_for_a_backup() {
    let listeners = some_listeners(2).await;
    let mut settings = settings(servers_of(&listeners));
    settings.servers[0].backup = true;
    settings.servers[1].connections = Some(1);
    let app = app(&settings);
    let _held = app.connect(CLIENT).await.unwrap();
    assert_eq!(app.connect(CLIENT).await.unwrap_err(), ConnectError::QueueTimeout);
}

#[tokio::test(start_paused = true)]
async fn servers_that_fail_are_out_for_a_while_and_least_bad_when_all_are() {
    let listeners = some_listeners(1).await;
    let mut settings = settings(vec![refusing().await]);
    settings.servers.extend(servers_of(&listeners));
    settings.balance = kettle_config::Balance::First;
    settings.fails = 2;
    let app = app(&settings);
    for _ in 0..5 {
        app.connect(CLIENT).await.unwrap();
    }
    assert_eq!(count(&app, 0, Outcome::Refused), 2, "then it is out");
    tokio::time::advance(settings.fail_time + Duration::from_millis(1)).await;
    app.connect(CLIENT).await.unwrap();
    assert_eq!(count(&app, 0, Outcome::Refused), 3, "then it is tried again");
    assert_eq!(app.shared.forced.read(), 0);
    close(listeners);
    for _ in 0..4 {
        app.connect(CLIENT).await.unwrap_err();
    }
    let forced = app.shared.forced.read();
    assert!(app.status().iter().all(|it| it.health == Health::Failing), "{:?}", app.status());
    let before = (count(&app, 0, Outcome::Refused), count(&app, 1, Outcome::Refused));
    assert_eq!(app.connect(CLIENT).await.unwrap_err().reason(), "refused");
    let after = (count(&app, 0, Outcome::Refused), count(&app, 1, Outcome::Refused));
    assert_eq!(after, (before.0 + 1, before.1 + 1), "both are tried although they are out");
    assert_eq!(app.shared.forced.read(), forced + 2, "and that is counted");
}

#[tokio::test]
async fn a_drained_server_gets_nothing_and_a_ready_one_does() {
    let listeners = some_listeners(1).await;
    let mut settings = settings(servers_of(&listeners));
    settings.servers[0].name = Some("one".to_owned());
    let backends = Backends::new(&[settings], None);
    let app = backends.find("app").unwrap();
    backends.set_draining("app", "one", true).unwrap();
    assert_eq!(app.connect(CLIENT).await.unwrap_err(), ConnectError::NoServer);
    assert_eq!(app.status()[0].health, Health::Draining);
    backends.set_draining("app", "one", false).unwrap();
    app.connect(CLIENT).await.unwrap();
    assert_eq!(backends.set_draining("app", "two", true), Err(UnknownServer));
    assert_eq!(backends.set_draining("other", "one", true), Err(UnknownServer));
}

#[tokio::test]
async fn a_port_that_answers_itself_is_refused() {
    // A connect to a port that is chosen for the same connect meets itself. Provoked by binding both ends alike.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let own = socket.local_addr().unwrap();
    let stream: TcpStream = socket.connect(own).await.unwrap();
    let refused = super::super::socket::prepared(stream, own).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
}

#[tokio::test]
async fn every_counter_appears_in_the_text() {
    let listeners = some_listeners(1).await;
    let mut settings = settings(servers_of(&listeners));
    settings.servers[0].name = Some("one".to_owned());
    let backends = Arc::new(Backends::new(&[settings], None));
    let _connected = backends.find("app").unwrap().connect(CLIENT).await.unwrap();
    backends.find("app").unwrap().servers[0].state.check_passed(2);
    let metrics = Metrics::new(1);
    metrics.set_source(Arc::clone(&backends) as Arc<_>);
    let text = render(&metrics, Duration::ZERO).unwrap();
    for line in [
        "kettle_backend_connects_total{backend=\"app\",server=\"one\",outcome=\"connected\"} 1",
        "kettle_backend_connect_seconds_count{backend=\"app\"} 1",
        "kettle_backend_connect_seconds_bucket{le=\"60.0\",backend=\"app\"} 1",
        "kettle_backend_up{backend=\"app\",server=\"one\"} 1",
        "kettle_backend_connections{backend=\"app\",server=\"one\"} 1",
        "kettle_backend_queue{backend=\"app\"} 0",
        "kettle_backend_forced_total{backend=\"app\"} 0",
        "kettle_backend_checks_total{backend=\"app\",server=\"one\",outcome=\"passed\"} 1",
    ] {
        assert!(text.lines().any(|it| it == line), "missing {line} in\n{text}");
    }
}

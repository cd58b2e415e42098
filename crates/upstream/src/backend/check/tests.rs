use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;

use kettle_config::{BackendTls, Located};
use tokio::net::{TcpListener, TcpSocket};
use tokio::time::sleep;

use super::*;
use crate::backend::tests::{self, listener};
use crate::backend::{BackendTasks, Backends, Health};

fn settings(address: SocketAddr, check: Check) -> kettle_config::Backend {
    kettle_config::Backend { check: Some(check), ..tests::settings(vec![tests::at(address)]) }
}

fn backend(settings: kettle_config::Backend) -> Arc<Backend> {
    tests::app(&settings)
}

/// The handshake of a backend without TLS.
struct NoTls;

impl Handshake for NoTls {
    async fn handshake(
        &self,
        _: &Backend,
        _: &Server,
        _: Socket,
    ) -> Result<Box<dyn ServerStream>, Failure> {
        Err(Failure::new(Outcome::Tls, "there is no TLS here"))
    }
}

/// One that says a word.
struct Hello;

impl Handshake for Hello {
    async fn handshake(
        &self,
        _: &Backend,
        _: &Server,
        mut socket: Socket,
    ) -> Result<Box<dyn ServerStream>, Failure> {
        socket.write_all(b"hello").await?;
        Ok(Box::new(socket))
    }
}

async fn asked(backend: &Backend, handshake: &impl Handshake) -> Result<(), Failure> {
    let check = backend.settings.check.as_ref().unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    let asked = ask(backend, &backend.servers[0], check, handshake, deadline);
    timeout_at(deadline, asked).await.unwrap().map(drop)
}

/// Asks a server that answers so and then closes; returns what it was sent.
async fn answered(kind: CheckKind, answer: &[u8]) -> (Result<(), Failure>, String) {
    let check = Check { kind, path: "/health".to_owned(), ..Check::default() };
    answered_to(check, answer).await
}

async fn answered_to(check: Check, answer: &[u8]) -> (Result<(), Failure>, String) {
    let listener = listener().await;
    let backend = backend(settings(listener.local_addr().unwrap(), check));
    let serve = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") && socket.read_buf(&mut request).await.unwrap() > 0 {}
        socket.write_all(answer).await.unwrap();
        String::from_utf8(request).unwrap()
    };
    tokio::join!(asked(&backend, &NoTls), serve)
}

#[tokio::test]
async fn a_request_says_what_is_wanted() {
    let (outcome, request) = answered(CheckKind::Http, b"HTTP/1.1 200 OK\r\n\r\n").await;
    outcome.unwrap();
    let mut lines = request.lines();
    assert_eq!(lines.next(), Some("GET /health HTTP/1.1"));
    assert!(lines.next().unwrap().starts_with("Host: 127.0.0.1:"));
    assert!(lines.any(|line| line == "Connection: close"));
}

#[tokio::test]
async fn the_host_is_sent_as_clients_would() {
    for (host, sent) in [("app.example", "app.example"), ("10.0.0.1", "10.0.0.1"), ("::1", "[::1]")]
    {
        let kind = CheckKind::Http;
        let host = Some(host.to_owned());
        let check = Check { kind, host, ..Check::default() };
        let (_, request) = answered_to(check, b"HTTP/1.1 200 OK\r\n\r\n").await;
        assert!(request.contains(&format!("\r\nHost: {sent}\r\n")), "{request}");
    }
}

#[tokio::test]
async fn statuses_from_200_to_399_are_healthy() {
    for (answer, is_healthy) in [
        (&b"HTTP/1.1 200 OK\r\n"[..], true),
        (b"HTTP/1.0 399 \r\n", true),
        (b"HTTP/1.1 204\r\n", true),
        (b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\n", true),
        (b"HTTP/1.1 100\r\n\r\nHTTP/1.1 102 \n\nHTTP/1.1 204 x\r\n", true),
        (b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 404 Not Found\r\n", false),
        (b"HTTP/1.1 101 x\r\n\r\nHTTP/1.1 200 OK\r\n", false),
        (b"HTTP/1.1 199 x\r\n", false),
        (b"HTTP/1.1 404 Not Found\r\n", false),
        (b"HTTP/1.1 503 Service Unavailable\r\n", false),
        (b"HTTP/1.1 2000 x\r\n", false),
        (b"HTTP/1.1 +20 x\r\n", false),
        (b"HTTP/2.0 200 OK\r\n", false),
        (b"SSH-2.0-OpenSSH_9\r\n", false),
        (b"HTTP/1.1 200", false),
        (b"", false),
    ] {
        let (outcome, _) = answered(CheckKind::Http, answer).await;
        assert_eq!(outcome.is_ok(), is_healthy, "{}: {outcome:?}", answer.escape_ascii());
        if let Err(failure) = outcome {
            assert_eq!(failure.outcome, Outcome::BadAnswer);
        }
    }
}

#[tokio::test]
async fn a_connection_is_all_that_tcp_asks_for() {
    let listener = listener().await;
    let backend = backend(settings(listener.local_addr().unwrap(), Check::default()));
    asked(&backend, &NoTls).await.unwrap();
    drop(listener);
    assert_eq!(asked(&backend, &NoTls).await.unwrap_err().outcome, Outcome::Refused);
}

#[tokio::test]
async fn a_header_comes_first_and_tls_before_the_request() {
    let listener = listener().await;
    let check = Check { kind: CheckKind::Http, ..Check::default() };
    let mut settings = settings(listener.local_addr().unwrap(), check);
    settings.send_proxy = SendProxy::V2;
    settings.tls = Some(BackendTls::default());
    let backend = backend(settings);
    let serve = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut received = Vec::new();
        while !received.ends_with(b"\r\n\r\n") {
            assert!(socket.read_buf(&mut received).await.unwrap() > 0);
        }
        socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        received
    };
    let (outcome, received) = tokio::join!(asked(&backend, &Hello), serve);
    outcome.unwrap();
    let Ok(proxy::Parse::Complete { header, bytes }) = proxy::parse(&received) else {
        panic!("no header in {}", received.escape_ascii());
    };
    assert_eq!(header.endpoints, proxy::Endpoints::Socket);
    assert!(received[bytes..].starts_with(b"helloGET / HTTP/1.1\r\n"));
}

#[tokio::test]
async fn tls_that_fails_is_a_failed_check() {
    let listener = listener().await;
    let check = Check { kind: CheckKind::Tls, ..Check::default() };
    let backend = backend(settings(listener.local_addr().unwrap(), check));
    assert_eq!(asked(&backend, &NoTls).await.unwrap_err().outcome, Outcome::Tls);
}

#[tokio::test]
async fn all_but_our_own_want_is_a_failed_check() {
    let check = Check { fall: 1, ..Check::default() };
    for (outcome, health) in [
        (Outcome::Tls, Health::Down),
        (Outcome::StartTls, Health::Down),
        (Outcome::NoResources, Health::Up),
    ] {
        let backend = backend(settings(([127, 0, 0, 1], 9).into(), check.clone()));
        take_note(&backend, &backend.servers[0], &check, Err(&Failure::new(outcome, "no")));
        assert_eq!(backend.status()[0].health, health, "{outcome:?}");
    }
}

#[tokio::test]
async fn of_a_name_s_addresses_a_check_tries_the_next_too() {
    struct NotAt(SocketAddr);

    impl Handshake for NotAt {
        async fn handshake(
            &self,
            _: &Backend,
            _: &Server,
            socket: Socket,
        ) -> Result<Box<dyn ServerStream>, Failure> {
            match &socket {
                Socket::Tcp(stream) if stream.peer_addr().unwrap() == self.0 => {
                    Err(Failure::new(Outcome::Tls, "no"))
                }
                _ => Ok(Box::new(socket)),
            }
        }
    }

    let listeners = [listener().await, listener().await];
    let addresses = listeners.each_ref().map(|it| it.local_addr().unwrap());
    let check = Check { kind: CheckKind::Tls, ..Check::default() };
    let backend = backend(settings(addresses[0], check));
    backend.servers[0].state.found_at(&addresses);
    asked(&backend, &NotAt(addresses[0])).await.unwrap();
}

/// Lets the (paused) time pass until a server's health is such, and says how long that took.
async fn until(backend: &Backend, health: Health) -> Duration {
    let begun = Instant::now();
    while backend.status()[0].health != health {
        assert!(begun.elapsed() < Duration::from_hours(1), "it never is {health:?}");
        sleep(Duration::from_millis(10)).await;
    }
    begun.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_server_goes_and_comes_back() {
    let first = listener().await;
    let address = first.local_addr().unwrap();
    let check = Check { interval: Duration::from_secs(10), fall: 3, rise: 2, ..Check::default() };
    let backends = Backends::new(&[settings(address, check)], None);
    let backend = Arc::clone(backends.find("app").unwrap());
    let mut watching = BackendTasks::default();
    watching.adopt(&backends, NoTls);
    let story = async {
        sleep(Duration::from_mins(1)).await;
        assert_eq!(backend.status()[0].health, Health::Up);
        drop(first);
        // Bound at once, so that nobody else gets the port.
        let again = TcpSocket::new_v4().unwrap();
        again.set_reuseaddr(true).unwrap();
        again.bind(address).unwrap();
        let fallen = until(&backend, Health::Down).await;
        assert!((18..=33).contains(&fallen.as_secs()), "three checks: {fallen:?}");
        let _again = again.listen(16).unwrap();
        let risen = until(&backend, Health::Up).await;
        assert!((9..=22).contains(&risen.as_secs()), "two checks: {risen:?}");
    };
    during(&mut watching, story).await;
}

/// Lets a story happen while servers are watched.
async fn during(watching: &mut BackendTasks<NoTls>, story: impl Future<Output = ()>) {
    tokio::select! {
        () = watching.watch() => {}
        () = story => {}
    }
}

/// One reload a second, where a check comes every two; `change` makes a difference each time.
async fn reload_again_and_again(
    mut settings: kettle_config::Backend,
    change: impl Fn(&mut kettle_config::Backend),
) -> Health {
    let mut backends = Backends::new(std::slice::from_ref(&settings), None);
    let mut watching = BackendTasks::default();
    for _ in 0..20 {
        watching.adopt(&backends, NoTls);
        during(&mut watching, sleep(Duration::from_secs(1))).await;
        change(&mut settings);
        backends = Backends::new(std::slice::from_ref(&settings), Some(&backends));
        backends.put_in_force();
    }
    backends.find("app").unwrap().status()[0].health
}

/// To close with its words unread would reset it.
#[tokio::test]
async fn a_server_that_speaks_first_and_last_is_left_in_order() {
    let listener = listener().await;
    let check = Check { interval: Duration::from_mins(1), ..Check::default() };
    let backends = Backends::new(&[settings(listener.local_addr().unwrap(), check)], None);
    let mut watching = BackendTasks::default();
    watching.adopt(&backends, NoTls);
    let story = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        socket.write_all(b"220 welcome\r\n").await.unwrap();
        assert_eq!(socket.read_to_end(&mut Vec::new()).await.unwrap(), 0);
        socket.write_all(b"421 goodbye\r\n").await.unwrap();
        assert_eq!(socket.read(&mut [0]).await.unwrap(), 0);
    };
    during(&mut watching, story).await;
}

#[tokio::test(start_paused = true)]
async fn reloads_do_not_put_checks_off() {
    // Bound, but nobody listens.
    let held = TcpSocket::new_v4().unwrap();
    held.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let settings = settings(held.local_addr().unwrap(), Check::default());
    let health = reload_again_and_again(settings.clone(), |_| {}).await;
    assert_eq!(health, Health::Down);
    // Not even those that begin them anew.
    let health = reload_again_and_again(settings, |settings| {
        settings.check.as_mut().unwrap().timeout += Duration::from_millis(1);
    })
    .await;
    assert_eq!(health, Health::Down);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_is_found_out_over_reloads() {
    // The kernel takes the connection, and nobody ever says a word.
    let listener = listener().await;
    let check =
        Check { kind: CheckKind::Http, timeout: Duration::from_secs(2), ..Check::default() };
    let settings = settings(listener.local_addr().unwrap(), check);
    let health = reload_again_and_again(settings, |settings| settings.queue += 1).await;
    assert_eq!(health, Health::Down);
}

#[tokio::test(start_paused = true)]
async fn a_server_whose_name_is_found_late_is_asked_soon() {
    // Bound, but nobody listens.
    let held = TcpSocket::new_v4().unwrap();
    held.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let address = held.local_addr().unwrap();
    let check = Check { interval: Duration::from_hours(1), fall: 1, ..Check::default() };
    let mut settings = settings(address, check.clone());
    let name = ServerAddress::parse("app.example:1").unwrap();
    settings.servers[0].address = Located::not_written(name);
    let backend = backend(settings);
    let watched = || {
        let server = Arc::clone(&backend.servers[0]);
        let backend = Arc::clone(&backend);
        Watched { backend, server, handshake: Rc::new(NoTls) }
    };
    let story = async {
        sleep(Duration::from_secs(30)).await;
        backend.servers[0].state.found_at(&[address]);
        assert!(until(&backend, Health::Down).await < Duration::from_secs(5));
    };
    tokio::select! {
        () = keep_checking(watched, check) => {}
        () = story => {}
    }
}

#[tokio::test(start_paused = true)]
async fn who_is_no_longer_watched_is_asked_no_more() {
    let listener = listener().await;
    let settings = settings(listener.local_addr().unwrap(), Check::default());
    let backends = Backends::new(&[settings], None);
    let mut watching = BackendTasks::default();
    watching.adopt(&backends, NoTls);
    during(&mut watching, sleep(Duration::from_secs(10))).await;
    let asked = || backends.find("app").unwrap().servers[0].state.last_check();
    let before = asked();
    assert!(before.is_some());
    watching.adopt(&Backends::default(), NoTls);
    during(&mut watching, sleep(Duration::from_mins(1))).await;
    assert_eq!(asked(), before);
}

/// Answers one connection with these bytes, and returns what came.
async fn asked_for(listener: TcpListener, sent: &[u8]) -> Vec<u8> {
    let (mut socket, _) = listener.accept().await.unwrap();
    let mut asked = vec![0; 4_096];
    let bytes = socket.read(&mut asked).await.unwrap();
    socket.write_all(sent).await.unwrap();
    asked.truncate(bytes);
    asked
}

#[tokio::test]
async fn an_application_is_asked_to_run_a_path() {
    let record = |kind: u8, content: &[u8]| {
        [&[1, kind, 0, 1, 0, content.len() as u8, 0, 0], content].concat()
    };
    let end = record(3, &[0; 8]);
    for (sent, is_well) in [
        (record(6, b"Content-Type: text/plain\r\n\r\npong"), true),
        ([record(7, b"a notice"), record(6, b"Status: 302\nA: b\n\n"), end.clone()].concat(), true),
        (record(6, b"Status: 404 Not Found\n\n"), false),
        (end, false),
        (record(6, b"Status"), false),
        (b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), false),
    ] {
        let listener = listener().await;
        let address = listener.local_addr().unwrap();
        let check =
            Check { kind: CheckKind::Http, path: "/ping?json".to_owned(), ..Check::default() };
        let settings = settings(address, check);
        let settings = kettle_config::Backend { protocol: BackendProtocol::FastCgi, ..settings };
        let backend = backend(settings);
        let (outcome, asked) = tokio::join!(asked(&backend, &NoTls), asked_for(listener, &sent));
        assert_eq!(outcome.is_ok(), is_well, "{outcome:?}");
        let has = |text: &[u8]| asked.windows(text.len()).any(|window| window == text);
        assert!(has(b"SCRIPT_NAME/ping") && has(b"QUERY_STRINGjson"));
    }
}

//! Connections that a reload finds open.

use std::convert::identity;
use std::os::fd::OwnedFd;
use std::task::Waker;

use kettle_config::{Located, Route, Site};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinSet, yield_now};

use super::*;
use crate::setup::{Listening, Sharing, Shutdown, WorkerSetup};
use crate::worker::{Listeners, serve};

const GET: &str = "GET /a HTTP/1.1\r\nHost: localhost\r\n\r\n";

impl Stage {
    /// Puts a configuration in force.
    fn reload(&self, change: impl FnOnce(&mut Config)) {
        let mut config = config(&self.folder);
        change(&mut config);
        self.worker.adopt(snapshot(&config, |router| router));
    }
}

#[tokio::test]
async fn a_connection_lives_through_reloads_that_change_only_sites() {
    on_stage(identity, async |stage| {
        let mut client = stage.connect().await;
        for reload in 0..60 {
            let field = ("x-reload".to_owned(), vec![reload.to_string().as_str().into()]);
            stage.reload(|config| config.sites[0].headers = vec![field]);
            client.send(GET).await;
            let (head, body) = client.response().await;
            assert!(head.contains(&format!("\r\nx-reload: {reload}\r\n")), "{head}");
            assert!(!head.contains("connection: close"), "{head}");
            assert_eq!(body, b"file");
        }
    })
    .await;
}

#[tokio::test]
async fn the_name_of_a_connection_is_held_to_the_new_sites() {
    on_stage(identity, async |stage| {
        let mut client = stage.connect().await;
        let other = GET.replace("localhost", "other.example");
        client.send(&other).await;
        assert!(client.response().await.0.starts_with("HTTP/1.1 200 "), "the default site");
        stage.reload(|config| {
            let root = config.sites[0].routes[0].root.clone();
            config.sites.push(Site {
                names: vec![Located::not_written("other.example".to_owned())],
                routes: vec![Route { root, ..Route::default() }],
                ..Site::default()
            });
        });
        client.send(&other).await;
        assert!(client.response().await.0.starts_with("HTTP/1.1 421 "));
        client.send(GET).await;
        assert_eq!(client.response().await.1, b"file");
    })
    .await;
}

#[tokio::test]
async fn a_connection_whose_own_settings_changed_ends_with_its_next_response() {
    let changes: [fn(&mut Config); 4] = [
        |config| config.limits.idle_timeout *= 2,
        |config| config.tls.session_cache += 1,
        |config| config.listeners[0].backlog += 1,
        |config| config.listeners.clear(),
    ];
    on_stage(identity, async |stage| {
        for change in changes {
            stage.reload(|_| {});
            let mut client = stage.connect().await;
            client.send(GET).await;
            assert!(!client.response().await.0.contains("connection: close"));
            stage.reload(change);
            client.send(GET).await;
            let (head, body) = client.response().await;
            assert!(head.contains("connection: close"), "{head}");
            assert_eq!(body, b"file");
            assert!(client.is_closed().await);
        }
    })
    .await;
}

#[tokio::test]
async fn whoever_accepts_follows_a_reload_if_another_listener_cannot_be_used() {
    on_stage(identity, async |stage| {
        let (good, _) = own_socket();
        // The kernel takes no file into an epoll set.
        let file = std::fs::File::open(stage.folder.path().join("a")).unwrap();
        let socket = Arc::new(OwnedFd::from(file).into());
        let bad = Listening { socket, sharing: Sharing::Own, index: 0 };
        let first = Arc::new(listening_on(&stage, vec![good.clone()]));
        let second = Arc::new(listening_on(&stage, vec![bad, good]));
        let mut accepting = Listeners::default();
        let mut tasks = JoinSet::new();
        accepting.follow(&stage.worker, &first, &mut tasks).await.unwrap();
        accepting.follow(&stage.worker, &second, &mut tasks).await.unwrap_err();
        settle().await;
        assert_eq!(Arc::strong_count(&first), 1, "somebody accepts under the old configuration");
        assert!(Arc::strong_count(&second) > 1, "nobody accepts any more");
        accepting.stop(&stage.worker, Instant::now());
        accepting.retired().await;
        settle().await;
        assert_eq!(Arc::strong_count(&second), 1, "somebody accepts for ever");
    })
    .await;
}

/// A worker that serves without listeners, and has begun; and the channels for what it is to do.
fn worker(
    stage: &Stage,
) -> (impl Future<Output = io::Result<()>>, watch::Sender<Arc<Snapshot>>, watch::Sender<Shutdown>) {
    let (snapshots, snapshot) = watch::channel(Arc::new(listening_on(stage, Vec::new())));
    let (stop, shutdown) = watch::channel(Shutdown::Running);
    let (_, questions) = mpsc::channel(1);
    let mut serving = Box::pin(serve(WorkerSetup {
        index: 0,
        cpu: None,
        snapshot,
        metrics: Arc::clone(&stage.worker.metrics),
        log: stage.log.worker(0).unwrap(),
        shutdown,
        tx_path_switch: Arc::default(),
        capabilities: Arc::new(capabilities()),
        budgets: budgets(),
        questions,
    }));
    let context = &mut Context::from_waker(Waker::noop());
    assert!(serving.as_mut().poll(context).is_pending());
    (serving, snapshots, stop)
}

fn listening_on(stage: &Stage, listeners: Vec<Listening>) -> Snapshot {
    let snapshot = snapshot(&config(&stage.folder), identity);
    Snapshot::new(Arc::clone(&snapshot.served), listeners)
}

/// A socket of one worker, and its address.
fn own_socket() -> (Listening, SocketAddr) {
    let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    let address = socket.local_addr().unwrap();
    (Listening { socket: Arc::new(socket), sharing: Sharing::Own, index: 0 }, address)
}

#[tokio::test]
async fn a_stop_that_comes_with_a_reload_ends_its_listeners() {
    on_stage(identity, async |stage| {
        // Which of two comes first would be left to chance.
        for _ in 0..16 {
            let (serving, snapshots, stop) = worker(&stage);
            let (socket, address) = own_socket();
            listening_on(&stage, vec![socket]).put_in_force(&snapshots);
            stop.send_replace(Shutdown::Draining { deadline: Instant::now() });
            serving.await.unwrap();
            std::net::TcpStream::connect(address).unwrap_err();
        }
    })
    .await;
}

#[tokio::test]
async fn a_client_of_a_reload_that_came_and_went_before_the_worker_saw_it_is_taken() {
    on_stage(identity, async |stage| {
        let (serving, snapshots, stop) = worker(&stage);
        let (socket, address) = own_socket();
        listening_on(&stage, vec![socket]).put_in_force(&snapshots);
        let client = std::net::TcpStream::connect(address).unwrap();
        for _ in 0..2 {
            listening_on(&stage, Vec::new()).put_in_force(&snapshots);
        }
        stop.send_replace(Shutdown::Draining { deadline: Instant::now() });
        serving.await.unwrap();
        assert!(client.take_error().unwrap().is_none(), "it was reset");
        std::net::TcpStream::connect(address).unwrap_err();
    })
    .await;
}

/// Lets the other tasks go as far as they can.
async fn settle() {
    for _ in 0..8 {
        yield_now().await;
    }
}

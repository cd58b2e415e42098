//! Whole connections, from the handshake to the last byte, over loopback in one thread.

mod allocations;
mod bodies;
mod notes;
mod reloads;
mod stops;
mod turns;

use std::collections::{HashMap, HashSet};
use std::future::poll_fn;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use kettle_config::{BackendServer, Cache, Config, Located, Log, Route, ServerAddress};
use kettle_handlers::route::Router;
use kettle_handlers::stores::Stores;
use kettle_http::h2::WindowBudget;
use kettle_kernel::probe::Capabilities;
use kettle_runtime::access_log::AccessLog;
use kettle_runtime::disk::UNWRITTEN_BYTES_MAX;
use kettle_runtime::encoder::EncoderPermits;
use kettle_runtime::metrics::WorkerMetrics;
use kettle_runtime::spool::Spool;
use kettle_runtime::tx_path::switch::TxPathSwitch;
use kettle_tls::connector::{Connector, ConnectorSettings, ResumeBy, Trust};
use kettle_tls::identity::Identities;
use kettle_tls::policy::{Group, Policy};
use kettle_tls::stream::Filled;
use kettle_tls::tickets::SharedResumption;
use kettle_tls::{Acceptor, Cipher, SiteGroup, Version, self_signed};
use kettle_upstream::Upstreams;
use kettle_upstream::backend::Backends;
use tokio::net::TcpListener;
use tokio::task::{LocalSet, spawn_local};

use super::*;
use crate::setup::{Budgets, Served};

/// A worker without a thread of its own, and the log it writes nothing to.
pub(super) struct Stage {
    folder: tempfile::TempDir,
    pub(super) worker: Rc<WorkerState>,
    listener: TcpListener,
    log: AccessLog,
}

struct Client {
    stream: Box<Stream>,
}

fn budgets() -> Budgets {
    Budgets {
        encoders: EncoderPermits::new(1, 4 << 20),
        windows: WindowBudget::new(0),
        spool: Spool::new(Path::new("/"), 0, 0, 0),
        unwritten_bytes: UNWRITTEN_BYTES_MAX,
    }
}

/// Runs a test where connections can live.
pub(super) async fn on_stage<F: Future>(
    change: impl FnOnce(Router) -> Router,
    test: impl FnOnce(Rc<Stage>) -> F,
) -> F::Output {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a"), "file").unwrap();
    let snapshot = snapshot(&config(&folder), change);
    let log =
        AccessLog::start(&Log::default(), HashSet::new(), 1, Arc::<AtomicU64>::default()).unwrap();
    let worker = Rc::new(WorkerState::new(
        snapshot,
        Arc::<WorkerMetrics>::default(),
        log.worker(0).unwrap(),
        Arc::<TxPathSwitch>::default(),
        Arc::new(capabilities()),
        budgets(),
    ));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let stage = Rc::new(Stage { folder, worker, listener, log });
    let state = Rc::clone(&stage.worker);
    LocalSet::new()
        .run_until(async {
            let turns = spawn_local(async move { state.handshake_turns.run().await });
            let outcome = test(stage).await;
            turns.abort();
            outcome
        })
        .await
}

/// Of a kernel without TLS.
fn capabilities() -> Capabilities {
    Capabilities {
        kernel_release: String::new(),
        ulp_listed: None,
        suites: Vec::new(),
        sendfile: Ok(()),
        splice: Ok(()),
        zero_copy_read_only: Ok(()),
        max_payload_length: Ok(()),
    }
}

fn config(folder: &tempfile::TempDir) -> Config {
    Config::for_folder(folder.path(), ([127, 0, 0, 1], 8443).into())
}

/// The site's only route leads to this server, and keeps its responses where `caches` has a store.
fn routed(
    config: Config,
    server: SocketAddr,
    caches: &[Cache],
    change: impl FnOnce(&mut Route),
) -> Router {
    routed_to(config, server, kettle_config::Backend::default(), caches, change)
}

/// The same where the backend has these settings besides its name and its server.
fn routed_to(
    mut config: Config,
    server: SocketAddr,
    settings: kettle_config::Backend,
    caches: &[Cache],
    change: impl FnOnce(&mut Route),
) -> Router {
    let address = ServerAddress::parse(&server.to_string()).unwrap();
    let address = Located::not_written(address);
    let name = Located::not_written("app".to_owned());
    let servers = vec![BackendServer { address, ..BackendServer::default() }];
    let settings = kettle_config::Backend { name: name.clone(), servers, ..settings };
    let upstreams = Upstreams::new(&Backends::new(&[settings], None), &HashMap::new());
    let route = &mut config.sites[0].routes[0];
    (route.root, route.backend) = (None, Some(name));
    change(route);
    Router::build(&config, &upstreams, &Stores::new(caches, None), None).unwrap()
}

fn snapshot(config: &Config, change: impl FnOnce(Router) -> Router) -> Arc<Snapshot> {
    let identity = self_signed::generate_in_memory(&["localhost".to_owned()]).unwrap();
    let mut identities = Identities::new();
    identities.add_site(&["localhost".to_owned()], true, vec![Arc::new(identity)]);
    let policy = Policy::default();
    let resumption =
        SharedResumption::new(config.tls.ticket_rotation, config.tls.session_cache).unwrap();
    let group = SiteGroup { alpn: &[b"h2", b"http/1.1"], ..SiteGroup::default() };
    let acceptor = Acceptor::for_group(&policy, identities.into(), &resumption, &group).unwrap();
    let served = Served {
        own_sites: Vec::new(),
        config: Arc::new(config.clone()),
        router: Arc::new(change(
            Router::build(config, &Default::default(), &Default::default(), None).unwrap(),
        )),
        tls: acceptor.clone().into(),
        tls_with_http2: acceptor.into(),
        tunnels: Vec::new(),
        backends: Arc::default(),
        upstreams: Arc::default(),
        challenges: None,
    };
    Arc::new(Snapshot::new(Arc::new(served), Vec::new()))
}

impl Stage {
    /// A client that has made its handshake.
    async fn connect(self: &Rc<Self>) -> Client {
        self.connect_for(b"http/1.1").await
    }

    /// The same, for this protocol.
    async fn connect_for(self: &Rc<Self>, protocol: &[u8]) -> Client {
        #[expect(clippy::disallowed_methods, reason = "it is the server beside it")]
        let trust = Trust::dangerous_anyone();
        let resume_by = ResumeBy::Nothing;
        let (name, alpn): (_, &[&[u8]]) = (Some("localhost"), &[protocol]);
        let settings = ConnectorSettings { trust, name, identity: None, alpn, resume_by };
        let policy = Policy {
            versions: vec![Version::Tls13],
            suites: vec![Cipher::Aes128Gcm],
            groups: vec![Group::X25519],
            ..Policy::default()
        };
        let connector = Connector::new(&policy, settings).unwrap();
        let address = self.listener.local_addr().unwrap();
        let (socket, accepted) = tokio::join!(TcpStream::connect(address), self.listener.accept());
        let (accepted, remote) = accepted.unwrap();
        accepted.set_nodelay(true).unwrap();
        let snapshot = self.worker.snapshot();
        let connection = Connection::new(Rc::clone(&self.worker), snapshot, 0, remote.into());
        spawn_local(Box::new(connection).serve(accepted));
        let socket = socket.unwrap();
        socket.set_nodelay(true).unwrap();
        Client { stream: Stream::connect(socket, &connector).await.unwrap() }
    }
}

impl Client {
    /// Sends bytes in a record of their own.
    async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.seal(&[bytes.as_ref()]).unwrap();
        poll_fn(|context| self.stream.poll_flush(context)).await.unwrap();
    }

    /// Ends the client's side.
    async fn close(&mut self) {
        self.stream.queue_close_notify();
        poll_fn(|context| self.stream.poll_flush(context)).await.unwrap();
    }

    /// The next response: its head, and its body by `content-length`.
    async fn response(&mut self) -> (String, Vec<u8>) {
        let head_bytes = loop {
            let received = self.stream.received().bytes();
            if let Some(end) = received.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                break end + 4;
            }
            assert!(self.fill().await, "the connection ended before a response");
        };
        let head = String::from_utf8(self.take(head_bytes)).unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let body_bytes = length.map_or(0, |length| length.parse().unwrap());
        while self.stream.received().bytes().len() < body_bytes {
            assert!(self.fill().await, "the connection ended in the middle of a body");
        }
        (head, self.take(body_bytes))
    }

    /// True if the server ends the connection without another byte, and says so.
    async fn is_closed(&mut self) -> bool {
        assert!(self.stream.received().bytes().is_empty());
        let fill = poll_fn(|context| self.stream.poll_fill(context)).await;
        matches!(fill, Ok(Filled::Closed))
    }

    async fn fill(&mut self) -> bool {
        matches!(poll_fn(|context| self.stream.poll_fill(context)).await, Ok(Filled::Data))
    }

    fn take(&mut self, bytes: usize) -> Vec<u8> {
        let taken = self.stream.received().bytes()[..bytes].to_vec();
        self.stream.consume(bytes);
        taken
    }
}

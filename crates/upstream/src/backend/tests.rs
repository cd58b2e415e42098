use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::time::Duration;

use kettle_config::Located;
use kettle_kernel::socket;
use kettle_runtime::client_address::ClientHost;
use kettle_runtime::metrics::{Metrics, render};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::Instant;

use super::*;

mod connecting;
mod queueing;
mod reloads;

pub(crate) const CLIENT: ClientHost = ClientHost::Ip(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)));

/// Servers of a backend called `app`, as settings.
pub(crate) fn settings(servers: Vec<BackendServer>) -> kettle_config::Backend {
    kettle_config::Backend {
        name: Located::not_written("app".to_owned()),
        servers,
        ..kettle_config::Backend::default()
    }
}

pub(crate) fn at(address: impl ToString) -> BackendServer {
    let address = ServerAddress::parse(&address.to_string()).unwrap();
    BackendServer { address: Located::not_written(address), ..BackendServer::default() }
}

pub(crate) fn app(settings: &kettle_config::Backend) -> Arc<Backend> {
    Arc::clone(Backends::new(std::slice::from_ref(settings), None).find("app").unwrap())
}

pub(crate) async fn listener() -> TcpListener {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap()
}

async fn some_listeners(count: usize) -> Vec<TcpListener> {
    let mut listeners = Vec::new();
    for _ in 0..count {
        listeners.push(listener().await);
    }
    listeners
}

fn servers_of(listeners: &[TcpListener]) -> Vec<BackendServer> {
    listeners.iter().map(|it| at(it.local_addr().unwrap())).collect()
}

/// An address that nobody listens on, and nobody else in this process gets.
fn dead_address() -> SocketAddr {
    let held = TcpSocket::new_v4().unwrap();
    held.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let address = held.local_addr().unwrap();
    std::mem::forget(held);
    address
}

async fn refusing() -> BackendServer {
    at(dead_address())
}

/// Nobody listens there any more, and nobody else in this process gets the addresses.
fn close(listeners: Vec<TcpListener>) {
    for listener in listeners {
        let address = listener.local_addr().unwrap();
        drop(listener);
        let held = TcpSocket::new_v4().unwrap();
        held.set_reuseaddr(true).unwrap();
        held.bind(address).unwrap();
        std::mem::forget(held);
    }
}

/// An address that answers no connect: its backlog is full. It stays so for as long as what is returned is kept.
fn hanging() -> (BackendServer, Vec<OwnedFd>) {
    let listener = socket::listen((Ipv4Addr::LOCALHOST, 0).into(), 0).unwrap();
    let address = listener.local_addr().unwrap();
    let filling = std::net::TcpStream::connect(address).unwrap();
    (at(address), vec![listener.into(), filling.into()])
}

fn count(backend: &Backend, server: usize, outcome: Outcome) -> u64 {
    use kettle_runtime::metrics::{Label, Shape};
    backend.servers[server].state.connects.read()[outcome.index()]
}

/// Of those that go on with the backend they began with.
fn nobody_else() -> Option<Arc<Backend>> {
    None
}

/// As tunnels do it.
impl Backend {
    async fn connect(self: &Arc<Self>, client: ClientHost) -> Result<Connected, ConnectError> {
        self.connect_with(client, async |socket, _: &Server| Ok(socket)).await
    }

    async fn connect_with<S>(
        self: &Arc<Self>,
        client: ClientHost,
        make: impl AsyncFn(Socket, &Server) -> Result<S, Failure>,
    ) -> Result<Connected<S>, ConnectError> {
        let mut attempts = self.attempts(client);
        loop {
            let attempt = attempts.next(nobody_else).await?;
            match attempt.connect_with(&make).await {
                Ok(socket) => return Ok(attempts.succeeded(attempt, socket)),
                Err(failure) => attempts.failed(attempt, failure),
            }
        }
    }
}

/// Polls a future that is not ready.
async fn pends<T>(future: &mut (impl Future<Output = T> + Unpin)) {
    tokio::select! {
        biased;
        _ = future => panic!("there is no slot"),
        () = tokio::task::yield_now() => {}
    }
}

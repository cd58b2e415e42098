//! Looking after backends: checks of their servers, in TLS where tunnels speak it, and lookups of their names.

use std::sync::Arc;

use super::open::begin_tls;
use crate::backend::{
    Backend, Backends, Failure, Handshake, Outcome, Server, Socket, Stream, Watch,
};
use crate::tunnel_routes::TunnelRoutes;
use crate::upstream::Upstreams;

/// Checks servers and looks up names. Once in a process is enough, on a runtime that nobody's connections wait for: names
/// are looked up by its blocking threads.
#[derive(Default)]
pub struct BackendWatch(Watch<AsUsed>);

/// TLS as the tunnels of these listeners speak it, and routes that pass requests.
struct AsUsed(Vec<Option<Arc<TunnelRoutes>>>, Arc<Upstreams>);

impl BackendWatch {
    /// Looks after these from here on. What is the same as before goes on.
    pub fn adopt(
        &mut self,
        backends: &Backends,
        tunnels: Vec<Option<Arc<TunnelRoutes>>>,
        upstreams: Arc<Upstreams>,
    ) {
        self.0.adopt(backends, AsUsed(tunnels, upstreams));
    }

    /// Does its work for as long as it is polled.
    pub async fn watch(&mut self) {
        self.0.watch().await;
    }
}

impl Handshake for AsUsed {
    async fn handshake(
        &self,
        backend: &Backend,
        server: &Server,
        socket: Socket,
    ) -> Result<Box<dyn Stream>, Failure> {
        let routes = self.0.iter().flatten();
        let mut ways = routes.filter_map(|routes| routes.connector(backend, server));
        let connector = ways.next().or_else(|| self.1.connector(backend, server));
        let unknown = || Failure::new(Outcome::Tls, "no listener says how TLS is spoken to it");
        let connector = connector.ok_or_else(unknown)?;
        let (stream, _) = begin_tls(socket, connector, backend.settings.starttls()).await?;
        Ok(stream as Box<dyn Stream>)
    }
}

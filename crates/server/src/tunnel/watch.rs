//! Looking after backends: checks of their servers, in TLS where tunnels speak it, and lookups of their names.

use std::sync::Arc;

use super::open::begin_tls;
use crate::backend::{Backend, Backends, Failure, Outcome, Server, Stream};
use crate::tunnel_routes::TunnelRoutes;

/// Checks servers and looks up names until it is dropped; over at once where nothing is to be done. Once in a process is
/// enough, on a runtime that nobody's connections wait for: names are looked up by its blocking threads.
pub async fn watch_backends(backends: Arc<Backends>, tunnels: Vec<Option<Arc<TunnelRoutes>>>) {
    let handshake = async move |backend: &Backend, server: &Server, socket| {
        let routes = tunnels.iter().flatten();
        let mut ways = routes.filter_map(|routes| routes.connector(backend, server));
        let unknown = || Failure::new(Outcome::Tls, "no listener says how TLS is spoken to it");
        let connector = ways.next().ok_or_else(unknown)?;
        let (stream, _) = begin_tls(socket, connector, backend.settings.starttls()).await?;
        Ok(stream as Box<dyn Stream>)
    };
    backends.keep_watch(handshake).await;
}

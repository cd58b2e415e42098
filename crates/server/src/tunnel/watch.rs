//! Looking after backends: checks of their servers, in TLS where tunnels speak it, and lookups of their names.

use std::sync::Arc;

use kettle_config::StartTls;

use super::open::handshake_of_check;
use crate::backend::{Backend, Backends, Server};
use crate::tunnel_routes::TunnelRoutes;

/// Checks servers and looks up names until it is dropped; over at once where nothing is to be done. Once in a process is
/// enough, on a runtime that nobody's connections wait for: names are looked up by its blocking threads.
pub async fn watch_backends(backends: Arc<Backends>, tunnels: Vec<Option<Arc<TunnelRoutes>>>) {
    let handshake = async move |backend: &Backend, server: &Server, socket| {
        let routes = tunnels.iter().flatten();
        let mut ways = routes.filter_map(|routes| routes.connector(backend, server));
        let tls = backend.settings.tls.as_ref();
        let protocol = tls.map_or(StartTls::Off, |tls| tls.starttls);
        handshake_of_check(socket, ways.next(), protocol).await
    };
    backends.keep_watch(handshake).await;
}

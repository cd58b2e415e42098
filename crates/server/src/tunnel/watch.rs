//! Looking after backends: checks of their servers, in TLS where tunnels speak it, and lookups of their names.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use kettle_tls::stream::{Filled, Stream};
use kettle_tls::{Session, Version};
use kettle_upstream::Upstreams;
use kettle_upstream::backend::{
    Backend, BackendTasks, Backends, Failure, Handshake, Outcome, Server, ServerStream, Socket,
};
use tokio::time::timeout;

use super::open::begin_tls;

/// Checks servers and looks up names. Once in a process is enough, on a runtime that nobody's connections wait for: names
/// are looked up by its blocking threads.
#[derive(Default)]
pub struct BackendWatch(BackendTasks<AsUsed>);

/// TLS as tunnels speak it, and routes that pass requests.
struct AsUsed(Arc<Upstreams>);

impl BackendWatch {
    /// Looks after these from here on. A server that is the same as before goes on.
    pub fn adopt(&mut self, backends: &Backends, upstreams: Arc<Upstreams>) {
        self.0.adopt(backends, AsUsed(upstreams));
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
    ) -> Result<Box<dyn ServerStream>, Failure> {
        let unknown = || Failure::new(Outcome::Tls, "nothing says how TLS is spoken to it");
        let connector = self.0.connector(backend, server).ok_or_else(unknown)?;
        // The sessions are for clients. A full handshake, in which the certificate is verified, says more, too.
        let connector = connector.forget_sessions();
        let starttls = backend.settings.starttls();
        let (mut stream, _) = begin_tls(socket, &connector, starttls, Outcome::Tls).await?;
        let time_max = backend.settings.check.as_ref().map_or(VERDICT_MAX, |it| it.timeout / 4);
        let verdict = timeout(time_max.min(VERDICT_MAX), verdict_on_us(&mut stream)).await;
        // A server that says nothing in this time has taken the certificate.
        verdict.unwrap_or(Ok(()))?;
        Ok(stream as Box<dyn ServerStream>)
    }
}

/// Waits for what a server makes of our certificate, or of our having none. In TLS 1.3 that comes behind the handshake: an alert
/// says no, tickets say yes.
async fn verdict_on_us(stream: &mut Stream) -> Result<(), Failure> {
    let asks = |it: &Session| it.version == Version::Tls13 && it.is_certificate_asked;
    if !stream.session().is_some_and(asks) {
        return Ok(());
    }
    let verdict = poll_fn(|context| match stream.poll_fill(context) {
        Poll::Pending if stream.tickets().count > 0 => Poll::Ready(Ok(Filled::Data)),
        polled => polled,
    });
    match verdict.await {
        Ok(Filled::Data) => Ok(()),
        Ok(Filled::Closed | Filled::Truncated) => {
            Err(Failure::new(Outcome::Closed, "it closed after it had asked for a certificate"))
        }
        Err(error) => Err(error.into()),
    }
}

/// The time a check waits for it where a server says nothing; at most a quarter of its time.
const VERDICT_MAX: Duration = Duration::from_millis(250);

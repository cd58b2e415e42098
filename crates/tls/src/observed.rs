//! What rustls asks of us during a handshake and does not tell afterwards.
//!
//! The unbuffered connection has no accessor for the server name, and none for how a TLS 1.2
//! session was resumed; both can be seen in the callbacks it makes. A handshake step runs to its
//! end on one thread, so a thread-local note taken up right after the step belongs to it.

use std::cell::RefCell;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::server::{ClientHello, ProducesTickets, ResolvesServerCert};
use rustls::sign::CertifiedKey;

/// What the callbacks of one handshake step showed.
#[derive(Debug, Default)]
pub(crate) struct Observed {
    pub(crate) server_name: Option<Box<str>>,
    pub(crate) has_read_ticket: bool,
}

thread_local! {
    static OBSERVED: RefCell<Observed> = RefCell::default();
}

/// Takes the notes of the step that just ran on this thread.
pub(crate) fn take() -> Observed {
    OBSERVED.take()
}

/// Puts the observers around what a configuration calls back.
pub(crate) fn observe(config: &mut ServerConfig) {
    config.cert_resolver = Arc::new(ObservingResolver(Arc::clone(&config.cert_resolver)));
    config.ticketer = Arc::new(ObservingTicketer(Arc::clone(&config.ticketer)));
}

#[derive(Debug)]
struct ObservingResolver(Arc<dyn ResolvesServerCert>);

impl ResolvesServerCert for ObservingResolver {
    fn resolve(&self, client_hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let server_name = client_hello.server_name().map(Box::from);
        OBSERVED.with_borrow_mut(|observed| observed.server_name = server_name);
        self.0.resolve(client_hello)
    }
}

#[derive(Debug)]
struct ObservingTicketer(Arc<dyn ProducesTickets>);

impl ProducesTickets for ObservingTicketer {
    fn enabled(&self) -> bool {
        self.0.enabled()
    }

    fn lifetime(&self) -> u32 {
        self.0.lifetime()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.0.encrypt(plain)
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        let plain = self.0.decrypt(cipher);
        if plain.is_some() {
            OBSERVED.with_borrow_mut(|observed| observed.has_read_ticket = true);
        }
        plain
    }
}

//! Loads and servers as the tests need them.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use kettle_loadgen::client::{self, Outcome};
use kettle_loadgen::load::{End, Expect, Load, LoadModel, Reuse};
use kettle_loadgen::offer::{Offer, ResumeBy};
use kettle_tls::policy::Group;
use kettle_tls::{Cipher, Version};
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::ServerSessionMemoryCache;

use crate::server::{Answer, Behaviour, Server};

pub const TLS13: Offer = Offer {
    version: Version::Tls13,
    cipher: Cipher::Aes128Gcm,
    group: Group::X25519,
    resume_by: ResumeBy::Nothing,
    http2: None,
};

/// A body whose bytes differ.
pub fn body(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|position| (position % 251) as u8).collect()
}

/// A TLS server that answers its requests like this, with 1 KB.
pub fn server(answer: impl Fn(u64) -> Answer + Send + Sync + 'static) -> Server {
    server_with(body(1_024), answer)
}

pub fn server_with(
    body: Vec<u8>,
    answer: impl Fn(u64) -> Answer + Send + Sync + 'static,
) -> Server {
    let config = Arc::new(tls_config());
    let tls = move |_| Arc::clone(&config);
    Server::start(Behaviour { tls: Some(Box::new(tls)), answer: Box::new(answer), body })
}

/// The same without TLS.
pub fn plain_server(answer: impl Fn(u64) -> Answer + Send + Sync + 'static) -> Server {
    Server::start(Behaviour { tls: None, answer: Box::new(answer), body: body(1_024) })
}

/// A server whose TLS may differ from connection to connection.
pub fn server_by_connection(
    tls: impl Fn(u64) -> Arc<ServerConfig> + Send + Sync + 'static,
) -> Server {
    let answer = Box::new(|_| Answer::Right);
    Server::start(Behaviour { tls: Some(Box::new(tls)), answer, body: body(1_024) })
}

/// Every version, suite and group; sessions by ID and by ticket.
pub fn tls_config() -> ServerConfig {
    let (certificate, key) = identity();
    let provider = aws_lc_rs::default_provider();
    let mut config = ServerConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key.clone_key())
        .unwrap();
    config.session_storage = ServerSessionMemoryCache::new(10_000);
    config.ticketer = aws_lc_rs::Ticketer::new().unwrap();
    config
}

fn identity() -> &'static (CertificateDer<'static>, PrivateKeyDer<'static>) {
    static IDENTITY: OnceLock<(CertificateDer<'static>, PrivateKeyDer<'static>)> = OnceLock::new();
    IDENTITY.get_or_init(|| {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        (made.cert.der().clone(), key)
    })
}

/// One connection after the other makes one request after the other, `count` in all.
pub fn requests(server: &Server, connections: u32, count: u64) -> Load {
    Load {
        tls: Some(TLS13),
        reuse: Reuse { requests_per_connection: None, connections_per_session: 1 },
        model: LoadModel::Closed { connections },
        end: End::Requests { count, at_most: PATIENCE },
        expect: Expect { body_bytes: Some(1_024), body_sha256: None },
        ..Load::once(server.address(), PATIENCE)
    }
}

/// The same without TLS.
pub fn plain_requests(server: &Server, connections: u32, count: u64) -> Load {
    Load { tls: None, ..requests(server, connections, count) }
}

/// A processor this test may run on.
pub fn cpu() -> usize {
    let allowed = rustix::thread::sched_getaffinity(None).unwrap();
    (0..rustix::thread::CpuSet::MAX_CPU).find(|&cpu| allowed.is_set(cpu)).unwrap()
}

pub fn run(load: &Load) -> Outcome {
    client::run(load, &mut |_| {}).unwrap()
}

/// The number of transactions that failed for this reason.
pub fn failed(outcome: &Outcome, reason: &str) -> u64 {
    outcome.failures.get(reason).copied().unwrap_or_default()
}

/// A time in milliseconds at this place of a histogram of microseconds.
pub fn milliseconds(histogram: &hdrhistogram::Histogram<u64>, quantile: f64) -> f64 {
    histogram.value_at_quantile(quantile) as f64 / 1_000.0
}

/// No test waits longer for anything.
pub const PATIENCE: Duration = Duration::from_secs(30);

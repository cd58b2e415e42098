//! Measures what a byte of a file costs in user space until it is ready to be sent: by rustls' own
//! `encrypt`, and sealed in place behind a `pread`. The figures of docs/decisions/0001.
//!
//! `cargo run --release -p kettle-tls --example seal_cost`
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a measurement that fails has nothing to say")]

use std::io::Write;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

use kettle_kernel::process::thread_cpu_time;
use kettle_tls::Version;
use kettle_tls::records::{ContentType, Keys, PLAINTEXT_BYTES_MAX, RecordSealer};
use rustls::crypto::aws_lc_rs;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, UnbufferedStatus};
use rustls::{
    CipherSuite, ClientConfig, ClientConnection, ConnectionTrafficSecrets, RootCertStore,
    ServerConfig,
};
use rustls_pki_types::PrivatePkcs8KeyDer;

fn main() {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&[7; FILE_BYTES]).unwrap();
    let mut rustls = established();
    let mut sealer = sealer();
    let mut plaintext = vec![0; CHUNK_BYTES];
    let mut outgoing = vec![0; CHUNK_BYTES + 4_096];
    let mut by_rustls = Vec::new();
    let mut in_place = Vec::new();
    for _ in 0..ROUNDS {
        by_rustls.push(timed(|| {
            for offset in (0..FILE_BYTES).step_by(CHUNK_BYTES) {
                file.read_exact_at(&mut plaintext, offset as u64).unwrap();
                let UnbufferedStatus { state, .. } = rustls.process_tls_records(&mut []);
                let Ok(ConnectionState::WriteTraffic(mut traffic)) = state else { return };
                traffic.encrypt(&plaintext, &mut outgoing).unwrap();
            }
        }));
        in_place.push(timed(|| {
            let prefix = sealer.prefix_bytes();
            let overhead = sealer.prefix_bytes() + sealer.suffix_bytes();
            for offset in (0..FILE_BYTES).step_by(PLAINTEXT_BYTES_MAX) {
                let record = &mut outgoing[..PLAINTEXT_BYTES_MAX + overhead];
                let room = &mut record[prefix..prefix + PLAINTEXT_BYTES_MAX];
                file.read_exact_at(room, offset as u64).unwrap();
                sealer.seal(ContentType::ApplicationData, record).unwrap();
            }
        }));
    }
    let by_rustls = median(by_rustls);
    let in_place = median(in_place);
    println!("rustls encrypt    {by_rustls:.3} ns/byte");
    println!("sealed in place   {in_place:.3} ns/byte   {:.2}x", in_place / by_rustls);
    println!("rustls' connection alone: {} bytes, before what it allocates", size_of_val(&rustls));
}

fn timed(run: impl FnOnce()) -> Duration {
    let before = thread_cpu_time();
    run();
    thread_cpu_time() - before
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_nanos() as f64 / FILE_BYTES as f64
}

fn sealer() -> RecordSealer {
    let secrets = ConnectionTrafficSecrets::Aes128Gcm { key: [1; 32].into(), iv: [2; 12].into() };
    RecordSealer::new(Keys::new(Version::Tls13, 0, &secrets).unwrap()).unwrap()
}

/// A rustls server connection after its handshake, with AES-128-GCM.
fn established() -> UnbufferedServerConnection {
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let mut provider = aws_lc_rs::default_provider();
    provider.cipher_suites.retain(|s| s.suite() == CipherSuite::TLS13_AES_128_GCM_SHA256);
    let mut roots = RootCertStore::empty();
    roots.add(certified.cert.der().clone()).unwrap();
    let client = ClientConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let server = ServerConfig::builder_with_provider(aws_lc_rs::default_provider().into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key.into())
        .unwrap();
    let mut client =
        ClientConnection::new(Arc::new(client), "localhost".try_into().unwrap()).unwrap();
    let mut server = UnbufferedServerConnection::new(Arc::new(server)).unwrap();
    let mut incoming = Vec::new();
    loop {
        client.write_tls(&mut incoming).unwrap();
        let UnbufferedStatus { discard, state } = server.process_tls_records(&mut incoming);
        match state.unwrap() {
            ConnectionState::EncodeTlsData(mut encode) => {
                let mut encoded = vec![0; 8_192];
                let bytes = encode.encode(&mut encoded).unwrap();
                client.read_tls(&mut &encoded[..bytes]).unwrap();
                client.process_new_packets().unwrap();
            }
            ConnectionState::TransmitTlsData(transmit) => transmit.done(),
            ConnectionState::WriteTraffic(_) if !client.wants_write() && discard == 0 => break,
            _ => {}
        }
        incoming.drain(..discard);
    }
    server
}

const FILE_BYTES: usize = 1 << 20;
const CHUNK_BYTES: usize = 8 * PLAINTEXT_BYTES_MAX;
const ROUNDS: usize = 200;

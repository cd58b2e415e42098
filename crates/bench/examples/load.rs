//! The load of `cargo xtask measure native`: one thread that asks a server for one thing many times and reads what that cost in the
//! server's own process clock. Prints one JSON object. It checks lengths, protocol, suite and how each session began, and fails if
//! the mix is not the one asked for.
#![forbid(unsafe_code)]
#![allow(missing_docs)]

use std::collections::HashMap;
use std::error::Error;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, HandshakeKind, SignatureScheme,
};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let load = Load::from_arguments()?;
    kettle_kernel::process::raise_open_files_limit()?;
    let line = match load.kind.as_str() {
        "sessions" => load.sessions(),
        "keep-alive" => load.keep_alive(),
        "memory" => load.memory(),
        "latency" => load.latency(),
        other => Err(format!("unknown kind `{other}`").into()),
    }?;
    println!("{line}");
    Ok(())
}

/// What to ask for, and of whom.
struct Load {
    kind: String,
    address: String,
    /// The server's processes, whose clocks and memory are read.
    processes: Vec<u32>,
    request: Vec<u8>,
    body_bytes: usize,
    /// Sessions, or requests.
    operations: usize,
    /// Transactions with one session, each on its own connection.
    transactions: usize,
    /// Connections at work at the same time.
    connections: usize,
    /// Connections that made one request and stay.
    idle: usize,
    tls: ClientConfig,
}

impl Load {
    fn from_arguments() -> Outcome<Self> {
        let mut given: HashMap<String, String> = HashMap::new();
        for word in std::env::args().skip(1) {
            let (name, value) = word.split_once('=').ok_or("arguments are name=value")?;
            given.insert(name.to_owned(), value.to_owned());
        }
        let text = |name: &str, default: &str| {
            given.get(name).cloned().unwrap_or_else(|| default.to_owned())
        };
        let number = |name: &str, default: &str| text(name, default).parse::<usize>();
        let file = text("file", "1k");
        Ok(Self {
            kind: text("kind", "keep-alive"),
            address: text("address", "127.0.0.1:8443"),
            processes: text("processes", "")
                .split(',')
                .filter(|word| !word.is_empty())
                .map(str::parse)
                .collect::<Result<_, _>>()?,
            request: format!("GET /{file} HTTP/1.1\r\nHost: localhost\r\n\r\n").into_bytes(),
            body_bytes: number("bytes", "1024")?,
            operations: number("operations", "1000")?,
            transactions: number("transactions", "1")?,
            connections: number("connections", "1")?,
            idle: number("idle", "0")?,
            tls: client_config(&text("version", "1.3"))?,
        })
    }

    /// Sessions of one full handshake and `transactions - 1` resumed ones, each transaction a connection with one request.
    /// `connections` sessions are under way at the same time, so that the server always has something to do.
    fn sessions(&self) -> Outcome<String> {
        let turns = self.operations / self.connections;
        let warm_up = turns.div_ceil(WARM_UP_PART);
        let mut meter = Meter::default();
        for turn in 0..turns + warm_up {
            if turn == warm_up {
                meter = Meter::start(&self.processes)?;
            }
            let mut sessions = Vec::with_capacity(self.connections);
            for _ in 0..self.connections {
                let mut tls = self.tls.clone();
                tls.resumption = match self.transactions {
                    1 => Resumption::disabled(),
                    _ => Resumption::in_memory_sessions(SESSIONS_KEPT),
                };
                sessions.push(Arc::new(tls));
            }
            self.transaction(&sessions, HandshakeKind::Full)?;
            for _ in 1..self.transactions {
                self.transaction(&sessions, HandshakeKind::Resumed)?;
            }
        }
        meter.finish(&self.processes, turns * self.connections)
    }

    /// One connection with one request for each session, a step at a time on all of them.
    fn transaction(&self, sessions: &[Arc<ClientConfig>], expected: HandshakeKind) -> Outcome<()> {
        let mut clients = Vec::with_capacity(sessions.len());
        for tls in sessions {
            let mut client = Client::connect(&self.address, tls)?;
            client.send()?;
            clients.push(client);
        }
        self.turn(&mut clients, &mut |_| {})?;
        for client in &mut clients {
            let kind = client.tls.handshake_kind();
            if kind != Some(expected) {
                return Err(format!("a session began as {kind:?}, not {expected:?}").into());
            }
            client.say_goodbye()?;
        }
        clients.iter_mut().try_for_each(Client::await_end)
    }

    /// Requests on connections that stay, all of them under way at the same time.
    fn keep_alive(&self) -> Outcome<String> {
        let tls = Arc::new(self.tls.clone());
        let mut clients = self.connect(self.connections, &tls)?;
        let turns = self.operations / self.connections;
        let warm_up = turns / WARM_UP_PART;
        let mut meter = Meter::default();
        for turn in 0..turns + warm_up {
            if turn == warm_up {
                meter = Meter::start(&self.processes)?;
            }
            self.turn(&mut clients, &mut |_| {})?;
        }
        meter.finish(&self.processes, turns * self.connections)
    }

    /// The server's memory for each connection that made one request and then stays.
    fn memory(&self) -> Outcome<String> {
        let tls = Arc::new(self.tls.clone());
        // What the first connections bring into being is not theirs alone, so they are left out.
        let _first = self.connect(self.idle / WARM_UP_PART, &tls)?;
        settle(&self.processes)?;
        let before = proportional_bytes(&self.processes)?;
        let _clients = self.connect(self.idle, &tls)?;
        settle(&self.processes)?;
        let after = proportional_bytes(&self.processes)?;
        let each = after.saturating_sub(before) as f64 / self.idle as f64;
        Ok(format!("{{\"bytes_per_connection\":{each:.0}}}"))
    }

    /// How long a request takes, with `connections` at work at once and `idle` ones beside them.
    fn latency(&self) -> Outcome<String> {
        let tls = Arc::new(self.tls.clone());
        let _idle = self.connect(self.idle, &tls)?;
        let mut clients = self.connect(self.connections, &tls)?;
        let turns = self.operations / self.connections;
        let mut taken = Vec::with_capacity(self.operations);
        for turn in 0..turns + turns / WARM_UP_PART {
            let is_counted = turn >= turns / WARM_UP_PART;
            self.turn(&mut clients, &mut |duration| {
                if is_counted {
                    taken.push(duration);
                }
            })?;
        }
        taken.sort_unstable();
        let at = |part: usize| {
            taken.get(taken.len() * part / 100).copied().unwrap_or_default().as_micros()
        };
        Ok(format!("{{\"p50_us\":{},\"p99_us\":{}}}", at(50), at(99)))
    }

    fn connect(&self, count: usize, tls: &Arc<ClientConfig>) -> Outcome<Vec<Client>> {
        let mut clients = Vec::with_capacity(count);
        for _ in 0..count {
            let mut client = Client::connect(&self.address, tls)?;
            client.fetch(&self.request, self.body_bytes)?;
            clients.push(client);
        }
        Ok(clients)
    }

    /// One request on every connection: all are asked before the first answer is read.
    fn turn(&self, clients: &mut [Client], on_answer: &mut dyn FnMut(Duration)) -> Outcome<()> {
        let mut asked = Vec::with_capacity(clients.len());
        for client in clients.iter_mut() {
            asked.push(Instant::now());
            client.ask(&self.request)?;
        }
        for (client, asked) in clients.iter_mut().zip(asked) {
            client.read_answer(self.body_bytes)?;
            on_answer(asked.elapsed());
        }
        Ok(())
    }
}

/// One connection of the client.
struct Client {
    socket: TcpStream,
    tls: ClientConnection,
}

impl Client {
    fn connect(address: &str, tls: &Arc<ClientConfig>) -> Outcome<Self> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        let name = ServerName::try_from("localhost")?;
        Ok(Self { socket, tls: ClientConnection::new(Arc::clone(tls), name)? })
    }

    fn fetch(&mut self, request: &[u8], body_bytes: usize) -> Outcome<()> {
        self.ask(request)?;
        self.read_answer(body_bytes)
    }

    fn ask(&mut self, request: &[u8]) -> Outcome<()> {
        while self.tls.is_handshaking() {
            self.send()?;
            if self.tls.read_tls(&mut self.socket)? == 0 {
                return Err("the connection ended within the handshake".into());
            }
            self.tls.process_new_packets()?;
        }
        self.tls.writer().write_all(request)?;
        self.send()
    }

    fn send(&mut self) -> Outcome<()> {
        while self.tls.wants_write() {
            self.tls.write_tls(&mut self.socket)?;
        }
        Ok(())
    }

    /// Reads a response whose body must have this length.
    fn read_answer(&mut self, body_bytes: usize) -> Outcome<()> {
        let mut buffer = [0_u8; READ_BYTES];
        let mut head = Vec::new();
        let mut remaining = None;
        while remaining != Some(0) {
            let bytes = match self.tls.reader().read(&mut buffer) {
                Ok(0) => return Err("the server closed within a response".into()),
                Ok(bytes) => bytes,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    if self.tls.read_tls(&mut self.socket)? == 0 {
                        return Err("the connection ended within a response".into());
                    }
                    self.tls.process_new_packets()?;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            if let Some(left) = remaining {
                remaining = Some(usize::checked_sub(left, bytes).ok_or("more body than asked")?);
                continue;
            }
            head.extend_from_slice(buffer.get(..bytes).unwrap_or_default());
            if let Some(end) = head.windows(4).position(|window| window == b"\r\n\r\n") {
                check_head(&head, body_bytes)?;
                let of_body = head.len() - (end + 4);
                remaining = Some(body_bytes.checked_sub(of_body).ok_or("more body than asked")?);
            }
        }
        Ok(())
    }

    fn say_goodbye(&mut self) -> Outcome<()> {
        self.tls.send_close_notify();
        self.send()?;
        Ok(self.socket.shutdown(Shutdown::Write)?)
    }

    /// Reads to the server's end, so that its work for the close is part of the transaction.
    fn await_end(&mut self) -> Outcome<()> {
        let mut rest = [0_u8; 1024];
        while self.socket.read(&mut rest)? > 0 {}
        Ok(())
    }
}

fn check_head(head: &[u8], body_bytes: usize) -> Outcome<()> {
    let text = String::from_utf8_lossy(head).to_ascii_lowercase();
    let length = format!("\r\ncontent-length: {body_bytes}\r\n");
    if text.starts_with("http/1.1 200 ") && text.contains(&length) {
        return Ok(());
    }
    Err(format!("not the response asked for: {}", text.lines().next().unwrap_or_default()).into())
}

/// The server's process clock and the client's clock over a stretch of work.
#[derive(Default)]
struct Meter {
    server: u64,
    started: Option<Instant>,
}

impl Meter {
    fn start(processes: &[u32]) -> Outcome<Self> {
        Ok(Self { server: processor_nanoseconds(processes)?, started: Some(Instant::now()) })
    }

    fn finish(self, processes: &[u32], operations: usize) -> Outcome<String> {
        let elapsed = self.started.ok_or("too few operations")?.elapsed().as_nanos();
        settle(processes)?;
        let server = processor_nanoseconds(processes)? - self.server;
        Ok(format!(
            "{{\"server_ns\":{:.1},\"wall_ns\":{:.1},\"server_busy\":{:.3}}}",
            server as f64 / operations as f64,
            elapsed as f64 / operations as f64,
            server as f64 / elapsed as f64,
        ))
    }
}

/// Time on a processor of all threads that are there now. No thread may end while this measures.
fn processor_nanoseconds(processes: &[u32]) -> Outcome<u64> {
    let mut sum = 0;
    for process in processes {
        for task in std::fs::read_dir(format!("/proc/{process}/task"))? {
            let text = std::fs::read_to_string(task?.path().join("schedstat"))?;
            sum += text.split(' ').next().unwrap_or_default().parse::<u64>()?;
        }
    }
    Ok(sum)
}

/// Waits until the servers have done what was still to do: their clocks stand still.
#[allow(clippy::disallowed_methods, reason = "another process' clock gives no event to wait for")]
fn settle(processes: &[u32]) -> Outcome<()> {
    let deadline = Instant::now() + SETTLE_MAX;
    let mut last = processor_nanoseconds(processes)?;
    while Instant::now() < deadline {
        std::thread::sleep(SETTLE_STEP);
        let now = processor_nanoseconds(processes)?;
        if now == last {
            break;
        }
        last = now;
    }
    Ok(())
}

fn proportional_bytes(processes: &[u32]) -> Outcome<u64> {
    let mut sum = 0;
    for process in processes {
        let text = std::fs::read_to_string(format!("/proc/{process}/smaps_rollup"))?;
        let line = text.lines().find(|line| line.starts_with("Pss:")).ok_or("no Pss line")?;
        let kibibytes = line.split_whitespace().nth(1).unwrap_or_default().parse::<u64>()?;
        sum += kibibytes * 1024;
    }
    Ok(sum)
}

fn client_config(version: &str) -> Outcome<ClientConfig> {
    let (version, suite) = match version {
        "1.3" => (&rustls::version::TLS13, aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256),
        "1.2" => (
            &rustls::version::TLS12,
            aws_lc_rs::cipher_suite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        ),
        other => return Err(format!("no TLS version `{other}`").into()),
    };
    let mut provider = aws_lc_rs::default_provider();
    provider.cipher_suites = vec![suite];
    // X25519 is what both servers take. OpenSSL asks for the certificate's curve among a TLS 1.2 client's groups too.
    provider.kx_groups = vec![aws_lc_rs::kx_group::X25519, aws_lc_rs::kx_group::SECP256R1];
    Ok(ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[version])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(TrustsAnyone))
        .with_no_client_auth())
}

/// The certificate is the measurement's own, and verifying it would cost the client more than all the rest.
#[derive(Debug)]
struct TrustsAnyone;

impl ServerCertVerifier for TrustsAnyone {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ECDSA_NISTP256_SHA256]
    }
}

const WARM_UP_PART: usize = 10;
const SESSIONS_KEPT: usize = 8;
const READ_BYTES: usize = 64 * 1024;
const SETTLE_STEP: Duration = Duration::from_millis(20);
const SETTLE_MAX: Duration = Duration::from_secs(2);

//! Health checks: asking servers from time to time whether they are well.
//!
//! They run in one place of the process, whatever the number of workers, and take no slot of a client's.

use std::io;
use std::net::Ipv6Addr;
use std::time::Duration;

use kettle_config::{BackendProtocol, Check, CheckKind, SendProxy, ServerAddress};
use kettle_http::{cgi, fcgi, uwsgi};
use kettle_preamble::proxy;
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader,
    copy, sink,
};
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};

use super::failure::{Failure, Outcome};
use super::socket::{self, Socket};
use super::{Backend, Server, Watched, balance};

/// A stream in the protocol of a server: its connection, or TLS over it.
pub trait ServerStream: AsyncRead + AsyncWrite + Unpin {}

impl<S: AsyncRead + AsyncWrite + Unpin> ServerStream for S {}

/// An implementation of TLS over a connection to a server, as `[backend.tls]` says, the dialogue before it included.
pub trait Handshake {
    /// Speaks it.
    fn handshake(
        &self,
        backend: &Backend,
        server: &Server,
        socket: Socket,
    ) -> impl Future<Output = Result<Box<dyn ServerStream>, Failure>>;
}

/// Asks one server for ever, each time as it is watched then. If a reload begins it anew, that does not change when the
/// next check is due.
pub(super) async fn keep_checking<H: Handshake>(watched: impl Fn() -> Watched<H>, check: Check) {
    let begun = Instant::now();
    for round in 0_u64.. {
        let Watched { server, .. } = watched();
        let due = match server.state.last_check() {
            Some(last) => last + spread(check.interval, server.key ^ round),
            None => begun + check.interval.min(FIRST_WITHIN).mul_f64(fraction(server.key)),
        };
        drop(server);
        sleep_until(due).await;
        // Whatever the interval, a server is asked soon after its name is found.
        while !watched().server.has_address() {
            sleep(check.interval.min(FIRST_WITHIN)).await;
        }
        let Watched { backend, server, handshake } = watched();
        let now = Instant::now();
        server.state.check_begins(now);
        let asked = ask(&backend, &server, &check, &*handshake, now + check.timeout);
        let outcome = timeout_at(now + check.timeout, asked).await;
        let outcome = outcome.unwrap_or_else(|_| Err(Failure::timed_out()));
        take_note(&backend, &server, &check, outcome.as_ref().map(drop));
        if let Ok(stream) = outcome {
            let _ = timeout(LEAVE_MAX.min(check.interval / 4), leave(stream)).await;
        }
    }
}

fn take_note(backend: &Backend, server: &Server, check: &Check, outcome: Result<(), &Failure>) {
    match outcome {
        Ok(()) if server.state.check_passed(check.rise) => {
            tracing::info!(backend = %backend.name, server = %server.name, "a server is back: checks pass");
            backend.shared.queue.call_front();
        }
        Ok(()) => {}
        // Our own want says nothing of the server.
        Err(failure) if matches!(failure.outcome, Outcome::NoResources | Outcome::Abandoned) => {
            tracing::warn!(backend = %backend.name, server = %server.name, %failure, "a server cannot be checked");
        }
        Err(failure) => {
            if server.state.check_failed(failure, check.fall) {
                tracing::warn!(backend = %backend.name, server = %server.name, %failure, "a server is out: checks fail");
                // Those that wait for it may have another now.
                backend.shared.queue.call_front();
            }
        }
    }
}

async fn ask(
    backend: &Backend,
    server: &Server,
    check: &Check,
    handshake: &impl Handshake,
    deadline: Instant,
) -> Result<Box<dyn ServerStream>, Failure> {
    let make = async |socket| begin(backend, server, check, handshake, socket).await;
    let mut stream = socket::connect(server, deadline, make).await?;
    if check.kind == CheckKind::Http {
        let host = host(check, server);
        match backend.settings.protocol {
            BackendProtocol::Http1 => get(&mut *stream, &check.path, &host).await?,
            protocol => run(&mut *stream, protocol, &check.path, &host).await?,
        }
    }
    Ok(stream)
}

/// Without it, TLS would be cut, and to close with bytes unread, tickets most often, would be a reset: servers note both. The
/// outcome of that says nothing of the server.
async fn leave(mut stream: Box<dyn ServerStream>) -> io::Result<u64> {
    stream.shutdown().await?;
    copy(&mut stream.take(ANSWER_BYTES_MAX), &mut sink()).await
}

/// Does what a client's connection begins with, too: of a name's addresses the next is tried where it fails.
async fn begin(
    backend: &Backend,
    server: &Server,
    check: &Check,
    handshake: &impl Handshake,
    mut socket: Socket,
) -> Result<Box<dyn ServerStream>, Failure> {
    // Its own words for a check: nobody is spoken for.
    match backend.settings.send_proxy {
        SendProxy::Off => {}
        SendProxy::V1 => socket.write_all(b"PROXY UNKNOWN\r\n").await?,
        SendProxy::V2 | SendProxy::AsReceived => {
            let mut header = Vec::new();
            proxy::write_v2(proxy::Speaker::Ourselves, &[], &mut header);
            socket.write_all(&header).await?;
        }
        // From 127.0.0.1, over IPv4.
        SendProxy::Ip => socket.write_all(&[2, 127, 0, 0, 1]).await?,
    }
    let over_tls = match check.kind {
        CheckKind::Tcp => false,
        CheckKind::Tls => true,
        CheckKind::Http => backend.settings.tls.is_some(),
    };
    match over_tls {
        true => handshake.handshake(backend, server, socket).await,
        false => Ok(Box::new(socket)),
    }
}

/// Asks for a path, and is content with a status from 200 to 399. Nothing behind the status is read; interim responses before it
/// say nothing yet (RFC 9110 §15.2).
async fn get(stream: &mut dyn ServerStream, path: &str, host: &str) -> Result<(), Failure> {
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: kettle\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    stream.flush().await?;
    let mut answer = BufReader::new(stream.take(ANSWER_BYTES_MAX));
    loop {
        let mut start = [0; STATUS_LINE_BYTES_MIN];
        answer.read_exact(&mut start).await.map_err(unanswered)?;
        match status(&start) {
            Some(200..=399) => return Ok(()),
            Some(100 | 102..=199) => pass_over_head(&mut answer).await?,
            Some(status) => return Err(bad_answer(format!("it answered with status {status}"))),
            None => return Err(bad_answer("what it answered is no HTTP/1 status line")),
        }
    }
}

/// Asks an application to run a path, as PHP-FPM has one for its own answer (`ping.path`), and is content with the same status.
async fn run(
    stream: &mut dyn ServerStream,
    protocol: BackendProtocol,
    path: &str,
    host: &str,
) -> Result<(), Failure> {
    let request = program_request(protocol, path, host);
    let request = request.ok_or_else(|| bad_answer("its path is too long for a program"))?;
    stream.write_all(&request).await?;
    stream.flush().await?;
    let mut records = fcgi::RecordDecoder::default();
    let mut output = Vec::new();
    let mut answer = stream.take(ANSWER_BYTES_MAX);
    let mut room = vec![0; 4 * 1_024];
    let is_plain = protocol != BackendProtocol::FastCgi;
    loop {
        let bytes = answer.read(&mut room).await?;
        if bytes == 0 {
            return Err(unanswered(io::ErrorKind::UnexpectedEof.into()));
        }
        let mut input = room.get(..bytes).unwrap_or_default();
        if is_plain {
            output.extend_from_slice(input);
            input = &[];
        }
        let mut is_over = false;
        while let Some(piece) = records.next(&mut input).map_err(|it| bad_answer(it.to_string()))? {
            match piece {
                fcgi::RecordPiece::Output(data) => output.extend_from_slice(data),
                fcgi::RecordPiece::Errors(_) => {}
                fcgi::RecordPiece::End(_) => is_over = true,
            }
        }
        let head = cgi::parse_head(&output, is_plain);
        match head.map_err(|error| bad_answer(error.to_string()))?.map(|it| it.head.status()) {
            Some(200..=399) => return Ok(()),
            Some(status) => return Err(bad_answer(format!("it answered with status {status}"))),
            None if is_over => return Err(bad_answer("it ended without a status")),
            None => {}
        }
    }
}

/// The request for a program; `None` if the path is longer than it could be told.
fn program_request(protocol: BackendProtocol, path: &str, host: &str) -> Option<Vec<u8>> {
    let (name, query) = path.split_once('?').unwrap_or((path, ""));
    let (script, rest) = match protocol {
        BackendProtocol::Uwsgi | BackendProtocol::Scgi => ("", name),
        _ => (name, ""),
    };
    let pair = match protocol {
        BackendProtocol::Uwsgi => uwsgi::pair,
        BackendProtocol::Scgi => uwsgi::scgi_pair,
        BackendProtocol::FastCgi | BackendProtocol::Http1 => fcgi::pair,
    };
    let mut params = Vec::new();
    for (param, value) in [
        // SCGI begins so.
        ("CONTENT_LENGTH", "0"),
        ("SCGI", "1"),
        ("GATEWAY_INTERFACE", "CGI/1.1"),
        ("REQUEST_METHOD", "GET"),
        ("REQUEST_URI", path),
        ("QUERY_STRING", query),
        ("SCRIPT_NAME", script),
        ("SCRIPT_FILENAME", script),
        ("PATH_INFO", rest),
        ("SERVER_PROTOCOL", "HTTP/1.1"),
        ("HTTP_HOST", host),
        ("HTTP_USER_AGENT", "kettle"),
    ] {
        if !pair(&mut params, param.as_bytes(), value.as_bytes()) {
            return None;
        }
    }
    Some(match protocol {
        BackendProtocol::Uwsgi => uwsgi::block(&params),
        BackendProtocol::Scgi => uwsgi::scgi_block(&params),
        BackendProtocol::FastCgi | BackendProtocol::Http1 => fcgi::request(&params),
    })
}

/// Reads to the end of a head whose status has been read.
async fn pass_over_head(answer: &mut (impl AsyncBufRead + Unpin)) -> Result<(), Failure> {
    // The rest of the status line may be as empty as the line behind the head.
    let mut is_status_line = true;
    loop {
        let mut line = Vec::new();
        if answer.read_until(b'\n', &mut line).await? == 0 {
            return Err(unanswered(io::ErrorKind::UnexpectedEof.into()));
        }
        if !is_status_line && matches!(line.as_slice(), b"\r\n" | b"\n") {
            return Ok(());
        }
        is_status_line = false;
    }
}

fn unanswered(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => bad_answer("it closed without a status"),
        _ => error.into(),
    }
}

fn status(start: &[u8; STATUS_LINE_BYTES_MIN]) -> Option<u16> {
    match start {
        [
            b'H',
            b'T',
            b'T',
            b'P',
            b'/',
            b'1',
            b'.',
            b'0' | b'1',
            b' ',
            digits @ ..,
            b' ' | b'\r',
        ] => {
            let is_number = digits.iter().all(u8::is_ascii_digit);
            let text = std::str::from_utf8(digits).ok().filter(|_| is_number)?;
            text.parse().ok()
        }
        _ => None,
    }
}

fn bad_answer(detail: impl Into<String>) -> Failure {
    Failure::new(Outcome::BadAnswer, detail)
}

fn host(check: &Check, server: &Server) -> String {
    match (&check.host, &server.address) {
        // RFC 3986 §3.2.2.
        (Some(host), _) => match host.parse::<Ipv6Addr>() {
            Ok(address) => format!("[{address}]"),
            Err(_) => host.clone(),
        },
        (None, ServerAddress::Unix(_)) => "localhost".to_owned(),
        (None, address) => address.to_string(),
    }
}

/// A tenth more or less, so that checks of many servers, and of many front ends, do not fall into step.
fn spread(interval: Duration, seed: u64) -> Duration {
    interval.mul_f64(0.9 + 0.2 * fraction(seed))
}

/// A number from 0 to 1 that has no pattern.
fn fraction(seed: u64) -> f64 {
    balance::mix(seed) as f64 / u64::MAX as f64
}

/// The first checks of all servers are spread over this time.
const FIRST_WITHIN: Duration = Duration::from_secs(1);

/// The time a server may take to end, too; at most a quarter of the time between two checks.
const LEAVE_MAX: Duration = Duration::from_secs(1);

/// The most that is read of an answer: interim heads and the status behind them. And of what comes when nothing is wanted any more.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;

/// `HTTP/1.1 200` and what must follow it.
const STATUS_LINE_BYTES_MIN: usize = 13;

#[cfg(test)]
mod tests;

//! The plain HTTP server behind terminators, the same for all: one response of each size, from memory; and each message of a WebSocket.
//! It runs in a thread of this process on a processor of the client's, so that its work never counts as the server's.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use kettle_kernel::{process, socket};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tokio::task::{self, LocalSet};
use tokio::time;

#[derive(Debug)]
pub struct Backend {
    pub address: SocketAddr,
    hashes: BTreeMap<u64, [u8; 32]>,
    requests: Arc<AtomicU64>,
    // Dropped first, which is what ends the thread.
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Backend {
    /// Starts one on a processor that answers `/N` with the same random body of N bytes each time, for each of these sizes,
    /// `/paced/N` with the same over [`PACED_TIME`], and every other path with the smallest. A query changes nothing.
    ///
    /// # Errors
    /// The error of the system: random bytes, a port or a thread cannot be had.
    pub fn start(cpu: usize, sizes: &[u64]) -> io::Result<Self> {
        let mut random = File::open("/dev/urandom")?;
        let mut hashes = BTreeMap::new();
        let mut responses = BTreeMap::new();
        for bytes in sizes {
            let mut body = vec![0; usize::try_from(*bytes).map_err(io::Error::other)?];
            random.read_exact(&mut body)?;
            hashes.insert(*bytes, Sha256::digest(&body).into());
            responses.insert(*bytes, response(&body));
        }
        let listener = socket::listen((Ipv4Addr::LOCALHOST, 0).into(), BACKLOG)?;
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel();
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let requests = Arc::<AtomicU64>::default();
        let responses = Responses { ready: responses, asked: Arc::clone(&requests) };
        let serve = move || {
            // Without a processor of its own it still serves, only less evenly.
            _ = process::pin_to_cpu(cpu);
            LocalSet::new().block_on(&runtime, async {
                tokio::select! {
                    _ = stopped => {}
                    () = accept_all(listener, Rc::new(responses)) => {}
                }
            });
        };
        let thread = thread::Builder::new().name("backend".to_owned()).spawn(serve)?;
        Ok(Self { address, hashes, requests, stop: Some(stop), thread: Some(thread) })
    }

    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    pub fn sha256(&self, bytes: u64) -> Option<[u8; 32]> {
        self.hashes.get(&bytes).copied()
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            _ = thread.join();
        }
    }
}

/// Responses by the size of their body, ready to be sent, and how often one was asked for.
struct Responses {
    ready: BTreeMap<u64, Vec<u8>>,
    asked: Arc<AtomicU64>,
}

fn response(body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nCache-Control: max-age=86400\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// The response to a request with this head, and whether it takes its time.
fn asked_for<'r>(head: &[u8], responses: &'r BTreeMap<u64, Vec<u8>>) -> (&'r [u8], bool) {
    let target = head.split(|byte| *byte == b' ').nth(1).and_then(|path| path.strip_prefix(b"/"));
    let target = target.unwrap_or_default();
    let path = target.split(|byte| *byte == b'?').next().unwrap_or_default();
    let paced = path.strip_prefix(b"paced/");
    let size = std::str::from_utf8(paced.unwrap_or(path)).ok().and_then(|it| it.parse().ok());
    let response = size.and_then(|size: u64| responses.get(&size));
    let response = response.or_else(|| responses.values().next()).map_or(&[][..], Vec::as_slice);
    (response, paced.is_some())
}

/// Sends a response, in pieces over a while if it is paced.
async fn send(stream: &mut TcpStream, response: &[u8], is_paced: bool) -> io::Result<()> {
    let piece_bytes = if is_paced { response.len().div_ceil(PIECES) } else { response.len() };
    for piece in response.chunks(piece_bytes.max(1)) {
        time::timeout(SILENCE_MAX, stream.write_all(piece)).await??;
        if is_paced {
            time::sleep(PACED_TIME / PIECES as u32).await;
        }
    }
    Ok(())
}

async fn accept_all(listener: std::net::TcpListener, responses: Rc<Responses>) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let responses = Rc::clone(&responses);
                // Its peer is a terminator under test; whatever ends a connection shows in what the client sees.
                task::spawn_local(async move { _ = serve(stream, &responses).await });
            }
            // Out of descriptors: those that close in the meantime make room.
            Err(_) => time::sleep(ACCEPT_PAUSE).await,
        }
    }
}

/// Answers requests one after the other until the peer closes, asks for the end, or falls silent.
async fn serve(mut stream: TcpStream, responses: &Responses) -> io::Result<()> {
    let mut buffer = vec![0; HEAD_BYTES_MAX];
    let mut filled = 0;
    loop {
        let head = loop {
            let received = buffer.get(..filled).unwrap_or_default();
            if let Some(end) = head_end(received) {
                break end;
            }
            let room = buffer.get_mut(filled..).unwrap_or_default();
            let bytes = time::timeout(SILENCE_MAX, stream.read(room)).await??;
            // Also where a head is longer than the room for it.
            if bytes == 0 {
                return Ok(());
            }
            filled += bytes;
        };
        let request = buffer.get(..head).unwrap_or_default();
        responses.asked.fetch_add(1, Ordering::Relaxed);
        let fields = String::from_utf8_lossy(request).to_ascii_lowercase();
        if has_option(&fields, "upgrade:", "websocket") {
            stream.write_all(CHANGED).await?;
            buffer.copy_within(head..filled, 0);
            return return_messages(stream, buffer, filled - head).await;
        }
        let (closes, (response, is_paced)) =
            (asks_to_close(&fields), asked_for(request, &responses.ready));
        send(&mut stream, response, is_paced).await?;
        if closes {
            return stream.shutdown().await;
        }
        buffer.copy_within(head..filled, 0);
        filled -= head;
    }
}

/// Sends each message back as it came, until the peer closes or falls silent. Messages are short (RFC 6455 §5.2).
async fn return_messages(
    mut stream: TcpStream,
    mut buffer: Vec<u8>,
    mut filled: usize,
) -> io::Result<()> {
    loop {
        let bytes = usize::from(buffer.get(1).copied().unwrap_or_default() & 0x7f);
        let end = FRAME_HEAD_BYTES + bytes;
        if filled < FRAME_HEAD_BYTES || filled < end {
            let room = buffer.get_mut(filled..).unwrap_or_default();
            match time::timeout(SILENCE_MAX, stream.read(room)).await?? {
                0 => return Ok(()),
                more => filled += more,
            }
            continue;
        }
        let (head, rest) = buffer.split_at_mut(FRAME_HEAD_BYTES);
        let [kind, _, mask @ ..] = head else { return Ok(()) };
        let masked = rest.iter_mut().take(bytes).zip(mask.iter().cycle());
        masked.for_each(|(byte, mask)| *byte ^= *mask);
        // Its head has no mask, so it is shorter.
        let returned = [*kind, u8::try_from(bytes).unwrap_or_default()];
        let at = FRAME_HEAD_BYTES - returned.len();
        let text = FRAME_HEAD_BYTES..end;
        buffer.get_mut(at..text.start).unwrap_or_default().copy_from_slice(&returned);
        let frame = buffer.get(at..text.end).unwrap_or_default();
        time::timeout(SILENCE_MAX, stream.write_all(frame)).await??;
        buffer.copy_within(end..filled, 0);
        filled -= end;
    }
}

/// Returns where the first request head ends, behind its empty line.
fn head_end(received: &[u8]) -> Option<usize> {
    let end = received.windows(END.len()).position(|window| window == END)?;
    Some(end + END.len())
}

/// True if the connection ends after this request: `Connection: close`, or HTTP/1.0, which terminators speak by default.
fn asks_to_close(head: &str) -> bool {
    let is_old = head.lines().next().is_some_and(|line| line.ends_with("http/1.0"));
    is_old || has_option(head, "connection:", "close")
}

/// True if a field names an option; all are in small letters.
fn has_option(head: &str, field: &str, option: &str) -> bool {
    head.lines().any(|line| line.strip_prefix(field).is_some_and(|it| it.contains(option)))
}

/// The time a paced response takes, and in how many pieces.
pub const PACED_TIME: Duration = Duration::from_secs(2);
const PIECES: usize = 40;

/// The answer to the key that our client sends (RFC 6455 §1.3).
const CHANGED: &[u8] =
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                         Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n";
/// Of a short message that is masked, as all of a client's are.
const FRAME_HEAD_BYTES: usize = 6;
const END: &[u8] = b"\r\n\r\n";
const BACKLOG: u32 = 65_535;
const HEAD_BYTES_MAX: usize = 4096;
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);
/// Longer than any connection of a scenario is idle.
const SILENCE_MAX: Duration = Duration::from_secs(3600);

#[cfg(test)]
mod tests;

//! Both directions of one connection at once, full: neither waits for the other, and nothing piles up between them.
//!
//! One of the two peers reads only after all of its own is written. The other does both at once: with two that write
//! first, whatever stands between them would have to keep it all.

mod peers;

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::process::Command;
use std::task::{Context, Poll, ready};

use kettle_tls::stream::{Filled, Stream, StreamError};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use self::peers::{Order, Plain, Tls, both_ways};
use crate::harness::{SUITES, has_ktls};

/// The relay between the two: one task, and a buffer of bounded size for each direction.
struct Relay {
    stream: Box<Stream>,
    backend: TcpStream,
    to_backend: Vec<u8>,
    from_backend: Vec<u8>,
    inward: Direction,
    outward: Direction,
    memory: Memory,
}

/// The progress of one direction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Open,
    /// The source has ended, and the other side is being told.
    Ending,
    Over,
}

impl Relay {
    fn new(stream: Box<Stream>, backend: TcpStream) -> Self {
        Self {
            stream,
            backend,
            to_backend: Vec::with_capacity(TO_BACKEND_BYTES_MAX),
            from_backend: Vec::with_capacity(PIECE_BYTES),
            inward: Direction::Open,
            outward: Direction::Open,
            memory: Memory::default(),
        }
    }

    async fn run(mut self) -> Memory {
        poll_fn(|context| self.poll_both(context)).await.unwrap();
        self.memory
    }

    fn poll_both(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamError>> {
        if let Poll::Ready(Err(error)) = self.poll_inward(context) {
            return Poll::Ready(Err(error));
        }
        if let Poll::Ready(Err(error)) = self.poll_outward(context) {
            return Poll::Ready(Err(error));
        }
        match (self.inward, self.outward) {
            (Direction::Over, Direction::Over) => Poll::Ready(Ok(())),
            _ => Poll::Pending,
        }
    }

    fn poll_inward(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamError>> {
        while self.inward != Direction::Over {
            let mut backend = std::pin::pin!(&mut self.backend);
            while !self.to_backend.is_empty() {
                let written = ready!(backend.as_mut().poll_write(context, &self.to_backend))?;
                self.to_backend.drain(..written);
            }
            if self.inward == Direction::Ending {
                ready!(backend.poll_shutdown(context))?;
                self.inward = Direction::Over;
                break;
            }
            let to_backend = &mut self.to_backend;
            let fill = ready!(self.stream.poll_visit(context, |plaintext| {
                to_backend.extend_from_slice(plaintext);
            }))?;
            self.memory.passed(&self.stream, self.to_backend.len());
            match fill {
                Filled::Data => {}
                Filled::Closed => self.inward = Direction::Ending,
                Filled::Truncated => return Poll::Ready(Err(cut())),
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_outward(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamError>> {
        while self.outward != Direction::Over {
            ready!(self.poll_send(context))?;
            if self.outward == Direction::Ending {
                ready!(self.stream.poll_close(context))?;
                self.outward = Direction::Over;
                break;
            }
            let mut room = [std::mem::MaybeUninit::uninit(); PIECE_BYTES];
            let mut buffer = ReadBuf::uninit(&mut room);
            ready!(std::pin::pin!(&mut self.backend).poll_read(context, &mut buffer))?;
            self.from_backend.extend_from_slice(buffer.filled());
            if self.from_backend.is_empty() {
                self.stream.queue_close_notify();
                self.outward = Direction::Ending;
            } else if !self.stream.is_offloaded() {
                self.stream.seal(&[&self.from_backend])?;
                self.from_backend.clear();
            }
            self.memory.passed(&self.stream, self.from_backend.len());
        }
        Poll::Ready(Ok(()))
    }

    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<Result<(), StreamError>> {
        while !self.from_backend.is_empty() {
            let pieces = [IoSlice::new(&self.from_backend)];
            let sent = ready!(self.stream.poll_kernel_write(context, &pieces, false))?;
            self.from_backend.drain(..sent);
        }
        self.stream.poll_flush(context)
    }
}

fn cut() -> StreamError {
    StreamError::Io(io::ErrorKind::UnexpectedEof.into())
}

/// The memory that the relay held, and the process around it.
#[derive(Default)]
struct Memory {
    passed_bytes: u64,
    queued_bytes_max: usize,
    buffered_bytes_max: usize,
    resident_bytes: u64,
}

impl Memory {
    fn passed(&mut self, stream: &Stream, buffered_bytes: usize) {
        self.passed_bytes += buffered_bytes as u64;
        self.queued_bytes_max = self.queued_bytes_max.max(stream.queued_bytes());
        self.buffered_bytes_max = self.buffered_bytes_max.max(buffered_bytes);
        if self.resident_bytes == 0 && self.passed_bytes > WARM_BYTES {
            self.resident_bytes = resident_bytes();
        }
    }

    fn check(&self) {
        assert!(self.queued_bytes_max <= QUEUED_BYTES_MAX, "{}", self.queued_bytes_max);
        assert!(self.buffered_bytes_max <= TO_BACKEND_BYTES_MAX, "{}", self.buffered_bytes_max);
        let grown_bytes = resident_bytes().saturating_sub(self.resident_bytes);
        assert!(grown_bytes < GROWTH_BYTES_MAX, "the process grew by {grown_bytes} bytes");
    }
}

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    let kib: u64 = line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1_024
}

/// Both orders in turn: they share the process whose memory is looked at.
async fn both_ways_over(offload: Option<bool>) {
    let bytes = mebibytes() << 20;
    for (client_order, backend_order) in
        [(Order::WritesFirst, Order::Both), (Order::Both, Order::WritesFirst)]
    {
        let (client, mut stream) = Tls::connect(SUITES[0].2).await;
        let (backend, socket) = Plain::connect();
        if let Some(can_rekey) = offload {
            poll_fn(|context| stream.poll_offload(context, can_rekey)).await.unwrap();
        }
        let client = std::thread::spawn(move || both_ways(&client, client_order, bytes));
        let backend = std::thread::spawn(move || both_ways(&backend, backend_order, bytes));
        let memory = Relay::new(stream, socket).run().await;
        client.join().unwrap();
        backend.join().unwrap();
        memory.check();
    }
}

#[tokio::test]
async fn both_directions_flow_at_once_in_user_space() {
    if is_alone("duplex::both_directions_flow_at_once_in_user_space") {
        both_ways_over(None).await;
    }
}

#[tokio::test]
async fn both_directions_flow_at_once_through_the_kernel() {
    let Some(capabilities) = has_ktls() else {
        return;
    };
    if is_alone("duplex::both_directions_flow_at_once_through_the_kernel") {
        both_ways_over(Some(capabilities.carries_rekey())).await;
    }
}

/// True if this process has no other test in it, whose memory would be counted too. If not, runs `test` in one that has not.
fn is_alone(test: &str) -> bool {
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let program = std::env::current_exe().unwrap();
    let outcome = Command::new(program).args([test, "--exact"]).env(ALONE, "1").output();
    let outcome = outcome.unwrap();
    let said = String::from_utf8_lossy(&outcome.stdout);
    assert!(outcome.status.success() && said.contains("1 passed"), "{said}");
    false
}

const ALONE: &str = "KETTLE_DUPLEX_ALONE";

/// Returns how much goes each way: `KETTLE_DUPLEX_MIB`, or what suits the suite.
fn mebibytes() -> u64 {
    let is_guest = std::env::var_os("KETTLE_GUEST_KERNEL").is_some();
    let suitable = if is_guest { GUEST_DUPLEX_MIB } else { DUPLEX_MIB };
    let chosen = std::env::var("KETTLE_DUPLEX_MIB").ok();
    chosen.map_or(suitable, |text| text.parse().unwrap())
}

const DUPLEX_MIB: u64 = 256;

/// More than all the buffers on the way hold.
const GUEST_DUPLEX_MIB: u64 = 16;

/// One read from the backend.
const PIECE_BYTES: usize = 32 * 1_024;

/// The bytes that one visit shows at most: the shared buffer of the streams, and a record that lay before it.
const TO_BACKEND_BYTES_MAX: usize = 56 * 1_024;

/// A read of the backend, sealed, with the answers to what the client said.
const QUEUED_BYTES_MAX: usize = PIECE_BYTES + 1_024;

/// After this much every buffer has been used.
const WARM_BYTES: u64 = 4 << 20;

const GROWTH_BYTES_MAX: u64 = 1 << 20;

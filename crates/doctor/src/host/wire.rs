//! A place between our TLS client and the server, on loopback: it counts what goes by, keeps the front of the answer,
//! and sends the ClientHello in pieces.

use std::cell::RefCell;
use std::convert::Infallible;
use std::io;
use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

use super::record_counter::RecordCounter;

/// The way the ClientHello is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// At once.
    Whole,
    /// In two segments, the first of which has so many bytes.
    After(usize),
    /// In two segments of about the same length.
    Middle,
    /// In two segments, the second of which has one byte.
    BeforeLast,
    /// In two TLS records (RFC 8446 §5.1 allows it), at once.
    Records,
    /// Each byte in a segment of its own.
    Bytes,
}

/// The bytes that have gone by.
#[derive(Default)]
pub(super) struct Traffic {
    pub(super) sent: RecordCounter,
    pub(super) received: RecordCounter,
    /// The front of what was received.
    pub(super) answer: Vec<u8>,
    /// The ClientHello with its record's header.
    pub(super) hello_bytes: usize,
    pub(super) was_reset: bool,
}

/// Two ends of a connection within this machine.
pub(super) struct Between {
    pub(super) client: TcpStream,
    near: TcpStream,
}

impl Between {
    pub(super) async fn open() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let client = TcpStream::connect(listener.local_addr()?).await?;
        let (near, peer) = listener.accept().await?;
        if peer != client.local_addr()? {
            return Err(io::Error::other("somebody else connected to our own socket"));
        }
        near.set_nodelay(true)?;
        client.set_nodelay(true)?;
        Ok(Self { client, near })
    }
}

/// Carries bytes until the client's end is closed, and while `observation`, which has that end, goes on.
pub(super) async fn carry<T>(
    mut near: Between,
    mut far: TcpStream,
    cut: Cut,
    traffic: &RefCell<Traffic>,
    observation: impl AsyncFnOnce(TcpStream) -> T,
) -> T {
    let (mut near_read, mut near_write) = near.near.split();
    let (mut far_read, mut far_write) = far.split();
    let up = async {
        // The server's side of an error is told by what is received.
        let _ = carry_up(&mut near_read, &mut far_write, cut, traffic).await;
        let _ = far_write.shutdown().await;
    };
    let down = async {
        let carried = carry_down(&mut far_read, &mut near_write, traffic).await;
        let was_reset = carried.is_err_and(|error| error.kind() == io::ErrorKind::ConnectionReset);
        traffic.borrow_mut().was_reset |= was_reset;
        let _ = near_write.shutdown().await;
        std::future::pending::<Infallible>().await
    };
    let client = near.client;
    tokio::select! {
        (outcome, ()) = async { tokio::join!(observation(client), up) } => outcome,
        never = down => match never {},
    }
}

async fn carry_up(
    near: &mut (impl AsyncRead + Unpin),
    far: &mut (impl AsyncWrite + Unpin),
    cut: Cut,
    traffic: &RefCell<Traffic>,
) -> io::Result<()> {
    let hello = read_record(near).await?;
    {
        let mut traffic = traffic.borrow_mut();
        traffic.hello_bytes = hello.len();
        traffic.sent.take(&hello);
    }
    send_hello(&hello, far, cut).await?;
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let bytes = near.read(&mut buffer).await?;
        let Some(carried) = buffer.get(..bytes).filter(|carried| !carried.is_empty()) else {
            return Ok(());
        };
        traffic.borrow_mut().sent.take(carried);
        far.write_all(carried).await?;
    }
}

async fn carry_down(
    far: &mut (impl AsyncRead + Unpin),
    near: &mut (impl AsyncWrite + Unpin),
    traffic: &RefCell<Traffic>,
) -> io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        let bytes = far.read(&mut buffer).await?;
        let Some(carried) = buffer.get(..bytes).filter(|carried| !carried.is_empty()) else {
            return Ok(());
        };
        {
            let mut traffic = traffic.borrow_mut();
            traffic.received.take(carried);
            let room = ANSWER_BYTES_MAX.saturating_sub(traffic.answer.len());
            traffic.answer.extend(carried.iter().take(room));
        }
        near.write_all(carried).await?;
    }
}

/// The client's first record.
async fn read_record(near: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut record = vec![0; HEADER_BYTES];
    near.read_exact(&mut record).await?;
    let bytes = match record.as_slice() {
        [.., high, low] => u64::from(u16::from_be_bytes([*high, *low])),
        _ => 0,
    };
    near.take(bytes).read_to_end(&mut record).await?;
    Ok(record)
}

async fn send_hello(hello: &[u8], far: &mut (impl AsyncWrite + Unpin), cut: Cut) -> io::Result<()> {
    let first_bytes = match cut {
        Cut::Whole => return far.write_all(hello).await,
        Cut::Records => return far.write_all(&in_two_records(hello)).await,
        Cut::Bytes => {
            for byte in hello {
                far.write_all(&[*byte]).await?;
                sleep(BYTE_GAP).await;
            }
            return Ok(());
        }
        Cut::After(bytes) => bytes,
        Cut::Middle => hello.len() / 2,
        Cut::BeforeLast => hello.len().saturating_sub(1),
    };
    let (first, second) = hello.split_at(first_bytes.min(hello.len()));
    far.write_all(first).await?;
    sleep(SEGMENT_GAP).await;
    far.write_all(second).await
}

/// The same message in two records; the transcript of the handshake does not know records.
fn in_two_records(record: &[u8]) -> Vec<u8> {
    let Some(([content_type, major, minor, _, _], message)) = record.split_first_chunk() else {
        return record.to_vec();
    };
    let (first, second) = message.split_at(message.len() / 2);
    let mut records = Vec::new();
    for part in [first, second] {
        // Each is shorter than the record that it comes from.
        let [high, low] = u16::try_from(part.len()).unwrap_or(u16::MAX).to_be_bytes();
        records.extend_from_slice(&[*content_type, *major, *minor, high, low]);
        records.extend_from_slice(part);
    }
    records
}

const HEADER_BYTES: usize = 5;
const BUFFER_BYTES: usize = 16_384;
/// More than any ServerHello with its certificates.
const ANSWER_BYTES_MAX: usize = 65_536;
/// Long enough for a server to read the first segment alone.
const SEGMENT_GAP: Duration = Duration::from_millis(40);
/// A hello of 250 bytes takes half a second.
const BYTE_GAP: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests;

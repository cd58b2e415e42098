//! Encoders for bodies that are compressed on their way, piece by piece, and the memory that all of them together may take.

mod at_once;

use std::fmt;
use std::io::{self, Write as _};
use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use brotli::CompressorWriter;
use brotli::enc::BrotliEncoderParams;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use kettle_config::Coding;
use kettle_kernel::bug;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use zstd::stream::write::Encoder as ZstdEncoder;

pub use at_once::compress;

/// The memory that encoders may take, which all workers share: permits for those of small files, each of which holds up to
/// [`ENCODER_BYTES_MAX`] while it is at work, and memory for those of bodies on their way, which last as long as their clients
/// take.
#[derive(Clone, Debug)]
pub struct EncoderPermits {
    files: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    /// The permit for the forms of stored objects.
    forms: Arc<Semaphore>,
}

impl EncoderPermits {
    /// Permits for so many encoders of files in the whole process, and so much memory for those of bodies on their way.
    #[must_use]
    pub fn new(permits: usize, stream_bytes: usize) -> Self {
        let units = (stream_bytes / UNIT_BYTES).min(Semaphore::MAX_PERMITS);
        let [files, streams, forms] = [permits, units, 1].map(|it| Arc::new(Semaphore::new(it)));
        Self { files, streams, forms }
    }

    /// The permit to make the form of a stored object; none while another is made.
    pub fn form_permit(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.forms).try_acquire_owned().ok()
    }

    /// A permit, which its encoder keeps until it has ended; none if all are taken for a while.
    pub async fn take(&self) -> Option<OwnedSemaphorePermit> {
        timeout(PERMIT_TIME_MAX, Arc::clone(&self.files).acquire_owned()).await.ok()?.ok()
    }

    /// An encoder of a body on its way, which has this many bytes if that is known; none if others have all the memory.
    pub fn encoder(&self, coding: Coding, bytes: Option<u64>) -> Option<Encoder> {
        let units = u32::try_from(stream_bytes_max(coding).div_ceil(UNIT_BYTES)).ok()?;
        let memory = Arc::clone(&self.streams).try_acquire_many_owned(units).ok()?;
        Some(Encoder {
            state: State::Idle(coding, bytes),
            unsent: Vec::new(),
            memory: Some(memory),
        })
    }
}

/// One encoder. It takes its memory with the first bytes, and gives it back at the end of the body.
pub struct Encoder {
    state: State,
    /// Coded bytes that are too few to be sent alone.
    unsent: Vec<u8>,
    memory: Option<OwnedSemaphorePermit>,
}

enum State {
    /// Nothing came so far.
    Idle(Coding, Option<u64>),
    Gzip(GzEncoder<Vec<u8>>),
    Br(Box<CompressorWriter<Vec<u8>>>),
    Zstd(ZstdEncoder<'static, Vec<u8>>),
    Ended,
}

impl Encoder {
    /// Takes plain bytes, at most [`STEP_BYTES`] at a time, and returns coded ones once they are worth a record.
    ///
    /// # Errors
    /// The library's, after which nothing more comes.
    pub fn encode(&mut self, plain: &[u8]) -> io::Result<Bytes> {
        if let State::Idle(coding, bytes) = self.state {
            self.state = State::begin(coding, bytes)?;
        }
        match &mut self.state {
            State::Gzip(encoder) => encoder.write_all(plain)?,
            State::Br(encoder) => encoder.write_all(plain)?,
            State::Zstd(encoder) => encoder.write_all(plain)?,
            State::Idle(..) | State::Ended => return Err(bug!("an encoder is at work").into()),
        }
        self.collect();
        Ok(if self.unsent.len() < SENT_BYTES_MIN { Bytes::new() } else { self.take() })
    }

    /// All that stands for what was taken so far.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    pub fn flush(&mut self) -> io::Result<Bytes> {
        match &mut self.state {
            State::Gzip(encoder) => encoder.flush()?,
            State::Br(encoder) => encoder.flush()?,
            State::Zstd(encoder) => encoder.flush()?,
            State::Idle(..) | State::Ended => {}
        }
        self.collect();
        Ok(self.take())
    }

    /// The rest, with the end. The memory is free then.
    ///
    /// # Errors
    /// As [`encode`](Self::encode).
    pub fn finish(&mut self) -> io::Result<Bytes> {
        if let State::Idle(coding, bytes) = self.state {
            self.state = State::begin(coding, bytes)?;
        }
        let rest = match mem::replace(&mut self.state, State::Ended) {
            State::Gzip(encoder) => encoder.finish()?,
            State::Br(encoder) => encoder.into_inner(),
            State::Zstd(encoder) => encoder.finish()?,
            State::Idle(..) | State::Ended => Vec::new(),
        };
        self.memory = None;
        self.unsent.extend_from_slice(&rest);
        Ok(self.take())
    }

    /// Moves what the library has written to what is unsent.
    fn collect(&mut self) {
        let written = match &mut self.state {
            State::Gzip(encoder) => encoder.get_mut(),
            State::Br(encoder) => encoder.get_mut(),
            State::Zstd(encoder) => encoder.get_mut(),
            State::Idle(..) | State::Ended => return,
        };
        if self.unsent.is_empty() {
            mem::swap(&mut self.unsent, written);
        } else {
            self.unsent.append(written);
        }
    }

    fn take(&mut self) -> Bytes {
        mem::take(&mut self.unsent).into()
    }
}

impl State {
    fn begin(coding: Coding, bytes: Option<u64>) -> io::Result<Self> {
        Ok(match coding {
            Coding::Gzip => Self::Gzip(GzEncoder::new(Vec::new(), Compression::new(GZIP_LEVEL))),
            Coding::Br => {
                let parameters = BrotliEncoderParams {
                    quality: BROTLI_QUALITY,
                    lgwin: BROTLI_WINDOW_BITS,
                    ..BrotliEncoderParams::default()
                };
                Self::Br(Box::new(CompressorWriter::with_params(
                    Vec::new(),
                    BROTLI_BUFFER_BYTES,
                    &parameters,
                )))
            }
            Coding::Zstd => {
                let mut encoder = ZstdEncoder::new(Vec::new(), ZSTD_LEVEL)?;
                encoder.window_log(ZSTD_WINDOW_BITS)?;
                // It makes its tables as small as the body is.
                encoder.set_pledged_src_size(bytes)?;
                Self::Zstd(encoder)
            }
        })
    }
}

/// A body that is coded as it comes: what its encoder and its source are about.
pub struct Encoding {
    encoder: Encoder,
    /// The part of the last piece that is not coded yet.
    plain: Bytes,
    /// The bytes coded since others had a turn.
    step_bytes: usize,
    /// True if all that was taken has been sent.
    is_flushed: bool,
    is_over: bool,
}

impl Encoding {
    /// Nothing came so far.
    pub fn new(encoder: Encoder) -> Self {
        Self { encoder, plain: Bytes::new(), step_bytes: 0, is_flushed: true, is_over: false }
    }

    /// The next coded piece of what `poll_plain` yields; `None` at the end. If the source has nothing more for now, all that it
    /// yielded is flushed: nothing that came is held back. Pending without a cause once it has worked for as long as a worker
    /// may be held up.
    ///
    /// # Errors
    /// The source's, without an end of the coded body.
    pub fn poll_next<E: From<io::Error>>(
        &mut self,
        context: &mut Context<'_>,
        mut poll_plain: impl FnMut(&mut Context<'_>) -> Poll<Result<Option<Bytes>, E>>,
    ) -> Poll<Result<Option<Bytes>, E>> {
        while !self.is_over {
            if self.step_bytes >= STEP_BYTES {
                self.step_bytes = 0;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            if self.plain.is_empty() {
                match poll_plain(context) {
                    Poll::Ready(Ok(Some(piece))) => self.plain = piece,
                    Poll::Ready(Ok(None)) => {
                        self.is_over = true;
                        return Poll::Ready(Ok(Some(self.encoder.finish()?)));
                    }
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => {
                        self.step_bytes = 0;
                        if mem::replace(&mut self.is_flushed, true) {
                            return Poll::Pending;
                        }
                        return Poll::Ready(Ok(Some(self.encoder.flush()?)));
                    }
                }
            }
            let bytes = self.plain.len().min(STEP_BYTES - self.step_bytes);
            if bytes == 0 {
                continue;
            }
            let coded = self.encoder.encode(&self.plain.split_to(bytes))?;
            self.step_bytes += bytes;
            self.is_flushed = false;
            if !coded.is_empty() {
                return Poll::Ready(Ok(Some(coded)));
            }
        }
        Poll::Ready(Ok(None))
    }
}

impl fmt::Debug for Encoder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Encoder").finish_non_exhaustive()
    }
}

/// Returns the bytes that an encoder of a body on its way holds at most beside what it has not sent.
fn stream_bytes_max(coding: Coding) -> usize {
    match coding {
        Coding::Gzip => GZIP_BYTES_MAX,
        Coding::Br => BROTLI_BYTES_MAX,
        Coding::Zstd => ZSTD_BYTES_MAX,
    }
}

/// Fields about the bytes of a body as they are sent (RFC 9530, and what came before it).
pub const OF_BYTES: [&str; 4] = ["content-digest", "content-md5", "digest", "repr-digest"];

/// The bytes that an encoder of a file holds at most beside the file and its compressed form, which count as files in memory.
pub const ENCODER_BYTES_MAX: usize = 4 << 20;
/// The time a request waits for a permit. Then the file goes out as it is, and the next request tries again.
const PERMIT_TIME_MAX: Duration = Duration::from_millis(250);

/// The bytes coded at most before others have a turn: about a millisecond of brotli.
pub const STEP_BYTES: usize = 32 * 1_024;
/// Fewer coded bytes wait for more, as long as the source has some.
const SENT_BYTES_MIN: usize = 8 * 1_024;

/// The memory for encoders of bodies on their way is counted in units of this.
const UNIT_BYTES: usize = 128 * 1_024;
const GZIP_BYTES_MAX: usize = 3 * UNIT_BYTES;
const BROTLI_BYTES_MAX: usize = 8 * UNIT_BYTES;
const ZSTD_BYTES_MAX: usize = 16 * UNIT_BYTES;

/// Levels at which each coding makes of a text about the same, for what a worker may spend on each response.
const GZIP_LEVEL: u32 = 4;
const BROTLI_QUALITY: i32 = 3;
const ZSTD_LEVEL: i32 = 3;
/// No window of brotli may be smaller: see [`at_once`].
const BROTLI_WINDOW_BITS: i32 = 17;
const BROTLI_BUFFER_BYTES: usize = 4 * 1_024;
const ZSTD_WINDOW_BITS: u32 = 17;

#[cfg(test)]
mod tests;

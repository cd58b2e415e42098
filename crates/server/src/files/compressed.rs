//! Small texts compressed while they are asked for, where no compressed sibling is there.

use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use brotli::enc::BrotliEncoderParams;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use kettle_config::Coding;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use zstd::bulk::Compressor;
use zstd::zstd_safe::CParameter;

use super::entry::Content;
use super::file_route::FileRoute;
use super::locate::Facts;
use super::precompressed::CodingPreference;

/// The places of encoders, which all workers share: each encoder holds up to [`ENCODER_BYTES_MAX`] while it is at work.
#[derive(Clone, Debug)]
pub struct EncoderPlaces(Arc<Semaphore>);

impl EncoderPlaces {
    /// Places for so many encoders in the whole process.
    #[must_use]
    pub fn new(places: usize) -> Self {
        Self(Arc::new(Semaphore::new(places)))
    }

    /// A place, which its encoder keeps until it has ended; none if all are taken for a while.
    pub(super) async fn take(&self) -> Option<OwnedSemaphorePermit> {
        timeout(PLACE_TIME_MAX, Arc::clone(&self.0).acquire_owned()).await.ok()?.ok()
    }
}

/// The coding that a file is to be compressed by; none if it is no text, large, tiny, or compressed already.
#[must_use]
pub fn coding_for(
    route: &FileRoute,
    preference: CodingPreference,
    facts: &Facts,
    content: &Content,
) -> Option<Coding> {
    let coding = preference.among(&route.live_codings).codings().next()?;
    if preference.is_on_disk() {
        return None;
    }
    let is_small = matches!(content, Content::Memory(bytes) if bytes.len() >= BYTES_MIN);
    let name = facts.path.rsplit('/').next().unwrap_or(&facts.path);
    (is_small && facts.coding.is_none() && is_text(&route.types.of(name))).then_some(coding)
}

/// The bytes in a coding; none if that does not make them fewer. Takes its time.
#[must_use]
pub fn compress(coding: Coding, bytes: &[u8]) -> Option<Bytes> {
    let compressed = match coding {
        Coding::Gzip => gzip(bytes),
        Coding::Br => brotli(bytes),
        Coding::Zstd => zstd(bytes),
    };
    let compressed = compressed.ok()?;
    (compressed.len() < bytes.len()).then(|| compressed.into_boxed_slice().into())
}

fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes)?;
    encoder.finish()
}

fn brotli(mut bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut compressed = Vec::new();
    let parameters = brotli_parameters(bytes.len());
    brotli::BrotliCompress(&mut bytes, &mut compressed, &parameters)?;
    Ok(compressed)
}

fn brotli_parameters(bytes: usize) -> BrotliEncoderParams {
    BrotliEncoderParams {
        quality: BROTLI_QUALITY,
        lgwin: BROTLI_WINDOW_BITS,
        size_hint: bytes.min(BROTLI_HINT_BYTES_MAX),
        ..BrotliEncoderParams::default()
    }
}

fn zstd(bytes: &[u8]) -> io::Result<Vec<u8>> {
    zstd_encoder(bytes.len())?.compress(bytes)
}

fn zstd_encoder(bytes: usize) -> io::Result<Compressor<'static>> {
    let mut encoder = Compressor::new(ZSTD_LEVEL)?;
    encoder.set_parameter(CParameter::WindowLog(zstd_window_bits(bytes)))?;
    Ok(encoder)
}

/// The window for so many bytes, in bits: as far as a match may reach back, and no further than memory allows.
fn zstd_window_bits(bytes: usize) -> u32 {
    let fitting = usize::BITS - bytes.saturating_sub(1).leading_zeros();
    fitting.clamp(ZSTD_WINDOW_BITS_MIN, ZSTD_WINDOW_BITS_MAX)
}

fn is_text(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    essence.starts_with("text/")
        || essence.ends_with("+json")
        || essence.ends_with("+xml")
        || TEXTS.contains(&essence)
}

/// Texts whose type does not begin so.
const TEXTS: [&str; 7] = [
    "application/javascript",
    "application/json",
    "application/toml",
    "application/wasm",
    "application/x-ndjson",
    "application/xml",
    "application/yaml",
];
/// Of 0 to 11. From 10 on it takes ten times as long as gzip.
const BROTLI_QUALITY: i32 = 5;
/// Of 1 to 22.
const ZSTD_LEVEL: i32 = 6;
/// Less fits into the same packet either way.
const BYTES_MIN: usize = 256;
/// All of a file up to 128 KiB. The library's own window, for streams without an end, makes that 10 MB for a page of text; for one
/// below this the crate takes the tables of its highest quality, which are 32 MiB (`BrotliMakeHasher` in its enc/encode.rs, 9.1.1).
const BROTLI_WINDOW_BITS: i32 = 17;
/// Files that are said to be longer get larger tables.
const BROTLI_HINT_BYTES_MAX: usize = 1 << 20;
/// The least that zstd takes, and so far that it stays within the same bytes.
const ZSTD_WINDOW_BITS_MIN: u32 = 10;
const ZSTD_WINDOW_BITS_MAX: u32 = 18;
/// What an encoder holds at most beside the file and its compressed form, which count as files in memory.
pub const ENCODER_BYTES_MAX: usize = 4 << 20;
/// How long a request waits for a place. Then the file goes out as it is, and the next request tries again.
const PLACE_TIME_MAX: Duration = Duration::from_millis(250);

#[cfg(test)]
mod tests;

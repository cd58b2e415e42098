//! Texts that are there as a whole, compressed by one call.

use std::io::{self, Write as _};

use brotli::enc::BrotliEncoderParams;
use bytes::Bytes;
use flate2::write::GzEncoder;
use kettle_config::Coding;
use zstd::bulk::Compressor;
use zstd::zstd_safe::CParameter;

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
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::default());
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

/// Of 0 to 11. From 10 on it takes ten times as long as gzip.
const BROTLI_QUALITY: i32 = 5;
/// Of 1 to 22.
const ZSTD_LEVEL: i32 = 6;
/// All of a file up to 128 KiB. The library's own window, for streams without an end, makes that 10 MB for a page of text; for one
/// below this the crate takes the tables of its highest quality, which are 32 MiB (`BrotliMakeHasher` in its enc/encode.rs, 9.1.1).
const BROTLI_WINDOW_BITS: i32 = 17;
/// Files that are said to be longer get larger tables.
const BROTLI_HINT_BYTES_MAX: usize = 1 << 20;
/// The least that zstd takes, and so far that it stays within the same bytes.
const ZSTD_WINDOW_BITS_MIN: u32 = 10;
const ZSTD_WINDOW_BITS_MAX: u32 = 18;

#[cfg(test)]
mod tests;

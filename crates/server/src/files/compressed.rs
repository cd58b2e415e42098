//! Small texts compressed while they are asked for, where no compressed sibling is there.

use std::io::Write as _;

use brotli::enc::BrotliEncoderParams;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use kettle_config::Coding;

use super::entry::Content;
use super::file_route::FileRoute;
use super::locate::Facts;
use super::precompressed::CodingPreference;

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
    let mut compressed = Vec::new();
    match coding {
        Coding::Gzip => {
            let mut encoder = GzEncoder::new(&mut compressed, Compression::default());
            encoder.write_all(bytes).ok()?;
            encoder.finish().ok()?;
        }
        Coding::Br => {
            let parameters =
                BrotliEncoderParams { quality: BROTLI_QUALITY, ..BrotliEncoderParams::default() };
            brotli::BrotliCompress(&mut &*bytes, &mut compressed, &parameters).ok()?;
        }
        Coding::Zstd => compressed = zstd::bulk::compress(bytes, ZSTD_LEVEL).ok()?,
    }
    (compressed.len() < bytes.len()).then(|| compressed.into_boxed_slice().into())
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

//! Certificate messages in their compressed form (RFC 8879), made when a certificate is loaded. Nothing is compressed in a handshake.
//!
//! rustls hands over the message that it is about to send and asks for the compressed one. It is found by its hash; what is not
//! known goes out as it is.

use std::collections::HashMap;
use std::io::Write as _;
use std::sync::{LazyLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use brotli::enc::BrotliEncoderParams;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use kettle_kernel::bug;
use rustls::CertificateCompressionAlgorithm;
use rustls::compress::{CertCompressor, CompressionFailed, CompressionLevel};
use rustls::sign::CertifiedKey;

use crate::peer_identity::sha256;

/// The compressors that rustls is given, the most wanted first.
pub(crate) const COMPRESSORS: [&dyn CertCompressor; 2] =
    [&KnownMessages::Brotli, &KnownMessages::Zlib];

/// A chain whose message is kept compressed, as long as this value lives.
pub(crate) struct CompressedChain(MessageHash);

type MessageHash = [u8; 32];

/// A message of which this process has compressed forms.
struct Message {
    brotli: Option<Box<[u8]>>,
    zlib: Option<Box<[u8]>>,
    /// The number of chains that have this message.
    chains: usize,
}

type Messages = HashMap<MessageHash, Message>;

static MESSAGES: LazyLock<RwLock<Messages>> = LazyLock::new(RwLock::default);

impl CompressedChain {
    /// Compresses the message of this chain, with its staple if it has one. A chain that many identities have is compressed once.
    pub(crate) fn new(certified: &CertifiedKey) -> Self {
        let plain = certificate_message(certified);
        let hash = sha256(&plain);
        if !Self::found(&hash) {
            let message =
                Message { brotli: smaller(&plain, brotli), zlib: smaller(&plain, zlib), chains: 0 };
            write().entry(hash).or_insert(message).chains += 1;
        }
        Self(hash)
    }

    /// Counts one chain more for a message that is known.
    fn found(hash: &MessageHash) -> bool {
        write().get_mut(hash).map(|message| message.chains += 1).is_some()
    }
}

impl Drop for CompressedChain {
    fn drop(&mut self) {
        let mut messages = write();
        match messages.get_mut(&self.0).map(|message| (message.chains.checked_sub(1), message)) {
            Some((Some(left), message)) if left > 0 => message.chains = left,
            Some(_) => drop(messages.remove(&self.0)),
            None => _ = bug!("a compressed chain that ends was kept"),
        }
    }
}

/// The memory that answers rustls, one for each coding.
#[derive(Debug)]
enum KnownMessages {
    Brotli,
    Zlib,
}

impl CertCompressor for KnownMessages {
    fn compress(&self, plain: Vec<u8>, _: CompressionLevel) -> Result<Vec<u8>, CompressionFailed> {
        let hash = sha256(&plain);
        let messages = read();
        let compressed = messages.get(&hash).and_then(|message| match self {
            Self::Brotli => message.brotli.as_deref(),
            Self::Zlib => message.zlib.as_deref(),
        });
        compressed.map(<[u8]>::to_vec).ok_or(CompressionFailed)
    }

    fn algorithm(&self) -> CertificateCompressionAlgorithm {
        match self {
            Self::Brotli => CertificateCompressionAlgorithm::Brotli,
            Self::Zlib => CertificateCompressionAlgorithm::Zlib,
        }
    }
}

/// A server's Certificate message without its header, as rustls writes it (RFC 8446 §4.4.2): no context, each certificate with
/// its extensions, of which the first has the staple.
fn certificate_message(certified: &CertifiedKey) -> Vec<u8> {
    let mut list = Vec::new();
    for (index, certificate) in certified.cert.iter().enumerate() {
        push_u24(&mut list, certificate);
        let staple = certified.ocsp.as_deref().filter(|_| index == 0);
        let extension = staple.map(status_request).unwrap_or_default();
        push_length(&mut list, extension.len(), 2);
        list.extend_from_slice(&extension);
    }
    let mut message = vec![0];
    push_u24(&mut message, &list);
    message
}

/// The extension `status_request` with a CertificateStatus of the type ocsp (RFC 8446 §4.4.2.1).
fn status_request(staple: &[u8]) -> Vec<u8> {
    let mut status = vec![1];
    push_u24(&mut status, staple);
    let mut extension = vec![0, 5];
    push_length(&mut extension, status.len(), 2);
    extension.extend_from_slice(&status);
    extension
}

fn push_u24(out: &mut Vec<u8>, bytes: &[u8]) {
    push_length(out, bytes.len(), 3);
    out.extend_from_slice(bytes);
}

/// The lowest bytes of a length. A file of certificates is shorter than what overflows here.
fn push_length(out: &mut Vec<u8>, length: usize, width: usize) {
    out.extend(length.to_be_bytes().iter().skip(size_of::<usize>().saturating_sub(width)));
}

/// Returns the message to keep: nothing where it would not be less.
fn smaller(plain: &[u8], compress: fn(&[u8]) -> Option<Vec<u8>>) -> Option<Box<[u8]>> {
    let compressed = compress(plain).filter(|compressed| compressed.len() < plain.len())?;
    Some(compressed.into_boxed_slice())
}

fn brotli(mut plain: &[u8]) -> Option<Vec<u8>> {
    let parameters = BrotliEncoderParams {
        quality: QUALITY,
        lgwin: LGWIN,
        size_hint: plain.len(),
        ..Default::default()
    };
    let mut compressed = Vec::new();
    brotli::BrotliCompress(&mut plain, &mut compressed, &parameters).ok()?;
    Some(compressed)
}

fn zlib(plain: &[u8]) -> Option<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(plain).ok()?;
    encoder.finish().ok()
}

fn read() -> RwLockReadGuard<'static, Messages> {
    MESSAGES.read().unwrap_or_else(PoisonError::into_inner)
}

fn write() -> RwLockWriteGuard<'static, Messages> {
    MESSAGES.write().unwrap_or_else(PoisonError::into_inner)
}

/// Higher ones take seventy times as long (4 ms a chain) for one byte in a hundred.
const QUALITY: i32 = 4;

/// A window of 16 KiB: chains are smaller, and the encoder's memory goes by it.
const LGWIN: i32 = 14;

#[cfg(test)]
mod tests;

//! Kernel TLS on one TCP socket: attach the protocol, hand over keys, ask for the record number.
//!
//! The order is attach, then install; a socket that got keys never goes back to user space. Which connection
//! deserves it, and what to do about a refusal, is decided by the callers.

mod error;
mod keys;
#[cfg(test)]
mod tests;

pub use error::{CIPHER_MISSING, KtlsError, KtlsStep, SUITE_UNSUPPORTED};
pub use keys::{Cipher, KeyLengthError, TrafficKeys, Version};

use std::io;
use std::os::fd::BorrowedFd;

use zeroize::Zeroizing;

use crate::{option, socket};

/// Which way the records of a key flow, seen from this socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordDirection {
    /// Records this socket sends.
    Tx,
    /// Records this socket receives.
    Rx,
}

/// The largest payload of one TLS record (RFC 8446, section 5.1).
pub const RECORD_PAYLOAD_BYTES_MAX: u16 = 16_384;

/// Attaches the kernel's TLS protocol to a connected TCP socket. A refusal leaves the socket as it was; after success
/// without keys the socket still carries plain bytes. Multipath TCP, for which Linux
/// has no kernel TLS, is refused without asking.
///
/// # Errors
/// Why the kernel does not: it has no kernel TLS, or this is no connected TCP socket.
pub fn attach(fd: BorrowedFd<'_>) -> Result<(), KtlsError> {
    if socket::is_mptcp(fd) {
        let error = io::Error::from_raw_os_error(libc::EPROTONOSUPPORT);
        return Err(KtlsError { step: KtlsStep::Attach, error });
    }
    option::set(fd, libc::IPPROTO_TCP, libc::TCP_ULP, b"tls")
        .map_err(|error| KtlsError { step: KtlsStep::Attach, error })
}

/// Gives the kernel the keys of one direction. For TLS 1.3 on Linux 6.14 and later a second call changes the keys after
/// a KeyUpdate.
///
/// For TLS 1.2 AES-GCM the kernel counts its explicit nonces up from the bytes it gets here, while user space XORs those
/// bytes with the record number. Handing them over unchanged would repeat a nonce, so TX gets them with the
/// highest bit flipped: both sides then use disjoint halves of the nonce space for 2^63 records each.
///
/// # Errors
/// Why the kernel does not take them. Nothing may be written to the socket then: it would go out as it is.
pub fn install(
    fd: BorrowedFd<'_>,
    direction: RecordDirection,
    keys: &TrafficKeys,
) -> Result<(), KtlsError> {
    let crypto_info = keys.crypto_info(direction);
    option::set(fd, libc::SOL_TLS, option_name(direction), crypto_info.bytes()).map_err(|error| {
        let step = match direction {
            RecordDirection::Tx => KtlsStep::InstallTx,
            RecordDirection::Rx => KtlsStep::InstallRx,
        };
        KtlsError { step, error }
    })
}

/// The number the kernel will give (TX) or expects of (RX) the next record of this direction.
///
/// # Errors
/// The error of `getsockopt`; `InvalidData` for a short answer, `InvalidInput` if the socket has another version or
/// cipher.
pub fn sequence(
    fd: BorrowedFd<'_>,
    direction: RecordDirection,
    version: Version,
    cipher: Cipher,
) -> io::Result<u64> {
    // The answer repeats the key, so the buffer is zeroed on drop.
    let mut crypto_info = Zeroizing::new([0_u8; keys::CRYPTO_INFO_BYTES_MAX]);
    let expected_bytes = cipher.crypto_info_bytes();
    let buffer = crypto_info.get_mut(..expected_bytes).unwrap_or_default();
    let bytes = option::get(fd, libc::SOL_TLS, option_name(direction), buffer)?;
    if bytes != expected_bytes {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "short TLS crypto info"));
    }
    keys::sequence_in(buffer, version, cipher).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidInput, "the socket uses another TLS version or cipher")
    })
}

/// True if a call failed that sends because kernel TLS could not encrypt: it has given the socket up (`tls_err_abort`). Some file
/// systems have the same error for what they read.
#[must_use]
pub fn is_encryption_failure(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EBADMSG)
}

/// Allows a network card that encrypts to send file pages without a copy of its own. Accepted and without effect
/// where the processor encrypts. Linux 5.19.
///
/// # Errors
/// The error of `setsockopt(TLS_TX_ZEROCOPY_RO)`: `ENOPROTOOPT` on an older kernel.
pub fn allow_zero_copy_sendfile(fd: BorrowedFd<'_>) -> io::Result<()> {
    option::set(fd, libc::SOL_TLS, libc::TLS_TX_ZEROCOPY_RO, &1_u32.to_ne_bytes())
}

/// Limits the payload of the records this socket sends. Linux 6.19.
///
/// # Errors
/// The error of `setsockopt(TLS_TX_MAX_PAYLOAD_LEN)`: `ENOPROTOOPT` on an older kernel.
pub fn limit_payload(fd: BorrowedFd<'_>, payload_bytes_max: u16) -> io::Result<()> {
    option::set(fd, libc::SOL_TLS, TLS_TX_MAX_PAYLOAD_LEN, &payload_bytes_max.to_ne_bytes())
}

fn option_name(direction: RecordDirection) -> libc::c_int {
    match direction {
        RecordDirection::Tx => libc::TLS_TX,
        RecordDirection::Rx => libc::TLS_RX,
    }
}

/// From the kernel's `uapi/linux/tls.h`; `libc` does not know it yet.
const TLS_TX_MAX_PAYLOAD_LEN: libc::c_int = 5;

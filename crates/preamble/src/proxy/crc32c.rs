//! The checksum of headers (CRC-32C, RFC 9260 Appendix A).

/// The checksum of these bytes.
pub(super) fn crc32c(bytes: impl Iterator<Item = u8>) -> u32 {
    // Bit by bit: a header is at most a page, once a connection, and few senders add a checksum.
    !bytes.fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            (crc >> 1) ^ (POLYNOMIAL & (crc & 1).wrapping_neg())
        })
    })
}

/// Castagnoli's polynomial, lowest power first.
const POLYNOMIAL: u32 = 0x82F6_3B78;

//! Traffic keys as TLS knows them, and their form in the kernel's `tls12_crypto_info_*` structures.

use std::fmt;
use std::mem::offset_of;

use zeroize::Zeroizing;

use super::RecordDirection;

/// A protocol version the kernel can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// TLS 1.2.
    Tls12,
    /// TLS 1.3.
    Tls13,
}

impl Version {
    /// Both versions, oldest first.
    pub const ALL: [Version; 2] = [Version::Tls12, Version::Tls13];

    /// The name people know it by.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Version::Tls12 => "TLS 1.2",
            Version::Tls13 => "TLS 1.3",
        }
    }

    fn code(self) -> u16 {
        match self {
            Version::Tls12 => libc::TLS_1_2_VERSION,
            Version::Tls13 => libc::TLS_1_3_VERSION,
        }
    }
}

/// An AEAD that both the kernel and kettle's handshake know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cipher {
    /// AES-128-GCM.
    Aes128Gcm,
    /// AES-256-GCM. Linux 5.1.
    Aes256Gcm,
    /// ChaCha20-Poly1305. Linux 5.11.
    Chacha20Poly1305,
}

impl Cipher {
    /// Every cipher.
    pub const ALL: [Cipher; 3] = [Cipher::Aes128Gcm, Cipher::Aes256Gcm, Cipher::Chacha20Poly1305];

    /// The length of its key.
    #[must_use]
    pub const fn key_bytes(self) -> usize {
        match self {
            Cipher::Aes128Gcm => 16,
            Cipher::Aes256Gcm | Cipher::Chacha20Poly1305 => 32,
        }
    }

    /// The name people know it by.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Cipher::Aes128Gcm => "AES-128-GCM",
            Cipher::Aes256Gcm => "AES-256-GCM",
            Cipher::Chacha20Poly1305 => "ChaCha20-Poly1305",
        }
    }

    fn code(self) -> u16 {
        match self {
            Cipher::Aes128Gcm => libc::TLS_CIPHER_AES_GCM_128,
            Cipher::Aes256Gcm => libc::TLS_CIPHER_AES_GCM_256,
            Cipher::Chacha20Poly1305 => libc::TLS_CIPHER_CHACHA20_POLY1305,
        }
    }

    /// GCM structures split the 12 bytes into a salt and an explicit part; ChaCha20's keeps them whole.
    const fn is_gcm(self) -> bool {
        matches!(self, Cipher::Aes128Gcm | Cipher::Aes256Gcm)
    }

    pub(super) const fn crypto_info_bytes(self) -> usize {
        HEADER_BYTES + IV_BYTES + self.key_bytes() + SEQUENCE_BYTES
    }
}

/// The keys of one direction: key, 12-byte IV and the number of the next record.
///
/// For TLS 1.2 AES-GCM the IV is the 4-byte salt followed by the 8 bytes whose XOR with the record number gave user space
/// its explicit nonces. The bytes are zeroed on drop, and the key is on the heap, since what is moved leaves its bytes behind.
pub struct TrafficKeys {
    version: Version,
    cipher: Cipher,
    key: Zeroizing<Vec<u8>>,
    iv: Zeroizing<[u8; IV_BYTES]>,
    sequence: u64,
}

/// A key whose length does not belong to its cipher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyLengthError {
    /// The cipher the key was meant for.
    pub cipher: Cipher,
    /// The number of bytes that were given.
    pub bytes: usize,
}

impl fmt::Display for KeyLengthError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.cipher.name();
        let wanted = self.cipher.key_bytes();
        write!(f, "{name} takes a key of {wanted} bytes, not {}", self.bytes)
    }
}

impl std::error::Error for KeyLengthError {}

impl TrafficKeys {
    /// Copies the key. `sequence` is the number of the first record these keys will protect in the kernel.
    ///
    /// # Errors
    /// If the key is not as long as its cipher needs.
    pub fn new(
        version: Version,
        cipher: Cipher,
        key: &[u8],
        iv: [u8; IV_BYTES],
        sequence: u64,
    ) -> Result<Self, KeyLengthError> {
        if key.len() != cipher.key_bytes() {
            return Err(KeyLengthError { cipher, bytes: key.len() });
        }
        let key = Zeroizing::new(key.to_vec());
        let iv = Zeroizing::new(iv);
        Ok(Self { version, cipher, key, iv, sequence })
    }

    /// The protocol version.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// The cipher.
    #[must_use]
    pub fn cipher(&self) -> Cipher {
        self.cipher
    }

    /// The kernel's structure: version and cipher, IV, key, salt and record number, in this order for each cipher.
    pub(super) fn crypto_info(&self, direction: RecordDirection) -> CryptoInfo {
        let mut info = CryptoInfo(Zeroizing::new(Vec::with_capacity(CRYPTO_INFO_BYTES_MAX)));
        info.push(&self.version.code().to_ne_bytes());
        info.push(&self.cipher.code().to_ne_bytes());
        let (salt, explicit) = self.iv.split_at(SALT_BYTES);
        if self.cipher.is_gcm() {
            // The record number lives in the last eight bytes, so its highest bit is the first bit of `explicit`.
            let flip = direction == RecordDirection::Tx && self.version == Version::Tls12;
            let mask = if flip { EXPLICIT_NONCE_FLIP } else { 0 };
            explicit.iter().take(1).for_each(|byte| info.push(&[byte ^ mask]));
            explicit.iter().skip(1).for_each(|byte| info.push(&[*byte]));
            info.push(&self.key);
            info.push(salt);
        } else {
            info.push(self.iv.as_slice());
            info.push(&self.key);
        }
        info.push(&self.sequence.to_be_bytes());
        info
    }
}

impl fmt::Debug for TrafficKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrafficKeys")
            .field("version", &self.version)
            .field("cipher", &self.cipher)
            .field("sequence", &self.sequence)
            .finish_non_exhaustive()
    }
}

/// One `tls12_crypto_info_*` as bytes; they hold the key and are zeroed on drop. There is room for the largest from the start:
/// a vector that grows leaves its bytes behind.
pub(super) struct CryptoInfo(Zeroizing<Vec<u8>>);

impl CryptoInfo {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    fn push(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}

/// The record number in a structure the kernel filled, or `None` if it is of another version or cipher.
pub(super) fn sequence_in(crypto_info: &[u8], version: Version, cipher: Cipher) -> Option<u64> {
    let (header, rest) = crypto_info.split_first_chunk::<HEADER_BYTES>()?;
    let [version_low, version_high] = version.code().to_ne_bytes();
    let [cipher_low, cipher_high] = cipher.code().to_ne_bytes();
    if *header != [version_low, version_high, cipher_low, cipher_high] {
        return None;
    }
    let (_, sequence) = rest.split_last_chunk::<SEQUENCE_BYTES>()?;
    Some(u64::from_be_bytes(*sequence))
}

pub(super) const IV_BYTES: usize = 12;
pub(super) const SALT_BYTES: usize = 4;
pub(super) const CRYPTO_INFO_BYTES_MAX: usize = 56;
const HEADER_BYTES: usize = 4;
const SEQUENCE_BYTES: usize = 8;
const EXPLICIT_NONCE_FLIP: u8 = 0x80;

// The bytes above are laid out by hand, which needs no unsafe; these hold them to the C structures.
const _: () = {
    use libc::{
        tls12_crypto_info_aes_gcm_128 as Aes128, tls12_crypto_info_aes_gcm_256 as Aes256,
        tls12_crypto_info_chacha20_poly1305 as Chacha,
    };
    assert!(size_of::<Aes128>() == Cipher::Aes128Gcm.crypto_info_bytes());
    assert!(offset_of!(Aes128, iv) == 4);
    assert!(offset_of!(Aes128, key) == 12);
    assert!(offset_of!(Aes128, salt) == 28);
    assert!(offset_of!(Aes128, rec_seq) == 32);
    assert!(size_of::<Aes256>() == Cipher::Aes256Gcm.crypto_info_bytes());
    assert!(offset_of!(Aes256, iv) == 4);
    assert!(offset_of!(Aes256, key) == 12);
    assert!(offset_of!(Aes256, salt) == 44);
    assert!(offset_of!(Aes256, rec_seq) == 48);
    assert!(size_of::<Chacha>() == Cipher::Chacha20Poly1305.crypto_info_bytes());
    assert!(offset_of!(Chacha, iv) == 4);
    assert!(offset_of!(Chacha, key) == 16);
    assert!(offset_of!(Chacha, rec_seq) == 48);
    assert!(size_of::<Aes256>() == CRYPTO_INFO_BYTES_MAX);
    assert!(size_of::<Chacha>() == CRYPTO_INFO_BYTES_MAX);
};

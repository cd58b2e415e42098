//! Ticket keys that several hosts have in common: made from one secret file, a key for each period of time.
//!
//! The key of a period is HKDF-SHA256 (RFC 5869) of the secret with the length and the number of the period, so hosts
//! with the same file and `ticket_rotation` have the same keys without a word to each other.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};
use zeroize::Zeroizing;

use super::clock::nanoseconds;
use super::key::{KEY_BYTES, TicketKey};
use crate::error::{FileRole, IdentityError};
use crate::identity::{IdentityWarning, pem};

/// The secret of which hosts make the same ticket keys. Zeroed when dropped and never shown.
#[derive(Clone)]
pub struct TicketSecret(Arc<Zeroizing<Vec<u8>>>);

impl TicketSecret {
    /// Takes all bytes of a file, whatever they are.
    ///
    /// # Errors
    /// [`IdentityError`] if the file cannot be read, or cannot be a secret.
    pub fn load(path: &Path) -> Result<(Self, Vec<IdentityWarning>), IdentityError> {
        let file = pem::open(path, FileRole::TicketSecret)?;
        let bytes = file.read()?;
        let mode = file.mode();
        let shown = path.display();
        let weak = |detail| {
            Err(IdentityError::new(
                path,
                format!("the ticket secret {shown} cannot be used: {detail}"),
                format!("make one with `openssl rand -out {shown} 32` and copy it to every host"),
            ))
        };
        if bytes.len() < SECRET_BYTES_MIN {
            return weak("it has fewer than 32 bytes");
        }
        if bytes.iter().all(|byte| bytes.first() == Some(byte)) {
            return weak("it holds one byte over and over");
        }
        let warning = IdentityWarning::of_mode(FileRole::TicketSecret, path, mode);
        Ok((Self(Arc::new(bytes)), warning.into_iter().collect()))
    }

    /// The key of one period: its number counts periods of this length since 1970.
    pub(super) fn key(&self, period: Duration, number: u64) -> Option<TicketKey> {
        let name = self.expand(b"kettle ticket key name", period, number)?;
        let key = self.expand(b"kettle ticket key", period, number)?;
        TicketKey::new(*name.first_chunk()?, key.first_chunk()?)
    }

    /// On the heap, since what is moved leaves its bytes behind.
    fn expand(&self, label: &[u8], period: Duration, number: u64) -> Option<Zeroizing<Vec<u8>>> {
        let pseudorandom_key = Salt::new(HKDF_SHA256, SALT).extract(&self.0);
        let period = nanoseconds(period).to_be_bytes();
        let number = number.to_be_bytes();
        let info = [label, &period, &number];
        let mut output = Zeroizing::new(vec![0; KEY_BYTES]);
        pseudorandom_key.expand(&info, HKDF_SHA256).ok()?.fill(&mut output).ok()?;
        Some(output)
    }
}

impl fmt::Debug for TicketSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TicketSecret")
    }
}

/// As long as the keys made of it.
const SECRET_BYTES_MIN: usize = 32;

/// Sets these keys apart from whatever else is made of the same file.
const SALT: &[u8] = b"kettle ticket secret 1";

#[cfg(test)]
mod tests;

//! Keys of certificates that authorities sign, and the requests for these (RFC 2986).

use rcgen::{CertificateParams, DistinguishedName, KeyPair};
use zeroize::Zeroizing;

pub use crate::error::IssueError;
use crate::identity::KeyKind;
use crate::self_signed::generate_key;

/// A key that a certificate is to be for.
pub struct CertificateKey(KeyPair);

impl CertificateKey {
    /// Makes a new one. RSA keys may take a second.
    ///
    /// # Errors
    /// [`IssueError`] where no key of this kind can be made.
    pub fn generate(kind: KeyKind) -> Result<Self, IssueError> {
        generate_key(kind).map(Self).map_err(|error| IssueError(error.to_string()))
    }

    /// Reads one as [`to_pem`](Self::to_pem) wrote it.
    ///
    /// # Errors
    /// [`IssueError`] where it is none.
    pub fn from_pem(pem: &str) -> Result<Self, IssueError> {
        KeyPair::from_pem(pem).map(Self).map_err(IssueError::of)
    }

    /// The key, as PKCS #8 in PEM.
    #[must_use]
    pub fn to_pem(&self) -> Zeroizing<String> {
        Zeroizing::new(self.0.serialize_pem())
    }

    /// A request for a certificate of these names and addresses, in DER.
    ///
    /// # Errors
    /// [`IssueError`] where one of them cannot stand in a certificate, or there is none.
    pub fn request(&self, names: &[String]) -> Result<Vec<u8>, IssueError> {
        if names.is_empty() {
            return Err(IssueError("a certificate needs a name".to_owned()));
        }
        let mut parameters = CertificateParams::new(names.to_vec()).map_err(IssueError::of)?;
        // Names stand among the alternative ones only: authorities drop the common one.
        parameters.distinguished_name = DistinguishedName::new();
        let request = parameters.serialize_request(&self.0).map_err(IssueError::of)?;
        Ok(request.der().to_vec())
    }
}

#[cfg(test)]
mod tests;

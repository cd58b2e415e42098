//! The doubts about an identity that loads: a server starts with it and names them, `kettle check` counts the serious ones as
//! mistakes.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use time::OffsetDateTime;

/// A finding about an identity that could be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdentityWarning {
    /// The leaf is no longer valid.
    Expired {
        /// The certificate file.
        path: PathBuf,
        /// The last moment of its validity.
        not_after: SystemTime,
    },
    /// The leaf ends soon, and should have been replaced by now.
    EndsSoon {
        /// The certificate file.
        path: PathBuf,
        /// The last moment of its validity.
        not_after: SystemTime,
    },
    /// The leaf is not valid yet.
    NotYetValid {
        /// The certificate file.
        path: PathBuf,
        /// The first moment of its validity.
        not_before: SystemTime,
    },
    /// The leaf names no host in its subject alternative names; clients ignore the common name.
    NoNames {
        /// The certificate file.
        path: PathBuf,
    },
    /// The leaf's key usage forbids serving TLS with it.
    NotForServers {
        /// The certificate file.
        path: PathBuf,
        /// The reason by its extensions.
        reason: &'static str,
    },
    /// The leaf may also sign certificates; some clients refuse such a leaf.
    MarkedAsAuthority {
        /// The certificate file.
        path: PathBuf,
    },
    /// A certificate is followed by one that did not issue it, although the issuer is in the file.
    ChainOutOfOrder {
        /// The certificate file.
        path: PathBuf,
        /// The certificate that is followed by a stranger, counted from 1.
        position: usize,
    },
    /// The issuer of a certificate is not in the file.
    MissingIntermediate {
        /// The certificate file.
        path: PathBuf,
        /// The certificate whose issuer is missing, counted from 1.
        position: usize,
        /// The issuer's name.
        issuer: String,
    },
    /// The file has DH parameters, as hitch and older servers want them.
    DhParameters {
        /// The certificate file.
        path: PathBuf,
    },
    /// Users other than the owner may read the key.
    KeyReadableByOthers {
        /// The key file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// Users other than the owner may read the ticket secret.
    SecretReadableByOthers {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The staple's time is over; clients that check staples would refuse the connection.
    StapleExpired {
        /// The OCSP file.
        path: PathBuf,
        /// When a newer response was due.
        next_update: SystemTime,
    },
    /// The staple speaks about another certificate.
    StapleForAnotherCertificate {
        /// The OCSP file.
        path: PathBuf,
    },
    /// The staple says that the certificate is revoked, or that its issuer does not know it.
    StapleNotGood {
        /// The OCSP file.
        path: PathBuf,
    },
    /// The staple is of a time that has not come yet; clients refuse it.
    StapleNotYetValid {
        /// The OCSP file.
        path: PathBuf,
        /// The first moment of its validity.
        this_update: SystemTime,
    },
    /// The certificate demands a staple (must-staple), and none is sent.
    StapleWanted {
        /// The certificate file.
        path: PathBuf,
    },
    /// An authority's own certificate is past its time. A certificate that it signed is taken all the same.
    AuthorityExpired {
        /// The file.
        path: PathBuf,
        /// Which certificate of the file, counted from 1.
        position: usize,
        /// The last moment of validity.
        not_after: SystemTime,
    },
    /// The only authority signed itself and does not say that it signs others: it may be what the other side shows.
    LoneSelfSigned {
        /// The file.
        path: PathBuf,
        /// The pin of its key, where it is trusted to vouch for servers.
        pin: Option<String>,
    },
    /// There are lists of one name under two keys: what the one signed is not taken any more.
    RevocationListOfAnotherKey {
        /// The file.
        path: PathBuf,
        /// The name of both authorities.
        issuer: String,
    },
    /// The revocation list's time is over: no client's certificate is taken any more.
    RevocationListExpired {
        /// The file.
        path: PathBuf,
        /// When a newer list was due.
        next_update: SystemTime,
    },
}

impl IdentityWarning {
    /// True if clients will refuse the connection because of it: `kettle check` fails then.
    pub fn is_serious(&self) -> bool {
        match self {
            Self::Expired { .. }
            | Self::NotYetValid { .. }
            | Self::NoNames { .. }
            | Self::NotForServers { .. }
            | Self::StapleForAnotherCertificate { .. }
            | Self::StapleNotGood { .. }
            | Self::StapleWanted { .. }
            | Self::RevocationListOfAnotherKey { .. }
            | Self::RevocationListExpired { .. } => true,
            Self::EndsSoon { .. }
            | Self::MarkedAsAuthority { .. }
            | Self::ChainOutOfOrder { .. }
            | Self::MissingIntermediate { .. }
            | Self::DhParameters { .. }
            | Self::KeyReadableByOthers { .. }
            | Self::SecretReadableByOthers { .. }
            | Self::StapleExpired { .. }
            | Self::StapleNotYetValid { .. }
            | Self::AuthorityExpired { .. }
            | Self::LoneSelfSigned { .. } => false,
        }
    }

    /// The file it is about.
    pub fn path(&self) -> &Path {
        match self {
            Self::Expired { path, .. }
            | Self::EndsSoon { path, .. }
            | Self::NotYetValid { path, .. }
            | Self::NoNames { path }
            | Self::NotForServers { path, .. }
            | Self::MarkedAsAuthority { path }
            | Self::ChainOutOfOrder { path, .. }
            | Self::MissingIntermediate { path, .. }
            | Self::DhParameters { path }
            | Self::KeyReadableByOthers { path, .. }
            | Self::SecretReadableByOthers { path, .. }
            | Self::StapleExpired { path, .. }
            | Self::StapleForAnotherCertificate { path }
            | Self::StapleNotGood { path }
            | Self::StapleNotYetValid { path, .. }
            | Self::StapleWanted { path }
            | Self::RevocationListOfAnotherKey { path, .. }
            | Self::AuthorityExpired { path, .. }
            | Self::LoneSelfSigned { path, .. }
            | Self::RevocationListExpired { path, .. } => path,
        }
    }
}

impl IdentityWarning {
    /// Writes what staples and revocation lists are warned of; the rest is said where this is called.
    fn fmt_of_revocation(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path().display();
        match self {
            Self::StapleExpired { next_update, .. } => write!(
                f,
                "the OCSP response {path} ran out at {} and is not sent; fetch a new one and reload",
                Utc(*next_update)
            ),
            Self::StapleForAnotherCertificate { .. } => write!(
                f,
                "the OCSP response {path} is about another certificate and is not sent; fetch the \
                 one for this certificate"
            ),
            Self::StapleNotGood { .. } => write!(
                f,
                "the OCSP response {path} does not call the certificate good (it is revoked or \
                 unknown) and is not sent; have the certificate issued again"
            ),
            Self::StapleNotYetValid { this_update, .. } => write!(
                f,
                "the OCSP response {path} is valid from {} only and is not sent; check this machine's clock",
                Utc(*this_update)
            ),
            Self::StapleWanted { .. } => write!(
                f,
                "the certificate {path} demands an OCSP response (must-staple) and there is none to send, so \
                 clients refuse it; fetch one, name it by `ocsp` and reload"
            ),
            Self::RevocationListOfAnotherKey { issuer, .. } => write!(
                f,
                "{path} has revocation lists of two keys named {issuer}, and only the newest list of a name is \
                 asked, so clients with certificates of the other key are refused; have those issued again by \
                 the newer key"
            ),
            Self::RevocationListExpired { next_update, .. } => write!(
                f,
                "the revocation list {path} ran out at {}, so every client's certificate is refused; \
                 fetch a new one and reload",
                Utc(*next_update)
            ),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for IdentityWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path().display();
        match self {
            Self::Expired { not_after, .. } => write!(
                f,
                "the certificate {path} expired at {}; put a renewed one in its place and reload",
                Utc(*not_after)
            ),
            Self::EndsSoon { not_after, .. } => write!(
                f,
                "the certificate {path} ends at {}; put a renewed one in its place and reload, and look why \
                 that was not done yet",
                Utc(*not_after)
            ),
            Self::NotYetValid { not_before, .. } => write!(
                f,
                "the certificate {path} is valid from {} only; check this machine's clock, or use \
                 the certificate it replaces until then",
                Utc(*not_before)
            ),
            Self::NoNames { .. } => write!(
                f,
                "the certificate {path} names no host (no subject alternative name), so clients \
                 refuse it; have it issued again with the site's names"
            ),
            Self::NotForServers { reason, .. } => write!(
                f,
                "the certificate {path} is not for servers: {reason}; have a server certificate issued"
            ),
            Self::MarkedAsAuthority { .. } => write!(
                f,
                "{path} is marked as a certificate authority, so some clients refuse it; add \
                 `-addext basicConstraints=critical,CA:FALSE` to `openssl req`"
            ),
            Self::ChainOutOfOrder { position, .. } => write!(
                f,
                "certificate {position} in {path} is not followed by its issuer; order the file \
                 leaf first, each certificate followed by the one that issued it"
            ),
            Self::MissingIntermediate { position, issuer, .. } => write!(
                f,
                "the issuer of certificate {position} in {path} ({issuer}) is not in the file; \
                 unless it is a root that clients have, append its certificate"
            ),
            Self::DhParameters { .. } => f.write_str(DH_PARAMETERS_UNUSED),
            Self::KeyReadableByOthers { mode, .. } => exposed(f, "private key", self.path(), *mode),
            Self::SecretReadableByOthers { mode, .. } => {
                exposed(f, "ticket secret", self.path(), *mode)
            }
            Self::AuthorityExpired { position, not_after, .. } => write!(
                f,
                "certificate {position} in {path} expired at {}, but what it signed is still taken; put \
                 a renewed one in its place, or remove it, and reload",
                Utc(*not_after)
            ),
            Self::LoneSelfSigned { pin, .. } => lone(f, self.path(), pin.as_deref()),
            Self::StapleExpired { .. }
            | Self::StapleForAnotherCertificate { .. }
            | Self::StapleNotGood { .. }
            | Self::StapleNotYetValid { .. }
            | Self::StapleWanted { .. }
            | Self::RevocationListOfAnotherKey { .. }
            | Self::RevocationListExpired { .. } => self.fmt_of_revocation(f),
        }
    }
}

fn lone(f: &mut fmt::Formatter<'_>, path: &Path, pin: Option<&str>) -> fmt::Result {
    let shown = if pin.is_some() { "servers" } else { "clients" };
    write!(
        f,
        "the only certificate in {} is a self-signed authority's: {shown} must show one that it signed, and are refused \
         with itself",
        path.display()
    )?;
    match pin {
        Some(pin) => {
            write!(f, "; for a server that shows it write `pins = [\"{pin}\"]` in place of `roots`")
        }
        None => Ok(()),
    }
}

fn exposed(f: &mut fmt::Formatter<'_>, what: &str, path: &Path, mode: u32) -> fmt::Result {
    let path = path.display();
    write!(
        f,
        "the {what} {path} can be read by every user (mode {mode:04o}); run `chmod o-r {path}`"
    )
}

/// A moment as `2026-11-21 20:56:03 UTC`.
pub struct Utc(pub SystemTime);

impl fmt::Display for Utc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment = OffsetDateTime::from(self.0);
        let (hour, minute, second) = moment.to_hms();
        write!(f, "{} {hour:02}:{minute:02}:{second:02} UTC", moment.date())
    }
}

/// Without the path: many files have them, and one warning says it for all.
const DH_PARAMETERS_UNUSED: &str = "DH parameters in certificate files are not used: keys are exchanged by elliptic curves \
                                    and ML-KEM only; they may stay there";

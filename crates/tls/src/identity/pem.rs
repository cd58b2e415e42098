//! Reads certificate chains and private keys from PEM files, and says what a file that is
//! neither seems to be instead.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::SystemTime;

use kettle_kernel::file_stamp::FileStamp;
use kettle_kernel::keeper;
use rustls_pki_types::pem::{PemObject, SectionKind};
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use zeroize::Zeroizing;

use crate::error::{FileRole, IdentityError};

/// A chain, and whether DH parameters are in its file; and all of the file: the key may be there.
pub(super) struct ChainFile {
    pub(super) chain: Vec<CertificateDer<'static>>,
    pub(super) has_dh_parameters: bool,
    pub(super) text: Zeroizing<Vec<u8>>,
}

/// Reads a server's chain.
pub(super) fn read_chain(file: &OpenedFile<'_>) -> Result<ChainFile, IdentityError> {
    let text = file.read()?;
    let chain = parse_certificates(&text, file.path, FileRole::Chain)?;
    let has_dh_parameters = contains(&text, DH_PARAMETERS_MARK);
    Ok(ChainFile { chain, has_dh_parameters, text })
}

/// Takes the certificates from the text of `path`, in its order; there is at least one.
pub(crate) fn parse_certificates(
    text: &[u8],
    path: &Path,
    role: FileRole,
) -> Result<Vec<CertificateDer<'static>>, IdentityError> {
    refuse_marks(text, path, role)?;
    let mut chain = Vec::new();
    let mut holds_key = false;
    for section in sections(text) {
        let (kind, der) = section.map_err(|error| bad_pem(path, role, &error))?;
        match kind {
            SectionKind::Certificate => chain.push(CertificateDer::from(der)),
            other => holds_key |= is_key(other),
        }
    }
    match chain.is_empty() {
        true => Err(binary(text, path, role).unwrap_or_else(|| no_certificate(path, holds_key))),
        false => Ok(chain),
    }
}

/// Returns the error of a file with a key alone, or with neither.
pub(super) fn no_certificate(path: &Path, holds_key: bool) -> IdentityError {
    let shown = path.display();
    match holds_key {
        true => IdentityError::new(
            path,
            format!("{shown} holds a private key but no certificate"),
            "are the certificate and key settings swapped?",
        ),
        false => IdentityError::new(
            path,
            format!("{shown} has no certificate in it"),
            "it must be PEM with a section that starts with `-----BEGIN CERTIFICATE-----`",
        ),
    }
}

/// Reads revocation lists: any number of them in PEM, or one in DER.
pub(crate) fn read_revocation_lists(
    file: &OpenedFile<'_>,
) -> Result<Vec<CertificateRevocationListDer<'static>>, IdentityError> {
    let OpenedFile { path, role, .. } = *file;
    let text = file.read()?;
    if text.first() == Some(&DER_SEQUENCE) {
        return Ok(vec![text.to_vec().into()]);
    }
    refuse_marks(&text, path, role)?;
    let mut lists = Vec::new();
    for section in sections(&text) {
        let (kind, der) = section.map_err(|error| bad_pem(path, role, &error))?;
        if kind == SectionKind::Crl {
            lists.push(der.into());
        }
    }
    match lists.is_empty() {
        true => Err(IdentityError::new(
            path,
            format!("{} has no revocation list in it", path.display()),
            "it must be one list in DER, or PEM with a section that starts with \
             `-----BEGIN X509 CRL-----`",
        )),
        false => Ok(lists),
    }
}

/// Takes the first private key from the text of `path`.
pub(super) fn parse_key(text: &[u8], path: &Path) -> Result<PrivateKeyDer<'static>, IdentityError> {
    if ENCRYPTED_MARKS.iter().any(|mark| contains(text, mark)) {
        let shown = path.display();
        return Err(IdentityError::new(
            path,
            format!("the private key {shown} is protected by a passphrase"),
            format!("remove it with `openssl pkey -in {shown} -out key.pem`"),
        ));
    }
    refuse_marks(text, path, FileRole::Key)?;
    let mut holds_certificate = false;
    for section in sections(text) {
        let (kind, der) = section.map_err(|error| bad_pem(path, FileRole::Key, &error))?;
        holds_certificate |= kind == SectionKind::Certificate;
        if let Some(key) = PrivateKeyDer::from_pem(kind, der) {
            return Ok(key);
        }
    }
    Err(binary(text, path, FileRole::Key).unwrap_or_else(|| no_key(path, holds_certificate)))
}

fn no_key(path: &Path, holds_certificate: bool) -> IdentityError {
    let shown = path.display();
    match holds_certificate {
        true => IdentityError::new(
            path,
            format!("{shown} holds a certificate but no private key"),
            "name the key's own file",
        ),
        false => IdentityError::new(
            path,
            format!("{shown} has no private key in it"),
            "it must be PEM with a section that starts with `-----BEGIN PRIVATE KEY-----`, \
             `-----BEGIN RSA PRIVATE KEY-----` or `-----BEGIN EC PRIVATE KEY-----`",
        ),
    }
}

type Section = (SectionKind, Vec<u8>);

fn sections(text: &[u8]) -> impl Iterator<Item = Result<Section, rustls_pki_types::pem::Error>> {
    Section::pem_slice_iter(text)
}

fn is_key(kind: SectionKind) -> bool {
    matches!(kind, SectionKind::PrivateKey | SectionKind::RsaPrivateKey | SectionKind::EcPrivateKey)
}

/// Says it in words of our own: those of the decoder have lines of the file in them, which may be a key's.
fn bad_pem(path: &Path, role: FileRole, error: &rustls_pki_types::pem::Error) -> IdentityError {
    use rustls_pki_types::pem::Error;
    let detail = match error {
        Error::MissingSectionEnd { .. } => {
            "a section has no `-----END` line, so the file is cut off"
        }
        Error::IllegalSectionStart { .. } => "a line that begins a section is not whole",
        Error::Base64Decode(_) => "a section is no Base64, so the file is cut off or changed",
        _ => "its sections cannot be told apart",
    };
    let fault = format!("the {role} {} is damaged PEM ({detail})", path.display());
    IdentityError::new(path, fault, COPY_AGAIN)
}

/// A mark of the byte order hides the section behind it from every reader of PEM, in front of the file or, where files were
/// put together, in the middle. In front of other text it hides nothing.
fn refuse_marks(text: &[u8], path: &Path, role: FileRole) -> Result<(), IdentityError> {
    let is_utf16 = text.starts_with(&[0xff, 0xfe]) || text.starts_with(&[0xfe, 0xff]);
    let shown = path.display();
    if is_utf16 {
        let fault = format!("the {role} {shown} is text in UTF-16");
        let advice = format!("run `iconv -f UTF-16 -t ASCII//TRANSLIT {shown}` to convert it");
        return Err(IdentityError::new(path, fault, advice));
    }
    match contains(text, &HIDDEN_SECTION) {
        true => Err(IdentityError::new(
            path,
            format!(
                "the {role} {shown} has a byte order mark (BOM) before a section, which hides it"
            ),
            format!("take it away: `sed -i 's/\\xEF\\xBB\\xBF//' {shown}`"),
        )),
        false => Ok(()),
    }
}

/// A file that may be read, and how it was before anybody read it.
pub(crate) struct OpenedFile<'p> {
    file: File,
    metadata: Metadata,
    at: SystemTime,
    path: &'p Path,
    role: FileRole,
    bytes_max: u64,
}

/// Opens a file and asks what it is. It may be left unread where [`is_still`](OpenedFile::is_still) says so.
pub(crate) fn open(path: &Path, role: FileRole) -> Result<OpenedFile<'_>, IdentityError> {
    let unreadable = |source| unreadable(path, role, &source);
    let at = SystemTime::now();
    #[cfg(test)]
    let at = at + AHEAD.get();
    let file = keeper::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(unreadable(io::Error::other("not a regular file")));
    }
    let bytes_max = match role {
        FileRole::RevocationList => REVOCATION_LIST_BYTES_MAX,
        FileRole::TicketSecret => TICKET_SECRET_BYTES_MAX,
        FileRole::Staple => STAPLE_BYTES_MAX,
        _ => FILE_BYTES_MAX,
    };
    if metadata.len() > bytes_max {
        let shown = path.display();
        let fault = format!("{shown} is longer than {bytes_max} bytes, so it is hardly the {role}");
        return Err(IdentityError::new(path, fault, "check the path"));
    }
    Ok(OpenedFile { file, metadata, at, path, role, bytes_max })
}

fn unreadable(path: &Path, role: FileRole, source: &io::Error) -> IdentityError {
    let advice = match source.kind() {
        io::ErrorKind::NotFound => "check the path",
        io::ErrorKind::PermissionDenied => {
            "let the user kettle starts as read the file and enter its directories"
        }
        _ => "name a regular file",
    };
    let fault = format!("cannot read the {role} {}: {source}", path.display());
    IdentityError::new(path, fault, advice)
}

impl OpenedFile<'_> {
    /// The permission bits.
    pub(crate) fn mode(&self) -> u32 {
        self.metadata.permissions().mode() & 0o7777
    }

    /// Returns the stamp of the file with which its content may stand for it later; nothing if it changed just now.
    pub(crate) fn stamp(&self) -> Option<FileStamp> {
        Some(FileStamp::of(&self.metadata)).filter(|stamp| stamp.has_settled(self.at))
    }

    /// True if what was read when the file had this stamp is what reading it again would give.
    pub(crate) fn is_still(&self, stamp: Option<FileStamp>) -> bool {
        stamp == Some(FileStamp::of(&self.metadata))
    }

    /// Reads at most what its role allows, so that a wrong path (a device, a disk image) cannot fill the
    /// memory, into bytes that are wiped when dropped.
    pub(crate) fn read(&self) -> Result<Zeroizing<Vec<u8>>, IdentityError> {
        let Self { file, metadata, path, role, bytes_max, .. } = self;
        #[cfg(test)]
        READ.with_borrow_mut(|read| read.push(path.to_path_buf()));
        // The exact capacity keeps the vector from growing and leaving copies of a key behind.
        let capacity = usize::try_from(metadata.len()).unwrap_or(0) + 1;
        let mut bytes = Zeroizing::new(Vec::with_capacity(capacity));
        file.take(*bytes_max)
            .read_to_end(&mut bytes)
            .map_err(|source| unreadable(path, *role, &source))?;
        Ok(bytes)
    }
}

#[cfg(test)]
thread_local! {
    /// The time by which this thread's clock is ahead: tests do not wait until a file has settled.
    pub(crate) static AHEAD: std::cell::Cell<std::time::Duration> = const { std::cell::Cell::new(std::time::Duration::ZERO) };
    /// The files that this thread has read.
    pub(crate) static READ: std::cell::RefCell<Vec<std::path::PathBuf>> = const { std::cell::RefCell::new(Vec::new()) };
}

/// Returns the error of a file that seems to be binary. Certificates, most keys and PKCS#12 bundles are DER sequences with a
/// long-form length; a bundle starts with version 3 (RFC 7292 §4), a short key with version 0 or 1 (RFC 5958 §2).
fn binary(bytes: &[u8], path: &Path, role: FileRole) -> Option<IdentityError> {
    let shown = path.display();
    match bytes {
        [0x30, 0x82, _, _, 0x02, 0x01, 0x03, ..] => Some(IdentityError::new(
            path,
            format!("{shown} looks like a PKCS#12 bundle"),
            format!(
                "convert it with `openssl pkcs12 -in {shown} -nodes -out identity.pem` and name \
                 that file for both the certificate and the key"
            ),
        )),
        [0x30, 0x81..=0x84, ..] | [0x30, _, 0x02, 0x01, 0 | 1, ..] => {
            let tool = if role == FileRole::Key { "pkey" } else { "x509" };
            Some(IdentityError::new(
                path,
                format!("the {role} {shown} looks like DER, not PEM"),
                format!(
                    "convert it with `openssl {tool} -inform der -in {shown} -out {shown}.pem`"
                ),
            ))
        }
        _ => None,
    }
}

fn contains(text: &[u8], mark: &[u8]) -> bool {
    text.windows(mark.len()).any(|window| window == mark)
}

/// The advice on a file that is damaged.
pub(crate) const COPY_AGAIN: &str = "copy the file again from its source";

const DH_PARAMETERS_MARK: &[u8] = b"-----BEGIN DH PARAMETERS-----";

/// PKCS#8 with a passphrase, and the older form that says so in a header.
const ENCRYPTED_MARKS: [&[u8]; 2] = [b"BEGIN ENCRYPTED PRIVATE KEY", b"Proc-Type: 4,ENCRYPTED"];

/// Chains are a few KiB; the longest RSA keys are about 13 KiB.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// About 40 bytes for each certificate that a large authority has revoked.
const REVOCATION_LIST_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// A secret needs 32.
const TICKET_SECRET_BYTES_MAX: u64 = 4_096;

/// A response is an extension of a certificate's entry, all of which have 64 KiB (RFC 8446 §4.4.2). Usual ones have 2 KiB.
const STAPLE_BYTES_MAX: u64 = 32 * 1024;

const DER_SEQUENCE: u8 = 0x30;

/// U+FEFF in UTF-8, before a section.
const HIDDEN_SECTION: [u8; 8] = *b"\xef\xbb\xbf-----";

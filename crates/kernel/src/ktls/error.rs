//! Why the kernel would not take a socket: a value to count and show, never a silent fallback.

use std::fmt;
use std::io;

/// The step at which the kernel refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KtlsStep {
    /// Attaching the TLS protocol; the connection goes on in user space.
    Attach,
    /// Installing the keys of what we send; the socket must be closed.
    InstallTx,
    /// Installing the keys of what we receive.
    InstallRx,
}

/// The kernel's refusal, with the step at which it came.
#[derive(Debug)]
pub struct KtlsError {
    /// The step that was asked for.
    pub step: KtlsStep,
    /// The error of the kernel.
    pub error: io::Error,
}

impl KtlsError {
    /// A stable label for logs and metrics.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        let installing = self.step != KtlsStep::Attach;
        match self.error.raw_os_error() {
            // ENOPROTOOPT on attach: a kernel before 4.13, which does not know TCP_ULP at all.
            Some(libc::ENOENT | libc::ENOPROTOOPT) if !installing => "ulp_missing",
            Some(libc::EEXIST) if !installing => "ulp_in_use",
            // The error that `attach` itself answers, whatever the kernel would say.
            Some(libc::EPROTONOSUPPORT) if !installing => "multipath_tcp",
            // 7.x answers EINVAL for a socket in a sockmap.
            Some(libc::EOPNOTSUPP | libc::EINVAL) if !installing => "socket_unsupported",
            Some(libc::ENOENT) => "cipher_missing",
            Some(libc::ENOPROTOOPT) => "not_attached",
            Some(libc::EBUSY) => "rekey_unsupported",
            Some(libc::EINVAL | libc::EOPNOTSUPP) => "suite_unsupported",
            Some(libc::ENOTCONN) => "not_connected",
            Some(libc::EPERM | libc::EACCES) => "denied",
            Some(libc::ENOMEM | libc::ENOBUFS) => "no_memory",
            _ => "other",
        }
    }
}

impl KtlsError {
    /// Returns the words for a person: `this kernel has no kTLS, or the tls module is not loaded`.
    #[must_use]
    pub fn in_words(&self) -> String {
        let words = match self.reason() {
            "ulp_missing" => "this kernel has no kTLS, or the tls module is not loaded",
            "cipher_missing" => CIPHER_MISSING,
            "rekey_unsupported" => "this kernel cannot change keys (Linux 6.14 can)",
            "suite_unsupported" => SUITE_UNSUPPORTED,
            "denied" => "not allowed: a sandbox or a security module forbids it",
            _ => return self.to_string(),
        };
        match self.error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::InvalidInput => words.to_owned(),
            _ => format!("{words}: {}", self.error),
        }
    }
}

impl fmt::Display for KtlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let call = match self.step {
            KtlsStep::Attach => "setsockopt(TCP_ULP, \"tls\")",
            KtlsStep::InstallTx => "setsockopt(SOL_TLS, TLS_TX)",
            KtlsStep::InstallRx => "setsockopt(SOL_TLS, TLS_RX)",
        };
        write!(f, "{call}: {}: {}", self.reason(), self.error)
    }
}

impl std::error::Error for KtlsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// [`KtlsError::in_words`] where a module would help.
pub const CIPHER_MISSING: &str = "the kernel's module for this cipher is not loaded";
/// The words for a suite that only another kernel would carry.
pub const SUITE_UNSUPPORTED: &str = "this kernel does not know this version with this cipher";

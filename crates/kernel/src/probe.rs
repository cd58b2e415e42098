//! A real probe on loopback of what this kernel carries: each version, cipher and direction, rekeying, and sendfile and
//! splice on top. It runs once at start-up and in `kettle doctor`; it sends about a hundred kilobytes.

pub(crate) mod loopback;
mod suite;
#[cfg(test)]
mod tests;
mod transfers;

pub use suite::SuiteCapability;

use std::os::fd::AsFd;

use crate::ktls::{self, Cipher, RecordDirection, Version};
use crate::process;

/// The outcome of a probe: it works, or why not in words for an operator.
pub type ProbeOutcome = Result<(), String>;

/// The capabilities of this kernel, as found by trying it.
#[derive(Clone, Debug)]
pub struct Capabilities {
    /// The release of the kernel that was probed.
    pub kernel_release: String,
    /// Tells whether `tls` is among the TCP upper-layer protocols; `None` where the kernel does not
    /// list them.
    pub ulp_listed: Option<bool>,
    /// Each version with each cipher.
    pub suites: Vec<SuiteCapability>,
    /// Sending file pages through a kernel TLS socket.
    pub sendfile: ProbeOutcome,
    /// Splicing a pipe into a kernel TLS socket.
    pub splice: ProbeOutcome,
    /// `TLS_TX_ZEROCOPY_RO`, which matters only to network cards that encrypt. Linux 5.19.
    pub zero_copy_read_only: ProbeOutcome,
    /// `TLS_TX_MAX_PAYLOAD_LEN`. Linux 6.19.
    pub max_payload_length: ProbeOutcome,
}

impl Capabilities {
    /// Probes the running kernel. It must run before privileges are dropped: loading the module and the ciphers on first
    /// use needs them. No step waits longer than a fixed time.
    #[must_use]
    pub fn run() -> Self {
        // Before the list of protocols is read: the first attempt loads the module where it may.
        let suites: Vec<_> = Version::ALL
            .into_iter()
            .flat_map(|version| Cipher::ALL.map(|cipher| suite::probe(version, cipher)))
            .collect();
        let carried = suites.iter().find(|suite| suite.tx.is_ok());
        let on_top = |step: fn(Version, Cipher) -> ProbeOutcome| match carried {
            Some(suite) => step(suite.version, suite.cipher),
            None => Err("nothing is encrypted by the kernel".to_owned()),
        };
        Self {
            kernel_release: process::kernel_release(),
            ulp_listed: ulp_listed(),
            sendfile: on_top(transfers::sendfile),
            splice: on_top(transfers::splice),
            zero_copy_read_only: on_top(zero_copy_read_only),
            max_payload_length: on_top(max_payload_length),
            suites,
        }
    }

    /// Returns the findings about one version with one cipher.
    #[must_use]
    pub fn suite(&self, version: Version, cipher: Cipher) -> Option<&SuiteCapability> {
        self.suites.iter().find(|suite| suite.version == version && suite.cipher == cipher)
    }

    /// True if the kernel encrypts what is sent with this version and cipher.
    #[must_use]
    pub fn carries_tx(&self, version: Version, cipher: Cipher) -> bool {
        self.suite(version, cipher).is_some_and(|suite| suite.tx.is_ok())
    }

    /// True if every TLS 1.3 suite that the kernel carries can change its keys (Linux 6.14).
    #[must_use]
    pub fn carries_rekey(&self) -> bool {
        let mut carried =
            self.suites.iter().filter(|s| s.version == Version::Tls13 && s.tx.is_ok()).peekable();
        carried.peek().is_some() && carried.all(|suite| suite.rekey.is_ok())
    }

    /// Why the kernel encrypts nothing at all; `None` if it carries at least one suite.
    #[must_use]
    pub fn tx_reason(&self) -> Option<String> {
        if self.suites.iter().any(|suite| suite.tx.is_ok()) {
            return None;
        }
        let first = self.suites.iter().find_map(|suite| suite.tx.as_ref().err());
        Some(first.cloned().unwrap_or_else(|| "nothing was probed".to_owned()))
    }
}

fn ulp_listed() -> Option<bool> {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_ulp").ok()?;
    Some(text.split_ascii_whitespace().any(|name| name == "tls"))
}

fn zero_copy_read_only(version: Version, cipher: Cipher) -> ProbeOutcome {
    let (sender, _receiver) = suite::sending_pair(version, cipher)?;
    ktls::allow_zero_copy_sendfile(sender.as_fd())
        .map_err(|error| format!("TLS_TX_ZEROCOPY_RO: {error}"))
}

fn max_payload_length(version: Version, cipher: Cipher) -> ProbeOutcome {
    let (sender, _receiver) = suite::sending_pair(version, cipher)?;
    ktls::limit_payload(sender.as_fd(), ktls::RECORD_PAYLOAD_BYTES_MAX / 2)
        .map_err(|error| format!("TLS_TX_MAX_PAYLOAD_LEN: {error}"))
}

/// Checks that the socket's record number is what the records sent so far make it.
fn check_sequence(
    fd: std::os::fd::BorrowedFd<'_>,
    version: Version,
    cipher: Cipher,
    expected: u64,
) -> ProbeOutcome {
    match ktls::sequence(fd, RecordDirection::Tx, version, cipher) {
        Ok(found) if found == expected => Ok(()),
        Ok(found) => Err(format!("record number {found} after {expected} records")),
        Err(error) => Err(format!("getsockopt(TLS_TX): {error}")),
    }
}

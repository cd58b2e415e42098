//! Decides whether a connection may move what it sends into the kernel, and what is learned when one tries.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use kettle_kernel::ktls::KtlsStep;
use kettle_kernel::probe::Capabilities;
use kettle_tls::stream::{KeyChanges, OffloadError, StreamError};
use kettle_tls::{Cipher, Session, Version};

use crate::metrics::WorkerMetrics;
use crate::tx_path::Reason;
use crate::tx_path::switch::TxPathSwitch;

/// The knowledge on moving into the kernel: from the probe, from the operator, from those that tried.
pub struct Offloads {
    capabilities: Arc<Capabilities>,
    tx_path_switch: Arc<TxPathSwitch>,
    metrics: Arc<WorkerMetrics>,
}

impl Offloads {
    /// Begins with what the probe found and what the operator wants.
    pub fn new(
        capabilities: Arc<Capabilities>,
        tx_path_switch: Arc<TxPathSwitch>,
        metrics: Arc<WorkerMetrics>,
    ) -> Self {
        Self { capabilities, tx_path_switch, metrics }
    }

    /// Why a connection had better not try. A plain connection has no session, and nothing in its way.
    pub fn obstacle(&self, session: Option<&Session>) -> Option<Reason> {
        let session = session?;
        if self.tx_path_switch.is_user_only() {
            return Some(Reason::KillSwitch);
        }
        if !self.capabilities.carries_tx(session.version, session.cipher) {
            return Some(Reason::KernelLacksSuite);
        }
        if OPEN_CIRCUITS.load(Ordering::Relaxed) & suite_bit(Some(session)) != 0 {
            return Some(Reason::CircuitOpen);
        }
        None
    }

    /// As [`obstacle`](Self::obstacle), for what comes through a pipe.
    pub fn splice_obstacle(&self, session: Option<&Session>) -> Option<Reason> {
        let lacks_splice = session.is_some() && self.capabilities.splice.is_err();
        self.obstacle(session).or_else(|| lacks_splice.then_some(Reason::KernelLacksSplice))
    }

    /// True if this kernel changes keys (Linux 6.14).
    pub fn can_rekey(&self) -> bool {
        self.capabilities.carries_rekey()
    }

    /// Counts what came of an attempt; returns why the connection stays in user space, if it does.
    ///
    /// # Errors
    /// The connection has ended.
    pub fn conclude(
        &self,
        session: Option<&Session>,
        outcome: Result<(), OffloadError>,
    ) -> Result<Option<Reason>, StreamError> {
        match outcome {
            Ok(()) => {
                if session.is_some() {
                    self.metrics.switched();
                }
                Ok(None)
            }
            Err(OffloadError::Refused(refusal)) => {
                self.metrics.refused(refusal.reason());
                Ok(Some(Reason::Refused(refusal.reason())))
            }
            Err(OffloadError::Ended(error)) => {
                if let StreamError::Kernel(refusal) = &error {
                    self.metrics.refused(refusal.reason());
                    if refusal.step == KtlsStep::InstallTx {
                        open_circuit(suite_bit(session), refusal.reason());
                    }
                }
                Err(error)
            }
        }
    }

    /// Counts how often the keys of a connection that has ended had changed. A change that the kernel refused there ends
    /// connections as at the switch, and is tried no more either.
    pub fn keys_changed(&self, session: Option<&Session>, changes: KeyChanges) {
        self.metrics.keys_changed(changes);
        if let Some(reason) = changes.refused {
            self.metrics.refused(reason);
            open_circuit(suite_bit(session), reason);
        }
    }

    /// Counts a direction of a tunnel that did not take the preferred path.
    pub fn not_preferred(&self, reason: Reason) {
        self.metrics.not_preferred(reason);
    }
}

/// One failed key installation ends one connection; trying again would end every one.
fn open_circuit(suite: u8, reason: &'static str) {
    let before = OPEN_CIRCUITS.fetch_or(suite, Ordering::Relaxed);
    if before & suite == 0 {
        tracing::warn!(
            reason,
            "the kernel accepted kTLS but not the key: this suite stays in user space until restart"
        );
    }
}

/// Suites whose offload failed half-way in this process, one bit each.
static OPEN_CIRCUITS: AtomicU8 = AtomicU8::new(0);

fn suite_bit(session: Option<&Session>) -> u8 {
    let Some(session) = session else { return 0 };
    let version = match session.version {
        Version::Tls12 => 0,
        Version::Tls13 => 3,
    };
    let cipher = match session.cipher {
        Cipher::Aes128Gcm => 0,
        Cipher::Aes256Gcm => 1,
        Cipher::Chacha20Poly1305 => 2,
    };
    1 << (version + cipher)
}

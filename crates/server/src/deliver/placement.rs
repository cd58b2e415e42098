//! Where records are encrypted: what is wanted, what is possible, and why not.

use kettle_config::PathChoice;
use kettle_kernel::ktls::Step;
use kettle_tls::stream::{OffloadError, StreamError};
use kettle_tls::{Cipher, Session, Version};
use std::sync::atomic::{AtomicU8, Ordering};

use super::{Delivery, DeliveryError};
use crate::path::{Path, Reason};

/// What is to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Demand {
    /// How much, heads not counted.
    pub bytes: u64,
    /// Whether it comes from a file.
    pub is_file: bool,
    /// Whether nothing comes after it.
    pub is_last: bool,
}

/// What the configuration prefers.
#[derive(Clone, Copy, Debug)]
pub struct Preference {
    /// The path setting of the site, or of the listener.
    pub choice: PathChoice,
    /// With `auto`: the body size from which the kernel takes over, in bytes.
    pub crossover_bytes: u64,
}

impl Preference {
    /// Whether what is to be sent should move the connection into the kernel.
    fn wants_kernel(self, demand: Demand) -> bool {
        match self.choice {
            PathChoice::User => false,
            // Setting up the kernel costs more than one small response can win back.
            PathChoice::Auto => {
                demand.bytes >= self.crossover_bytes && (!demand.is_last || demand.bytes > 0)
            }
            PathChoice::KernelWrite | PathChoice::KernelSendfile => true,
        }
    }

    /// How it is sent on a connection that the kernel encrypts.
    fn kernel_path(self, demand: Demand) -> Path {
        match self.choice {
            PathChoice::KernelSendfile if demand.is_file => Path::KernelSendfile,
            PathChoice::Auto if demand.is_file && demand.bytes >= self.crossover_bytes => {
                Path::KernelSendfile
            }
            _ => Path::KernelWrite,
        }
    }
}

impl Delivery<'_> {
    /// Decides the path, moving the connection into the kernel if that is what it takes.
    pub(super) async fn choose_path(
        &mut self,
        demand: Demand,
        preference: Preference,
    ) -> Result<(), DeliveryError> {
        if !self.stream.is_offloaded() && preference.wants_kernel(demand) {
            self.delivered.reason = self.offload().await?;
            if let Some(reason) = self.delivered.reason {
                self.worker.metrics.not_preferred(reason);
            }
        }
        if !self.stream.is_offloaded() {
            return Ok(());
        }
        let path = preference.kernel_path(demand);
        let lacks_file = preference.choice == PathChoice::KernelSendfile
            && path == Path::KernelWrite
            && demand.bytes > 0;
        if lacks_file {
            self.delivered.reason = Some(Reason::NotAFile);
        }
        self.delivered.path = path;
        Ok(())
    }

    /// Moves the connection into the kernel, or says why it stays.
    async fn offload(&mut self) -> Result<Option<Reason>, DeliveryError> {
        let worker = self.worker;
        let session = self.stream.session();
        let suite = suite_bit(session);
        if worker.kill_switch.is_user_only() {
            return Ok(Some(Reason::KillSwitch));
        }
        if !worker.capabilities.carries_tx(session.version, session.cipher) {
            return Ok(Some(Reason::KernelLacksSuite));
        }
        if OPEN_CIRCUITS.load(Ordering::Relaxed) & suite != 0 {
            return Ok(Some(Reason::CircuitOpen));
        }
        let can_rekey = worker.capabilities.carries_rekey();
        let offloaded = self
            .deadline
            .within(self.write_timeout, |context| self.stream.poll_offload(context, can_rekey))
            .await?;
        match offloaded {
            Ok(()) => {
                worker.metrics.switched();
                Ok(None)
            }
            Err(OffloadError::Refused(refusal)) => {
                worker.metrics.refused(refusal.reason());
                Ok(Some(Reason::Refused(refusal.reason())))
            }
            Err(OffloadError::Ended(error)) => {
                if let StreamError::Kernel(refusal) = &error {
                    worker.metrics.refused(refusal.reason());
                    if refusal.step == Step::InstallTx {
                        open_circuit(suite, refusal.reason());
                    }
                }
                Err(error.into())
            }
        }
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

fn suite_bit(session: &Session) -> u8 {
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

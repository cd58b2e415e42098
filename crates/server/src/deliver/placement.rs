//! The place where records are encrypted: what is wanted, what is possible, and why not.

use kettle_config::TxPathChoice;
use kettle_runtime::tx_path::{Reason, TxPath};
use kettle_tls::stream::StreamError;

use super::{Delivery, DeliveryError};

/// The content to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Demand {
    /// The number of bytes, heads not counted.
    pub bytes: u64,
    /// True if it comes from a file.
    pub is_file: bool,
    /// True if nothing comes after it.
    pub is_last: bool,
}

/// The preference of the configuration.
#[derive(Clone, Copy, Debug)]
pub struct PathPreference {
    /// The path setting of the site, or of the listener.
    pub choice: TxPathChoice,
    /// With `auto`: the body size from which the kernel takes over, in bytes.
    pub crossover_bytes: u64,
    /// Why the kernel cannot encrypt on this connection, whatever it can on others.
    pub obstacle: Option<Reason>,
}

impl PathPreference {
    /// True if what is to be sent should move the connection into the kernel.
    pub(crate) fn wants_kernel(self, demand: Demand) -> bool {
        match self.choice {
            TxPathChoice::User => false,
            // Setting up the kernel costs more than one small response can win back. A last response that is only a head has no
            // bytes to win it back with, however low the crossover.
            TxPathChoice::Auto => {
                demand.bytes >= self.crossover_bytes && (!demand.is_last || demand.bytes > 0)
            }
            TxPathChoice::KernelWrite | TxPathChoice::KernelSendfile => true,
        }
    }

    /// Returns the path by which it is sent on a connection that the kernel encrypts.
    fn kernel_path(self, demand: Demand) -> TxPath {
        match self.choice {
            TxPathChoice::KernelSendfile if demand.is_file => TxPath::KernelSendfile,
            TxPathChoice::Auto if demand.is_file && demand.bytes >= self.crossover_bytes => {
                TxPath::KernelSendfile
            }
            _ => TxPath::KernelWrite,
        }
    }
}

impl Delivery<'_> {
    /// Decides the path, moving the connection into the kernel if that is what it takes.
    pub(super) async fn choose_tx_path(&mut self, demand: Demand) -> Result<(), DeliveryError> {
        let preference = self.preference;
        if self.stream.is_plain() {
            let by_sendfile = demand.is_file && demand.bytes >= PLAIN_SENDFILE_BYTES_MIN;
            self.delivered.path =
                if by_sendfile { TxPath::KernelSendfile } else { TxPath::KernelWrite };
            return Ok(());
        }
        // While a backend was waited for, the peer may have asked for a key that the kernel cannot change to.
        if self.stream.is_key_refused() {
            return Err(StreamError::KeyExhausted.into());
        }
        if self.stream.is_offloaded() {
            let is_unwanted = preference.choice == TxPathChoice::User;
            self.delivered.reason = is_unwanted.then_some(Reason::AlreadyOffloaded);
        } else if preference.wants_kernel(demand) {
            self.delivered.reason = match preference.obstacle {
                None => self.offload().await?,
                obstacle => obstacle,
            };
        }
        if !self.stream.is_offloaded() {
            return Ok(());
        }
        let path = preference.kernel_path(demand);
        let lacks_file = preference.choice == TxPathChoice::KernelSendfile
            && path == TxPath::KernelWrite
            && demand.bytes > 0;
        if lacks_file {
            self.delivered.reason = Some(Reason::NotAFile);
        }
        self.delivered.path = path;
        Ok(())
    }

    /// Moves the connection into the kernel, or says why it stays.
    async fn offload(&mut self) -> Result<Option<Reason>, DeliveryError> {
        let offloads = &self.sending.worker.offloads;
        if let Some(obstacle) = offloads.obstacle(self.stream.session()) {
            return Ok(Some(obstacle));
        }
        let can_rekey = offloads.can_rekey();
        let offloaded = self
            .sending
            .deadline
            .within(self.sending.write_timeout, |context| {
                self.stream.poll_offload(context, can_rekey)
            })
            .await?;
        Ok(offloads.conclude(self.stream.session(), offloaded)?)
    }
}

/// Over a plain connection, less of a file than this is read and written with its head, by two calls.
const PLAIN_SENDFILE_BYTES_MIN: u64 = 16 * 1_024;

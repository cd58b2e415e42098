//! Where a response's records are encrypted: what is wanted, what is possible, and why not.

use kettle_config::PathChoice;
use kettle_kernel::ktls::Step;
use kettle_tls::stream::{OffloadError, StreamError, TlsStream};
use kettle_tls::{Cipher, Session, Version};
use std::sync::atomic::{AtomicU8, Ordering};

use super::{Delivery, DeliveryError, Sender};
use crate::answer::{Body, Response};
use crate::path::{Path, Reason};

/// What the configuration prefers for a response.
#[derive(Clone, Copy, Debug)]
pub struct Preference {
    /// The path setting of the site, or of the listener.
    pub choice: PathChoice,
    /// With `auto`: the body size from which the kernel takes over, in bytes.
    pub crossover_bytes: u64,
}

impl Preference {
    /// Whether a response should move the connection into the kernel.
    fn wants_kernel(self, body_bytes: u64, closes: bool) -> bool {
        match self.choice {
            PathChoice::User => false,
            // Setting up the kernel costs more than one small response can win back.
            PathChoice::Auto => body_bytes >= self.crossover_bytes && (!closes || body_bytes > 0),
            PathChoice::KernelWrite | PathChoice::KernelSendfile => true,
        }
    }

    /// How a body is sent on a connection that the kernel encrypts.
    fn kernel_path(self, response: &Response, body_bytes: u64) -> Path {
        let is_file = matches!(response.body, Body::File { .. } | Body::Parts(_));
        match self.choice {
            PathChoice::KernelSendfile if is_file => Path::KernelSendfile,
            PathChoice::Auto if is_file && body_bytes >= self.crossover_bytes => {
                Path::KernelSendfile
            }
            _ => Path::KernelWrite,
        }
    }
}

/// Decides the path of a response, moving the connection into the kernel if that is what it takes.
pub(super) async fn place(
    sender: &Sender<'_>,
    stream: &mut TlsStream,
    response: &Response,
    body_bytes: u64,
    preference: Preference,
    delivery: &mut Delivery,
) -> Result<Path, DeliveryError> {
    if !stream.is_offloaded() && preference.wants_kernel(body_bytes, response.closes) {
        delivery.reason = offload(sender, stream).await?;
        if let Some(reason) = delivery.reason {
            sender.worker.metrics.not_preferred(reason);
        }
    }
    if !stream.is_offloaded() {
        return Ok(Path::User);
    }
    let path = preference.kernel_path(response, body_bytes);
    let lacks_file = preference.choice == PathChoice::KernelSendfile
        && path == Path::KernelWrite
        && body_bytes > 0;
    if lacks_file {
        delivery.reason = Some(Reason::NotAFile);
    }
    Ok(path)
}

/// Moves a connection into the kernel, or says why it stays.
async fn offload(
    sender: &Sender<'_>,
    stream: &mut TlsStream,
) -> Result<Option<Reason>, DeliveryError> {
    let worker = sender.worker;
    let session = stream.session();
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
    let offloaded = sender
        .watch
        .within(sender.write_timeout, |context| stream.poll_offload(context, can_rekey))
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

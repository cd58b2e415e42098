//! Where records are encrypted on this machine, in one line for the operator.

use std::fmt::Write as _;

use kettle_config::{Config, Listener, PathChoice};
use kettle_kernel::netlink::{self, Offload};
use kettle_kernel::probe::Capabilities;
use kettle_tls::{Cipher, Version};

use kettle_server::kill_switch::Placement;

/// The line, from what is configured and what the kernel carries.
pub(super) fn line(
    config: &Config,
    capabilities: &Capabilities,
    obstacle: Option<&str>,
    placement: Placement,
) -> String {
    let mut https = config.listeners.iter().filter_map(Listener::https);
    let chosen = https.find(|one| one.path != PathChoice::User);
    let Some(listener) = chosen else {
        return "TLS: user space — as configured".to_owned();
    };
    if placement == Placement::User {
        return "TLS: user space — switched off (kettle ctl path auto switches it on)".to_owned();
    }
    if let Some(obstacle) = obstacle {
        return format!(
            "TLS: user space — this kernel has no kTLS ({obstacle}); see kettle doctor"
        );
    }
    let how = match listener.path {
        PathChoice::Auto => format!("auto — kernel sendfile from {}", size(listener.crossover)),
        PathChoice::KernelWrite => "kernel-write".to_owned(),
        PathChoice::KernelSendfile => "kernel-sendfile".to_owned(),
        PathChoice::User => "user".to_owned(),
    };
    let mut carried = String::new();
    for (cipher, name) in CIPHERS {
        if Version::ALL.iter().any(|version| capabilities.carries_tx(*version, cipher)) {
            let separator = if carried.is_empty() { "" } else { ", " };
            let _ = write!(carried, "{separator}{name}");
        }
    }
    let rekey = yes_or_no(capabilities.carries_rekey());
    let network_card = yes_or_no(has_offloading_card());
    format!("TLS: {how} ({carried}; rekey: {rekey}; NIC: {network_card})")
}

fn has_offloading_card() -> bool {
    let cards = netlink::network_cards().unwrap_or_default();
    cards.iter().any(|card| card.tls_tx == Offload::On)
}

fn yes_or_no(answer: bool) -> &'static str {
    if answer { "yes" } else { "no" }
}

/// A size in the largest unit that divides it.
fn size(bytes: u64) -> String {
    const KIB: u64 = 1024;
    const MIB: u64 = 1024 * KIB;
    match bytes {
        0 => "the first byte".to_owned(),
        _ if bytes.is_multiple_of(MIB) => format!("{} MiB", bytes / MIB),
        _ if bytes.is_multiple_of(KIB) => format!("{} KiB", bytes / KIB),
        _ => format!("{bytes} bytes"),
    }
}

const CIPHERS: [(Cipher, &str); 3] = [
    (Cipher::Aes128Gcm, "AES-128-GCM"),
    (Cipher::Aes256Gcm, "AES-256-GCM"),
    (Cipher::Chacha20Poly1305, "ChaCha20"),
];

#[cfg(test)]
mod tests;

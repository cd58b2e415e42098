//! Where records are encrypted on this machine, in one line for the operator.

use std::fmt::Write as _;

use kettle_config::{Config, Listener, ListenerKind, TunnelPathChoice, TxPathChoice};
use kettle_kernel::netlink::{self, Offload};
use kettle_kernel::probe::Capabilities;
use kettle_tls::{Cipher, Version};

use kettle_server::kill_switch::SwitchPosition;

/// The line, from what is configured and what the kernel carries.
pub(super) fn line(
    config: &Config,
    capabilities: &Capabilities,
    obstacle: Option<&str>,
    placement: SwitchPosition,
) -> String {
    let ours: Vec<_> = config.listeners.iter().filter(|it| speaks_tls(config, it)).collect();
    if ours.is_empty() {
        return "TLS: goes through as it is".to_owned();
    }
    let Some(how) = ours.into_iter().find_map(how) else {
        return "TLS: user space — as configured".to_owned();
    };
    if placement == SwitchPosition::User {
        return "TLS: user space — switched off (kettle ctl path auto switches it on)".to_owned();
    }
    if let Some(obstacle) = obstacle {
        return format!(
            "TLS: user space — this kernel has no kTLS ({obstacle}); see kettle doctor"
        );
    }
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

/// Whether TLS ends or begins here for a listener's connections.
fn speaks_tls(config: &Config, listener: &Listener) -> bool {
    match &listener.kind {
        ListenerKind::Https(_) | ListenerKind::Tls(_) => true,
        ListenerKind::Redirect(_) | ListenerKind::Passthrough(_) => false,
        ListenerKind::Tcp(tcp) => {
            config.backends.iter().any(|it| it.name == tcp.backend && it.tls.is_some())
        }
    }
}

/// How a listener's connections move into the kernel, if they may.
fn how(listener: &Listener) -> Option<String> {
    let of_tunnel = |path: TunnelPathChoice, crossover| match path {
        TunnelPathChoice::Auto => Some(format!("auto — kernel splice from {}", size(crossover))),
        TunnelPathChoice::KernelSplice => Some("kernel-splice".to_owned()),
        TunnelPathChoice::User => None,
    };
    match &listener.kind {
        ListenerKind::Https(https) => match https.path {
            TxPathChoice::Auto => {
                Some(format!("auto — kernel sendfile from {}", size(https.crossover)))
            }
            TxPathChoice::KernelWrite => Some("kernel-write".to_owned()),
            TxPathChoice::KernelSendfile => Some("kernel-sendfile".to_owned()),
            TxPathChoice::User => None,
        },
        ListenerKind::Tls(tls) => of_tunnel(tls.path, tls.crossover),
        ListenerKind::Tcp(tcp) => of_tunnel(tcp.path, tcp.crossover),
        ListenerKind::Redirect(_) | ListenerKind::Passthrough(_) => None,
    }
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

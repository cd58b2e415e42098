//! Says where records are encrypted on this machine, in one line for the operator.

use std::collections::HashSet;
use std::fmt::Write as _;

use kettle_config::{Config, Listener, ListenerKind, TunnelPathChoice, TxPathChoice};
use kettle_kernel::netlink::{self, Offload};
use kettle_kernel::probe::Capabilities;
use kettle_runtime::tx_path::switch::TxPathOverride;
use kettle_tls::{Cipher, Version};

use crate::prepare::PASSTHROUGH_CROSSOVER;

/// The line, from what is configured and what the kernel carries.
pub(super) fn line(
    config: &Config,
    capabilities: &Capabilities,
    obstacle: Option<&str>,
    position: TxPathOverride,
) -> String {
    let speaking = config.backends.iter().filter(|backend| backend.tls.is_some());
    let speaking: HashSet<&str> = speaking.map(|backend| backend.name.value.as_str()).collect();
    let ways: Vec<_> = config.listeners.iter().filter_map(|it| way(&speaking, it)).collect();
    let ours: Vec<_> = ways.iter().filter(|way| way.speaks_tls).collect();
    if ours.is_empty() {
        return match joined(&ways) {
            ways if ways.is_empty() => "TLS: none here".to_owned(),
            ways => format!("TLS: goes through as it is ({ways})"),
        };
    }
    if ours.iter().all(|way| way.how == USER_SPACE) {
        return format!("TLS: {USER_SPACE} — as configured");
    }
    if position == TxPathOverride::User {
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
    format!("TLS: {} ({carried}; rekey: {rekey}; NIC: {network_card})", joined(&ways))
}

/// The way of a listener's connections into the kernel.
struct Way {
    kind: &'static str,
    /// True if TLS ends or begins here.
    speaks_tls: bool,
    how: String,
}

/// The way of a listener that carries or answers more than redirects. TLS is spoken to the backends `speaking`.
fn way(speaking: &HashSet<&str>, listener: &Listener) -> Option<Way> {
    let from =
        |path, kernel_call, crossover| format!("{path}{kernel_call} from {}", size(crossover));
    let of_tunnel = |path, crossover| match path {
        TunnelPathChoice::Auto => from("auto — ", "kernel splice", crossover),
        TunnelPathChoice::KernelSplice => from("", "kernel-splice", 0),
        TunnelPathChoice::User => USER_SPACE.to_owned(),
    };
    let (kind, speaks_tls, how) = match &listener.kind {
        ListenerKind::Https(https) => {
            // Nothing is sent by sendfile over HTTP/2.
            let over = if https.http2 == Some(true) { " over HTTP/1.1" } else { "" };
            let how = match https.path {
                TxPathChoice::Auto => from("auto — ", "kernel sendfile", https.crossover) + over,
                TxPathChoice::KernelWrite => "kernel-write".to_owned(),
                TxPathChoice::KernelSendfile => format!("kernel-sendfile{over}"),
                TxPathChoice::User => USER_SPACE.to_owned(),
            };
            ("https", true, how)
        }
        ListenerKind::Tls(tls) => ("tls", true, of_tunnel(tls.path, tls.crossover)),
        ListenerKind::Tcp(tcp) => {
            let speaks_tls = speaking.contains(tcp.backend.value.as_str());
            ("tcp", speaks_tls, of_tunnel(tcp.path, tcp.crossover))
        }
        ListenerKind::Passthrough(_) => {
            ("passthrough", false, from("", "pipes", PASSTHROUGH_CROSSOVER))
        }
        ListenerKind::Http(_) | ListenerKind::Redirect(_) => return None,
    };
    Some(Way { kind, speaks_tls, how })
}

/// All that differ, and whose they are where there are several.
fn joined(ways: &[Way]) -> String {
    let mut different: Vec<(Vec<&str>, &str)> = Vec::new();
    for way in ways {
        match different.iter_mut().find(|(_, how)| *how == way.how) {
            Some((kinds, _)) if kinds.contains(&way.kind) => {}
            Some((kinds, _)) => kinds.push(way.kind),
            None => different.push((vec![way.kind], &way.how)),
        }
    }
    if let [(_, how)] = different.as_slice() {
        return (*how).to_owned();
    }
    let named = different.iter().map(|(kinds, how)| format!("{}: {how}", kinds.join(", ")));
    named.collect::<Vec<_>>().join("; ")
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

const USER_SPACE: &str = "user space";

const CIPHERS: [(Cipher, &str); 3] = [
    (Cipher::Aes128Gcm, "AES-128-GCM"),
    (Cipher::Aes256Gcm, "AES-256-GCM"),
    (Cipher::Chacha20Poly1305, "ChaCha20"),
];

#[cfg(test)]
mod tests;

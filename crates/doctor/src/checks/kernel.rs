//! The version of the kernel and what it brings for kernel TLS.

use crate::finding::Finding;
use crate::machine::Machine;

pub(crate) fn check(machine: &Machine) -> Option<Finding> {
    let Some(version) = machine.kernel_version() else {
        let message = format!("cannot read the version {:?}", machine.kernel_release());
        return Some(Finding::warning(NAME, message).fix("kettle needs Linux; compare `uname -r`"));
    };
    let (brought, missing): (Vec<_>, Vec<_>) =
        FEATURES.iter().partition(|feature| version.series >= feature.since);
    // Later features imply the earlier ones, so the newest few say it all.
    let newest = brought.len().saturating_sub(SHOWN_MAX);
    let is_there = machine.carries_tx();
    let brings = if is_there { "brings" } else { "could do, if kTLS worked here:" };
    let mut message = format!("{version} {brings} {}", list(brought.get(newest..)?));
    if brought.is_empty() {
        message = format!("{version} brings no kernel TLS");
    }
    if let Some(next) = missing.first() {
        let (major, minor) = next.since;
        message += &format!("; {major}.{minor} adds {}", next.name);
    }
    Some(match version.series >= USEFUL_SINCE {
        true if is_there => Finding::good(NAME, message),
        true => Finding::warning(NAME, message).fix("what stands in its way is below"),
        false => Finding::warning(NAME, message).fix(machine.update_kernel()),
    })
}

struct Feature {
    since: (u32, u32),
    name: &'static str,
}

fn list(features: &[&Feature]) -> String {
    features.iter().map(|feature| feature.name).collect::<Vec<_>>().join(", ")
}

const NAME: &str = "kernel";
const SHOWN_MAX: usize = 4;
/// From here on all three ciphers and both versions can be sent.
const USEFUL_SINCE: (u32, u32) = (5, 11);

/// Vendors add features to older kernels too; what counts is the probe.
const FEATURES: [Feature; 8] = [
    Feature { since: (4, 13), name: "kTLS sending" },
    Feature { since: (4, 17), name: "kTLS receiving" },
    Feature { since: (5, 1), name: "TLS 1.3" },
    Feature { since: (5, 11), name: "ChaCha20-Poly1305" },
    Feature { since: (5, 19), name: "zero-copy sendfile on network cards" },
    Feature { since: (6, 5), name: "full records from sendfile" },
    Feature { since: (6, 14), name: "key updates" },
    Feature { since: (6, 19), name: "a limit on record sizes" },
];

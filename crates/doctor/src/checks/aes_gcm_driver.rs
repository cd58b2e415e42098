//! Which of the kernel's implementations of AES-GCM carries the records.

use crate::finding::Finding;
use crate::machine::Machine;

pub(crate) fn check(machine: &Machine) -> Option<Finding> {
    if !machine.carries_tx() {
        return None;
    }
    let text = machine.text("proc/crypto")?;
    let Some(driver) = best_driver(&text) else {
        let message = "none listed yet; the kernel chooses one at the first connection";
        return Some(Finding::good(NAME, message));
    };
    if !SLOW_PARTS.iter().any(|part| driver.contains(part)) {
        return Some(Finding::good(NAME, driver));
    }
    let message = format!("{driver}: plain C, many times slower than the processor's instructions");
    let finding = Finding::warning(NAME, message);
    Some(match std::env::consts::ARCH {
        "x86_64" => finding.fix(machine.as_root("modprobe -a aesni-intel ghash-clmulni-intel")),
        "aarch64" => finding.fix(machine.as_root("modprobe -a aes-ce-cipher ghash-ce")),
        _ => finding.fix("see which modules under kernel/arch/*/crypto this kernel has"),
    })
}

/// The driver of `gcm(aes)` with the highest priority, which is the one the kernel takes.
fn best_driver(text: &str) -> Option<&str> {
    text.split("\n\n")
        .filter(|block| field(block, "name") == Some("gcm(aes)"))
        .filter(|block| field(block, "internal") != Some("yes"))
        .max_by_key(|block| field(block, "priority").and_then(|it| it.parse::<i64>().ok()))
        .and_then(|block| field(block, "driver"))
}

fn field<'t>(block: &'t str, wanted: &str) -> Option<&'t str> {
    block.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == wanted).then(|| value.trim())
    })
}

const NAME: &str = "AES-GCM driver";
/// `generic-gcm-aesni` is a fast one, so "generic" alone says nothing.
const SLOW_PARTS: [&str; 5] =
    ["aes-generic", "aes-lib", "aes-fixed-time", "ghash-generic", "ghash-lib"];

//! The instructions of the processor that encryption gains from.

use crate::finding::Finding;
use crate::machine::Machine;

pub(crate) fn check(machine: &Machine) -> Option<Finding> {
    let text = machine.text("proc/cpuinfo")?;
    // x86 calls the list "flags", ARM "Features".
    let flags = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        matches!(name.trim(), "flags" | "Features").then_some(value)
    })?;
    let flags: Vec<_> = flags.split_ascii_whitespace().collect();
    let is_there = |(flag, _): &&(&str, &str)| flags.contains(flag);
    let names: Vec<_> = INSTRUCTIONS.iter().filter(is_there).map(|(_, name)| *name).collect();
    if flags.contains(&"aes") {
        return Some(Finding::good(NAME, names.join(", ")));
    }
    let found = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
    let message = format!("no AES instructions{found}: ChaCha20-Poly1305 is faster here");
    Some(
        Finding::warning(NAME, message)
            .fix("in a virtual machine, let the processor through, e.g. qemu -cpu host")
            .fix("else prefer the cipher: [tls] suites = [\"chacha20-poly1305\", …]"),
    )
}

const NAME: &str = "processor";
/// The kernel's flag and the name people use.
const INSTRUCTIONS: [(&str, &str); 10] = [
    ("aes", "AES"),
    ("pclmulqdq", "CLMUL"),
    ("pmull", "PMULL"),
    ("avx2", "AVX2"),
    ("avx512f", "AVX-512"),
    ("vaes", "VAES"),
    ("vpclmulqdq", "VPCLMUL"),
    ("sha_ni", "SHA"),
    ("sha2", "SHA-2"),
    ("erms", "fast string copy"),
];

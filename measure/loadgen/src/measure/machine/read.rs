//! The files in which Linux says what machine this is. Files are read beneath a root, so that a test can lay out a machine in a
//! folder.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use kettle_kernel::probe::Capabilities;
use kettle_kernel::process::{init_on_alloc, kernel_release};

use super::Machine;
use crate::measure::kibibytes;

impl Machine {
    /// The machine this runs on. Probes the kernel for TLS, which takes some milliseconds.
    pub fn read() -> Self {
        let kernel_tls = match Capabilities::run().tx_reason() {
            None => "yes".to_owned(),
            Some(reason) => format!("no: {reason}"),
        };
        Self::beneath(Path::new("/"), &kernel_release(), kernel_tls)
    }

    fn beneath(root: &Path, release: &str, kernel_tls: String) -> Self {
        let file = |path: &str| text(&root.join(path)).unwrap_or_default();
        let line = |path: &str| {
            file(path).lines().next().map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned)
        };
        let cpu = CpuInfo::parse(&file("proc/cpuinfo"));
        Self {
            kernel: release.to_owned(),
            cpus: cpu.count,
            virtualization: virtualization(&cpu, line),
            processor: cpu.name,
            processor_model: cpu.model,
            flags: cpu.flags,
            memory_bytes: kibibytes(&file("proc/meminfo"), "MemTotal:").unwrap_or(0),
            mitigations: mitigations(&root.join(VULNERABILITIES)),
            governor: line("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            init_on_alloc: init_on_alloc(&file("proc/cmdline"))
                .or_else(|| built_to_clear(&kernel_config(root, release)?)),
            kernel_tls,
            load_average: load_average(&file("proc/loadavg")).unwrap_or(0.0),
        }
    }
}

/// `/proc/cpuinfo`, as far as it matters here.
#[derive(Debug, Default, PartialEq)]
struct CpuInfo {
    name: String,
    model: String,
    flags: Vec<String>,
    count: usize,
    /// True if it is of a family that has a flag for being virtual.
    tells_of_hypervisors: bool,
    is_virtual: bool,
}

impl CpuInfo {
    /// All processors are taken to be like the first.
    fn parse(text: &str) -> Self {
        let lines = || text.lines().filter_map(|line| line.split_once(':'));
        let value = |name: &str| {
            lines().find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned())
        };
        let model = |names: [(&str, &str); 3]| {
            let words = names.map(|(key, word)| Some(format!("{word} {}", value(key)?)));
            words.into_iter().flatten().collect::<Vec<_>>().join(", ")
        };
        let is_x86 = value("cpu family").is_some();
        let all = value("flags").or_else(|| value("Features")).unwrap_or_default();
        let has = |flag: &str| all.split_ascii_whitespace().any(|it| it == flag);
        Self {
            name: value("model name")
                .or_else(|| value("Model"))
                .or_else(|| value("CPU part").map(|part| format!("ARM part {part}")))
                .unwrap_or_default(),
            model: if is_x86 {
                model([("cpu family", "family"), ("model", "model"), ("stepping", "stepping")])
            } else {
                model([
                    ("CPU implementer", "implementer"),
                    ("CPU part", "part"),
                    ("CPU revision", "revision"),
                ])
            },
            flags: FLAGS.iter().filter(|flag| has(flag)).map(|flag| (*flag).to_owned()).collect(),
            count: lines().filter(|(key, _)| key.trim() == "processor").count(),
            tells_of_hypervisors: is_x86,
            is_virtual: has("hypervisor"),
        }
    }
}

/// The name of the hypervisor, `none` where the processor says there is none, nothing where nobody tells.
fn virtualization(cpu: &CpuInfo, line: impl Fn(&str) -> Option<String>) -> Option<String> {
    if cpu.name.contains("QEMU TCG") {
        return Some("qemu-tcg".to_owned());
    }
    let kind = line("sys/hypervisor/type");
    let vendor = line("sys/class/dmi/id/sys_vendor").unwrap_or_default();
    let clock = line("sys/devices/system/clocksource/clocksource0/current_clocksource");
    let known =
        VENDORS.iter().find(|(name, _)| vendor.contains(name)).map(|(_, is)| (*is).to_owned());
    let by_clock = match clock.as_deref() {
        Some("kvm-clock") => Some("kvm"),
        Some("xen") => Some("xen"),
        Some(name) if name.starts_with("hyperv") => Some("hyper-v"),
        _ => None,
    };
    if cpu.tells_of_hypervisors && !cpu.is_virtual {
        return Some("none".to_owned());
    }
    let unnamed = cpu.is_virtual.then(|| "a virtual machine".to_owned());
    kind.or(known).or(by_clock.map(str::to_owned)).or(unnamed)
}

fn load_average(text: &str) -> Option<f64> {
    text.split_ascii_whitespace().next()?.parse().ok().filter(|load: &f64| load.is_finite())
}

/// Returns what the kernel does without being asked; nothing if this is no configuration of a kernel.
fn built_to_clear(config: &str) -> Option<bool> {
    if !config.contains("CONFIG_") {
        return None;
    }
    Some(config.lines().any(|line| line.trim() == "CONFIG_INIT_ON_ALLOC_DEFAULT_ON=y"))
}

/// The configuration the kernel was built with, from the kernel itself or its package.
fn kernel_config(root: &Path, release: &str) -> Option<String> {
    if let Ok(file) = File::open(root.join("proc/config.gz")) {
        let mut text = String::new();
        if GzDecoder::new(file).take(FILE_BYTES_MAX).read_to_string(&mut text).is_ok() {
            return Some(text);
        }
    }
    let places = [
        format!("boot/config-{release}"),
        format!("lib/modules/{release}/config"),
        format!("usr/lib/modules/{release}/config"),
    ];
    places.iter().find_map(|place| text(&root.join(place)))
}

fn mitigations(folder: &Path) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for entry in folder.read_dir().into_iter().flatten().flatten().take(MITIGATIONS_MAX) {
        if let (Ok(name), Some(text)) = (entry.file_name().into_string(), text(&entry.path())) {
            all.insert(name, text.trim().to_owned());
        }
    }
    all
}

/// A file's text up to a bound, odd bytes replaced.
fn text(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// The features with which record encryption, handshakes and copies run faster with, and whether anything of it is real.
const FLAGS: &[&str] = &[
    "aes",
    "vaes",
    "pclmulqdq",
    "vpclmulqdq",
    "gfni",
    "sha_ni",
    "avx2",
    "avx512f",
    "avx512ifma",
    "adx",
    "bmi2",
    "erms",
    "fsrm",
    "fzrm",
    "hypervisor",
    "pmull",
    "sha2",
    "sha3",
    "asimd",
    "sve",
    "sve2",
    "mops",
];

/// Makers of virtual machines by the name in the firmware.
const VENDORS: &[(&str, &str)] = &[
    ("QEMU", "kvm"),
    ("Amazon EC2", "kvm"),
    ("Google", "kvm"),
    ("DigitalOcean", "kvm"),
    ("Hetzner", "kvm"),
    ("OpenStack", "kvm"),
    ("Alibaba", "kvm"),
    ("VMware", "vmware"),
    ("Microsoft Corporation", "hyper-v"),
    ("innotek", "virtualbox"),
    ("Xen", "xen"),
    ("Parallels", "parallels"),
];

const VULNERABILITIES: &str = "sys/devices/system/cpu/vulnerabilities";
const MITIGATIONS_MAX: usize = 256;
/// `/proc/cpuinfo` has about 1.5 KiB for each processor.
const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;

#[cfg(test)]
mod tests;

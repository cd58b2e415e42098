//! The machine a run was made on, as far as its figures depend on it.

mod read;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The machine. Everything unknown is absent, never guessed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// `uname -r`.
    pub kernel: String,
    pub processor: String,
    /// Family, model and stepping.
    pub processor_model: String,
    pub cpus: usize,
    /// Flags that matter here: `aes`, `vaes`, `avx512f`, `erms`, `fsrm`, `sha_ni`, `hypervisor` and the like.
    pub flags: Vec<String>,
    pub memory_bytes: u64,
    /// Each `/sys/devices/system/cpu/vulnerabilities` entry.
    pub mitigations: BTreeMap<String, String>,
    /// The frequency governor, if there is one.
    pub governor: Option<String>,
    /// The virtualization that hides the hardware: `kvm`, `qemu-tcg`, `none` and the like, if known.
    pub virtualization: Option<String>,
    /// Says whether pages are zeroed when allocated (`init_on_alloc`), if known.
    pub init_on_alloc: Option<bool>,
    /// Says whether the kernel carries TLS, and if not, why.
    pub kernel_tls: String,
    /// Load average over a minute at the start.
    pub load_average: f64,
}

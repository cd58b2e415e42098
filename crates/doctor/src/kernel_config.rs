//! The configuration a kernel was built with, from wherever distributions put it.

use std::io::Read;

use flate2::read::GzDecoder;

/// A kernel configuration and where it was read.
pub(crate) struct KernelConfig {
    text: String,
    /// The file, as a path a user can look at.
    pub(crate) path: String,
}

impl KernelConfig {
    /// Finds the running kernel's own copy, else the file its package installed. `read` reads a file beneath the root.
    pub(crate) fn find(release: &str, read: impl Fn(&str) -> Option<Vec<u8>>) -> Option<Self> {
        let own = read("proc/config.gz").and_then(|bytes| unpack(&bytes));
        if let Some(text) = own {
            return Some(Self { text, path: "/proc/config.gz".to_owned() });
        }
        let places = [
            format!("boot/config-{release}"),
            format!("lib/modules/{release}/config"),
            format!("usr/lib/modules/{release}/config"),
        ];
        places.into_iter().find_map(|path| {
            let text = String::from_utf8_lossy(&read(&path)?).into_owned();
            Some(Self { text, path: format!("/{path}") })
        })
    }

    /// The value of an option (`y`, `m`, a number or a string); `None` when it is not set.
    pub(crate) fn option(&self, name: &str) -> Option<&str> {
        self.text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))
    }
}

fn unpack(compressed: &[u8]) -> Option<String> {
    let mut text = String::new();
    GzDecoder::new(compressed).take(CONFIG_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Configurations are about 300 KiB.
const CONFIG_BYTES_MAX: u64 = 4 * 1024 * 1024;

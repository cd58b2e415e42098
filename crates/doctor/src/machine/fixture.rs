//! Made-up machines: a folder of files, and a probe with the outcome a test asks for.

use std::fs;

use kettle_kernel::ktls::{Cipher, Version};
use kettle_kernel::probe::SuiteCapability;
use tempfile::TempDir;

use super::*;

/// A machine in a folder of its own, which is removed with it.
pub(crate) struct Fixture {
    folder: TempDir,
    pub(crate) machine: Machine,
}

impl Fixture {
    /// A machine without any file on which nothing works.
    pub(crate) fn without_ktls(release: &str) -> Self {
        Self::new(release, |_, _| Err("no kTLS".to_owned()), Some(false))
    }

    /// A machine without any file on which everything works but key updates.
    pub(crate) fn with_ktls(release: &str) -> Self {
        Self::new(release, |_, _| Ok(()), Some(true))
    }

    /// A machine whose probe says of each suite what `outcome` says.
    pub(crate) fn new(
        release: &str,
        outcome: fn(Version, Cipher) -> Result<(), String>,
        ulp_listed: Option<bool>,
    ) -> Self {
        let no = || Err("not here".to_owned());
        let suites: Vec<_> = Version::ALL
            .into_iter()
            .flat_map(|version| Cipher::ALL.map(|cipher| (version, cipher)))
            .map(|(version, cipher)| SuiteCapability {
                version,
                cipher,
                tx: outcome(version, cipher),
                rx: outcome(version, cipher),
                rekey: no(),
            })
            .collect();
        let any = suites.iter().any(|suite| suite.tx.is_ok());
        let on_top = || if any { Ok(()) } else { no() };
        let capabilities = Capabilities {
            kernel_release: release.to_owned(),
            ulp_listed,
            suites,
            sendfile: on_top(),
            splice: on_top(),
            zero_copy_read_only: on_top(),
            max_payload_length: no(),
        };
        let folder = tempfile::tempdir().unwrap();
        let machine = Machine {
            root: folder.path().to_owned(),
            capabilities,
            network_cards: Ok(Vec::new()),
            open_files: Limit { current: Some(1024), maximum: Some(1_048_576) },
            locked_memory: Limit { current: Some(8 << 20), maximum: Some(8 << 20) },
            landlock: Ok(7),
            seccomp: Ok(()),
            processors: 4,
            is_root: false,
            folders: Vec::new(),
        };
        Self { folder, machine }
    }

    /// Adds a file.
    pub(crate) fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }
}

//! What the user asked for; everything left open is the scenario's to choose.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use kettle_loadgen::offer::ResumeBy;
use kettle_tls::policy::Group;
use kettle_tls::{Cipher, Version};

use crate::peers::subject::{Key, OwnConfig, Path, Program, Role};
use crate::word::Word;

/// What the user asked for. `None` leaves it to the scenario.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// How much time the answer is worth.
    pub effort: Effort,
    /// Rounds over all subjects of a point.
    pub rounds: Option<u32>,
    /// The length of one sample, without its warm-up.
    pub seconds: Option<Duration>,
    /// Body sizes in bytes.
    pub sizes: Option<Vec<u64>>,
    /// The programs to compare.
    pub servers: Option<Vec<Program>>,
    /// Where they encrypt.
    pub paths: Option<Vec<Path>>,
    /// What they do.
    pub roles: Option<Vec<Role>>,
    /// Ciphers.
    pub suites: Option<Vec<Cipher>>,
    /// Key exchange groups.
    pub groups: Option<Vec<Group>>,
    /// Certificate keys.
    pub keys: Option<Vec<Key>>,
    /// The version of TLS.
    pub version: Option<Version>,
    /// HTTP/2 in place of HTTP/1.1, with so many requests at once.
    pub http2: Option<u32>,
    /// Ways of resuming.
    pub resume: Option<Vec<ResumeBy>>,
    /// Transactions with one TLS session.
    pub per_session: Option<Vec<u32>>,
    /// Worker counts.
    pub workers: Option<Vec<usize>>,
    /// Connections open at the same time.
    pub connections: Option<Vec<u32>>,
    /// Throughputs in Gb/s, for streaming.
    pub throughputs: Option<Vec<f64>>,
    /// Processors for servers.
    pub server_cpus: Option<Vec<usize>>,
    /// Processors for the client.
    pub client_cpus: Option<Vec<usize>>,
    /// Configurations in place of the generated ones.
    pub configs: BTreeMap<Program, OwnConfig>,
    /// The operator's own nginx.conf, if nginx has one that is no template.
    pub own_nginx: Option<OwnNginx>,
    /// Who downloads in `nginx-1g`.
    pub client: DownloadClient,
    /// Where files to serve, configurations and sockets are put while measuring.
    pub directory: Option<PathBuf>,
}

/// An nginx.conf that both servers are measured by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnNginx {
    /// The file.
    pub file: PathBuf,
    /// Where nginx encrypts by it on this machine.
    pub path: Path,
}

/// How much time an answer is worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// A first look.
    Quick,
    /// Good enough to decide by.
    #[default]
    Normal,
    /// Good enough to publish.
    Thorough,
}

/// Who downloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DownloadClient {
    /// This program, which discards what it received.
    #[default]
    Own,
    /// curl, which is what most people try it with.
    Curl,
}

impl Effort {
    /// The value for this effort.
    pub fn pick<T>(self, quick: T, normal: T, thorough: T) -> T {
        match self {
            Effort::Quick => quick,
            Effort::Normal => normal,
            Effort::Thorough => thorough,
        }
    }
}

impl Options {
    /// Rounds, as asked for or by effort.
    #[must_use]
    pub fn rounds_or(&self, quick: u32, normal: u32, thorough: u32) -> u32 {
        self.rounds.unwrap_or(self.effort.pick(quick, normal, thorough)).max(1)
    }

    /// The length of one sample, as asked for or by effort, in seconds.
    #[must_use]
    pub fn seconds_or(&self, quick: u64, normal: u64, thorough: u64) -> Duration {
        self.seconds.unwrap_or(Duration::from_secs(self.effort.pick(quick, normal, thorough)))
    }
}

impl Word for Effort {
    const ALL: &'static [(Self, &'static str)] =
        &[(Effort::Quick, "quick"), (Effort::Normal, "normal"), (Effort::Thorough, "thorough")];
}

impl Word for DownloadClient {
    const ALL: &'static [(Self, &'static str)] =
        &[(DownloadClient::Own, "own"), (DownloadClient::Curl, "curl")];
}

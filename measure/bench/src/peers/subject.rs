//! A server in one of its ways of working: what a chart has a line for.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use kettle_loadgen::offer::Offer;

use crate::word::{Word, words};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Subject {
    pub program: Program,
    /// The place where it encrypts; of terminators and proxies only kettle has more than `User`.
    pub path: SubjectPath,
    pub role: Role,
}

words! {
    #[derive(Hash, PartialOrd, Ord)]
    pub enum Program {
        Kettle = "kettle",
        Nginx = "nginx",
        Haproxy = "haproxy",
        /// hitch, the successor of stud.
        Hitch = "hitch",
        Stunnel = "stunnel",
    }
}

words! {
    /// The place where records are encrypted.
    #[derive(Hash, PartialOrd, Ord)]
    pub enum SubjectPath {
        /// Nowhere: plain HTTP, the floor.
        Plain = "plain",
        /// In the server's process.
        User = "user",
        /// In the kernel, from the server's buffers.
        KernelWrite = "kernel-write",
        /// In the kernel, from the page cache.
        KernelSendfile = "kernel-sendfile",
        /// In the kernel, from the backend's socket.
        KernelSplice = "kernel-splice",
        /// A place that kettle chooses.
        Auto = "auto",
    }
}

words! {
    #[derive(Hash, PartialOrd, Ord)]
    pub enum Role {
        /// It has the bodies itself: files, or a response in memory.
        Files = "files",
        /// It ends TLS before a plain backend, which is the same for all.
        Terminator = "terminator",
        /// It keeps the responses of that backend on the disk, and answers from there.
        Cache = "cache",
        /// It passes requests to a backend and its responses back, over connections that stay.
        Proxy = "proxy",
    }
}

/// The setup of a server. The same for all subjects of a comparison, but for the port.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Its own processors; it runs nowhere else.
    pub cpus: Vec<usize>,
    /// Worker threads or processes; at most one a processor.
    pub workers: usize,
    pub key: CertificateKey,
    /// The version, suite, group and way of resuming it allows: those the client offers, and no others.
    pub offer: Offer,
    /// True if sessions can be resumed at all.
    pub resumes: bool,
    pub site: PathBuf,
    /// The plain HTTP backend of all that are no file servers.
    pub backend: Option<SocketAddr>,
    /// An empty folder for configuration, certificate, logs and sockets.
    pub folder: PathBuf,
    /// The operator's own configuration in place of the generated one.
    pub config: Option<OwnConfig>,
}

impl Setup {
    /// The backend's address as configurations have it; nothing where there is none.
    pub fn backend_address(&self) -> String {
        self.backend.map(|backend| backend.to_string()).unwrap_or_default()
    }

    /// The number of its processors the server can keep busy: a configuration of the operator's own says by itself how many
    /// workers there are.
    pub fn cpus_used(&self) -> usize {
        if self.config.is_some() { self.cpus.len() } else { self.cpus.len().min(self.workers) }
    }
}

/// In place of a generated configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnConfig {
    /// With words between @, as `kettle bench config` prints it.
    Template(PathBuf),
    /// A template of nginx's configuration, for kettle: it has what `kettle import nginx` makes of it.
    OfNginx(PathBuf),
}

/// Of kettle's subjects those that are held against other servers, the first of them that was measured: what people get who set
/// nothing. If responses are kept, files are there to be compared with.
pub const OURS: &[&str] = &[
    "kettle cache auto",
    "kettle cache user",
    "kettle auto",
    "kettle user",
    "kettle terminator auto",
    "kettle terminator user",
    "kettle proxy auto",
    "kettle proxy user",
];

words! {
    #[derive(Hash, PartialOrd, Ord)]
    pub enum CertificateKey {
        P256 = "p256",
        Rsa2048 = "rsa2048",
        Rsa3072 = "rsa3072",
        Rsa4096 = "rsa4096",
        /// Ed25519; TLS 1.2 clients rarely take it.
        Ed25519 = "ed25519",
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl SubjectPath {
    /// True if every connection is encrypted in the kernel.
    pub fn is_kernel(self) -> bool {
        matches!(
            self,
            SubjectPath::KernelWrite | SubjectPath::KernelSendfile | SubjectPath::KernelSplice
        )
    }
}

impl Role {
    /// True if its bodies are those of the plain backend.
    pub fn has_backend(self) -> bool {
        self != Role::Files
    }
}

/// `kettle auto`, `nginx kernel-sendfile`, `hitch`, `nginx terminator`, `kettle terminator user`, `nginx cache user`,
/// `hitch and Varnish`, `kettle proxy user`, `haproxy proxy`.
impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.program.word())?;
        match (self.role, self.program) {
            // These do nothing else, so it goes without saying.
            (Role::Terminator, Program::Hitch | Program::Stunnel) => Ok(()),
            (Role::Terminator | Role::Proxy, Program::Kettle) => {
                write!(f, " {} {}", self.role.word(), self.path.word())
            }
            (Role::Terminator | Role::Proxy, _) => write!(f, " {}", self.role.word()),
            (Role::Cache, Program::Hitch) => f.write_str(" and Varnish"),
            (Role::Cache, _) => write!(f, " cache {}", self.path.word()),
            (Role::Files, _) => write!(f, " {}", self.path.word()),
        }
    }
}

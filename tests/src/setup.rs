//! The parts of a test's server: its folder, its files and its configuration.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU16, Ordering};

use tempfile::TempDir;

use crate::certificate::{Issued, Kind, authority_pem, issue};
use crate::content::content;
use crate::tool::Tool;

/// A server about to be started. Without further words it serves `localhost` over HTTP/1.1 on one listener with
/// `path = "auto"`, by one worker, and logs each response at once.
#[derive(Clone)]
pub struct Setup {
    pub(crate) paths: Vec<String>,
    listeners: Vec<String>,
    settings: BTreeMap<&'static str, Vec<String>>,
    site: Vec<String>,
    route: Vec<String>,
    more_certificates: String,
    more: String,
    files: Vec<(String, Vec<u8>)>,
    certificate: Option<Issued>,
    is_certificate_named: bool,
    pub(crate) launcher: Vec<String>,
    pub(crate) is_alone: bool,
}

impl Default for Setup {
    fn default() -> Self {
        let setup = Self {
            paths: Vec::new(),
            listeners: Vec::new(),
            settings: BTreeMap::new(),
            site: Vec::new(),
            route: Vec::new(),
            more_certificates: String::new(),
            more: String::new(),
            files: Vec::new(),
            certificate: None,
            is_certificate_named: true,
            launcher: Vec::new(),
            is_alone: false,
        };
        setup
            .set("server", "workers = 1")
            .set("server", "state_directory = \"state\"")
            .set("log", "access = \"stdout\"")
            .set("log", "buffer = 0")
            .set("admin", "socket = \"admin.sock\"")
    }
}

impl Setup {
    /// One listener with this path.
    pub fn path(path: &str) -> Self {
        Self::paths(&[path])
    }

    /// One listener for each path.
    pub fn paths(paths: &[&str]) -> Self {
        let setup = paths
            .iter()
            .fold(Self::default(), |setup, path| setup.listener(&format!("path = {path:?}")));
        Self { paths: paths.iter().map(|&path| path.to_owned()).collect(), ..setup }
    }

    /// Another listener, with these settings. An https one offers HTTP/2 only if they say so: most tests are about HTTP/1.1, and
    /// curl and browsers would take the other.
    #[must_use]
    pub fn listener(self, settings: &str) -> Self {
        match settings.contains("http2 = ") || settings.contains("kind = ") {
            true => self.bare_listener(settings),
            false => self.bare_listener(&format!("http2 = false\n{settings}")),
        }
    }

    /// Another listener, with these settings and no others.
    #[must_use]
    pub fn bare_listener(self, settings: &str) -> Self {
        self.listener_at(unused_address(), settings)
    }

    /// The same at an address that others know already.
    #[must_use]
    pub fn listener_at(mut self, address: SocketAddr, settings: &str) -> Self {
        self.listeners.push(format!("[[listener]]\naddress = \"{address}\"\n{settings}\n"));
        self
    }

    /// A setting of a section, in place of an earlier one of the same name.
    #[must_use]
    pub fn set(mut self, section: &'static str, setting: &str) -> Self {
        let lines = self.settings.entry(section).or_default();
        let name = setting.split('=').next();
        lines.retain(|line| line.split('=').next() != name);
        lines.push(setting.to_owned());
        self
    }

    /// With metrics to be [read](crate::tool::scrape) at this address.
    #[must_use]
    pub fn metrics(self, listen: SocketAddr) -> Self {
        self.set("metrics", &format!("listen = \"{listen}\""))
    }

    /// A served file of this size at `/SIZE` for each of `sizes`.
    #[must_use]
    pub fn sizes(self, sizes: &[usize]) -> Self {
        sizes.iter().fold(self, |setup, &bytes| setup.file(&format!("www/{bytes}"), content(bytes)))
    }

    /// File bodies only: nothing is kept in memory as ready bytes.
    #[must_use]
    pub fn without_memory(self) -> Self {
        self.set("limits", "hot_file = 0")
    }

    /// A setting of the site.
    #[must_use]
    pub fn site(mut self, setting: &str) -> Self {
        self.site.push(setting.to_owned());
        self
    }

    /// A setting of the site's route.
    #[must_use]
    pub fn route(mut self, setting: &str) -> Self {
        self.route.push(setting.to_owned());
        self
    }

    /// More text at the end of the configuration.
    #[must_use]
    pub fn more(mut self, text: &str) -> Self {
        self.more.push_str(text);
        self
    }

    /// A file in the server's folder; what is below `www` is served.
    #[must_use]
    pub fn file(mut self, path: &str, content: impl Into<Vec<u8>>) -> Self {
        self.files.push((path.to_owned(), content.into()));
        self
    }

    /// A certificate and its key, in `NAME.pem` and `NAME.key`.
    #[must_use]
    pub fn issued(self, name: &str, issued: &Issued) -> Self {
        let setup = self.file(&format!("{name}.pem"), issued.chain.as_str());
        setup.file(&format!("{name}.key"), issued.key.as_str())
    }

    /// Another site of these names, with the certificate in `CERTIFICATE.pem`, these settings and, below them, its routes.
    #[must_use]
    pub fn another_site(self, names: &[&str], certificate: &str, settings: &str) -> Self {
        let certificate = format!(
            "certificate = [{{ chain = \"{certificate}.pem\", key = \"{certificate}.key\" }}]"
        );
        self.more(&format!("\n[[site]]\nnames = {names:?}\n{certificate}\n{settings}\n"))
    }

    /// The site's certificate, in place of one made for the test.
    #[must_use]
    pub fn certificate(mut self, certificate: Issued) -> Self {
        self.certificate = Some(certificate);
        self
    }

    /// No certificate of the site in a file: what the site says of certificates is in its settings.
    #[must_use]
    pub fn without_certificate(mut self) -> Self {
        self.is_certificate_named = false;
        self
    }

    /// Another certificate of the site, in `NAME.pem` and `NAME.key`.
    #[must_use]
    pub fn site_certificate(mut self, name: &str) -> Self {
        let files = format!("chain = \"{name}.pem\"\nkey = \"{name}.key\"\n");
        self.more_certificates.push_str(&format!("[[site.certificate]]\n{files}"));
        self
    }

    /// Starts kettle by another program, such as `prlimit`.
    #[must_use]
    pub fn launched_by(mut self, words: &[&str]) -> Self {
        self.launcher = words.iter().map(|&word| word.to_owned()).collect();
        self
    }

    /// Lets no other server run meanwhile, so that the kernel's counts are this one's.
    #[must_use]
    pub fn alone(mut self) -> Self {
        self.is_alone = true;
        self
    }

    /// The number of addresses it listens on.
    pub fn listeners(&self) -> usize {
        self.listeners.len().max(1)
    }

    /// Makes the folder.
    #[must_use]
    pub fn lay_out(self) -> (Self, Folder) {
        let setup = if self.listeners.is_empty() { self.listener("path = \"auto\"") } else { self };
        let folder = Folder(tempfile::Builder::new().prefix("kettle-test-").tempdir().unwrap());
        let certificate = setup.certificate.clone();
        let certificate = certificate.unwrap_or_else(|| issue(&["localhost"], Kind::Ecdsa));
        folder.write_certificate("localhost", &certificate);
        folder.write("authority.pem", authority_pem());
        fs::create_dir(folder.path("www")).unwrap();
        for (path, content) in &setup.files {
            folder.write(path, content);
        }
        folder.write(CONFIG, setup.config());
        (setup, folder)
    }

    fn config(&self) -> String {
        let mut text = String::new();
        for (section, lines) in &self.settings {
            writeln!(text, "[{section}]\n{}\n", lines.join("\n")).unwrap();
        }
        text.push_str(&self.listeners.join("\n"));
        writeln!(text, "\n[[site]]\nnames = [\"localhost\"]\n{}", self.site.join("\n")).unwrap();
        if self.is_certificate_named {
            text.push_str(
                "[[site.certificate]]\nchain = \"localhost.pem\"\nkey = \"localhost.key\"\n",
            );
        }
        text.push_str(&self.more_certificates);
        writeln!(text, "[[site.route]]\nroot = \"www\"\n{}", self.route.join("\n")).unwrap();
        text.push_str(&self.more);
        text
    }
}

/// A server's folder, removed with it.
pub struct Folder(TempDir);

impl Folder {
    /// Returns the path of something in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Returns the path of its configuration.
    pub fn config(&self) -> PathBuf {
        self.path(CONFIG)
    }

    /// A command of the program under test, about its configuration.
    pub fn kettle(&self, command: &str) -> Tool {
        Tool::kettle([command, "--config"]).args([self.config()])
    }

    /// Writes a file, and the folders above it.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
    }

    /// Puts a file in another's place at once, as careful programs do.
    pub fn replace(&self, name: &str, content: impl AsRef<[u8]>) {
        let draft = format!("{name}.draft");
        self.write(&draft, content);
        fs::rename(self.path(&draft), self.path(name)).unwrap();
    }

    /// Writes `NAME.pem` and `NAME.key`.
    pub fn write_certificate(&self, name: &str, issued: &Issued) {
        self.replace(&format!("{name}.pem"), &issued.chain);
        let key = self.path(&format!("{name}.key"));
        write_private(&key, &issued.key);
    }

    /// Changes the configuration, which must contain `old`.
    pub fn change_config(&self, old: &str, new: &str) {
        let text = fs::read_to_string(self.config()).unwrap();
        assert!(text.contains(old), "there is no `{old}` in\n{text}");
        self.replace(CONFIG, text.replace(old, new));
    }
}

fn write_private(path: &Path, text: &str) {
    use std::io::Write as _;
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// An address of this machine that no other test uses.
pub fn unused_address() -> SocketAddr {
    static NEXT_PORT: AtomicU16 = AtomicU16::new(20_000);
    SocketAddr::new(unused_ip(), NEXT_PORT.fetch_add(1, Ordering::Relaxed))
}

/// An address of this machine that no other run of the tests uses: all of 127.0.0.0/8 is ours, and the process number
/// fits into it.
pub fn unused_ip() -> IpAddr {
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    IpAddr::from([127, high | 0x80, middle, low])
}

const CONFIG: &str = "kettle.toml";

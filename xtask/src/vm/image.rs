//! The guests' root file systems: ext4 images of Debian packages, unpacked without running a script, so that neither root rights nor a
//! debootstrap are needed. Guests mount them read-only under an overlay.

use std::path::{Path, PathBuf};

use super::apt::{self, Apt};
use super::cache::Cache;
use super::disk;
use crate::files::{self, create_folder, remove_folder};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Image {
    /// Debian 13 with the clients and tools the tests call.
    Test,
    /// Debian sid with its nginx and OpenSSL, to measure against.
    Measure,
}

impl Image {
    pub const ALL: [Self; 2] = [Self::Test, Self::Measure];

    /// The name used on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Test => "test",
            Self::Measure => "measure",
        }
    }

    pub fn parse(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|image| image.name() == name);
        found.ok_or_else(|| format!("unknown image `{name}`; there are test and measure"))
    }

    /// The image file, built on first use.
    pub fn obtain(self, cache: &Cache) -> Result<PathBuf, String> {
        let packages = self.packages();
        let recipe = format!("{:?}\n{packages:?}\n{PASSWD}{GROUP}{FIXED_FILES:?}", self.suites());
        let folder = cache.obtain(&self.artefact(), &recipe, |folder| self.build(folder))?;
        Ok(folder.join(FILE))
    }

    /// Forgets the cached image, so that the newest packages are downloaded next time.
    pub fn forget(self, cache: &Cache) -> Result<(), String> {
        cache.forget(&self.artefact())
    }

    fn artefact(self) -> String {
        format!("image-{}", self.name())
    }

    fn suites(self) -> &'static [&'static str] {
        match self {
            Self::Test => &["trixie", "trixie-security"],
            Self::Measure => &["sid"],
        }
    }

    fn packages(self) -> Vec<&'static str> {
        let own: &[&str] = match self {
            Self::Test => &["gnutls-bin", "nghttp2-client", "python3-minimal", "tcpdump"],
            Self::Measure => &["nginx", "nginx-light"],
        };
        BASE_PACKAGES.iter().chain(own).copied().collect()
    }

    fn build(self, folder: &Path) -> Result<(), String> {
        eprintln!("vm: building the {} image ({})", self.name(), self.suites().join(", "));
        let work = folder.join("work");
        let tree = work.join("tree");
        create_folder(&tree)?;
        let apt = Apt::new(&work.join("apt"), self.suites())?;
        let mut packages = apt.download_with_dependencies(&self.packages())?;
        // base-files brings the links /bin, /lib and /sbin, which must be there before anything is unpacked through them.
        packages.sort_by_key(|path| !files::name(path).starts_with("base-files_"));
        apt::unpack(&packages, &tree)?;
        furnish(&tree)?;
        disk::build(&tree, &folder.join(FILE))?;
        let names: Vec<String> = packages.iter().map(|path| files::name(path)).collect();
        files::write(folder.join("packages"), names.join("\n"))?;
        remove_folder(&work)
    }
}

/// Makes what the packages' scripts would have made, as far as a guest needs it, and the places others are mounted on.
fn furnish(tree: &Path) -> Result<(), String> {
    for folder in ["dev", "proc", "sys", "run", "tmp", "root", "kettle", "out", "usr/lib/modules"] {
        create_folder(&tree.join(folder))?;
    }
    for (name, content) in [("etc/passwd", PASSWD), ("etc/group", GROUP)].iter().chain(FIXED_FILES)
    {
        files::write(tree.join(name), content)?;
    }
    let awk = tree.join("usr/bin/awk");
    if !awk.exists() {
        files::link("mawk", awk)?;
    }
    for unused in ["usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info"] {
        remove_folder(&tree.join(unused))?;
    }
    Ok(())
}

const BASE_PACKAGES: &[&str] = &[
    "base-files",
    "bash",
    "busybox-static",
    "coreutils",
    "curl",
    "dash",
    "diffutils",
    "findutils",
    "grep",
    "gzip",
    "iproute2",
    "kmod",
    "libc-bin",
    "mawk",
    "mount",
    "netbase",
    "openssl",
    "procps",
    "sed",
    "strace",
    "tar",
    "util-linux",
];

const PASSWD: &str = "\
root:x:0:0:root:/root:/bin/bash
daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin
www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin
tcpdump:x:101:101::/nonexistent:/usr/sbin/nologin
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
";

const GROUP: &str = "\
root:x:0:
daemon:x:1:
adm:x:4:
www-data:x:33:
tcpdump:x:101:
nogroup:x:65534:
";

const FIXED_FILES: &[(&str, &str)] = &[
    ("etc/hostname", "kettle-guest\n"),
    ("etc/hosts", "127.0.0.1 localhost kettle-guest\n::1 localhost\n"),
    ("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\n"),
];

const FILE: &str = "root.ext4";

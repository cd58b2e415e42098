//! A machine of files in memory, for tests.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use kettle_config::Diagnostic;

use crate::Surroundings;

/// A folder named `closed` may not be listed.
#[derive(Default)]
pub(crate) struct Files(pub(crate) BTreeMap<PathBuf, String>);

impl Files {
    pub(crate) fn with(path: &str, text: &str) -> Self {
        Self([(PathBuf::from(path), text.to_owned())].into())
    }
}

impl Surroundings for Files {
    fn folder(&self) -> PathBuf {
        "/work".into()
    }

    fn read(&self, path: &Path) -> io::Result<String> {
        self.0.get(path).cloned().ok_or(io::ErrorKind::NotFound.into())
    }

    fn files_in(&self, folder: &Path) -> io::Result<Vec<String>> {
        let inside = self.0.keys().filter_map(|path| path.strip_prefix(folder).ok());
        Ok(inside.map(|path| path.display().to_string()).rev().collect())
    }

    fn names_in(&self, folder: &Path) -> io::Result<Vec<String>> {
        if self.is_file(folder) {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        if folder.ends_with("closed") {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let inside = self.0.keys().filter_map(|path| path.strip_prefix(folder).ok());
        let first = |path: &Path| Some(path.iter().next()?.to_string_lossy().into_owned());
        Ok(inside.filter_map(first).collect())
    }

    fn is_there(&self, path: &Path) -> bool {
        self.0.keys().any(|file| file.starts_with(path))
    }

    fn is_file(&self, path: &Path) -> bool {
        self.0.contains_key(path)
    }

    fn addresses(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        match host {
            "*" => Ok(vec![([0, 0, 0, 0], port).into()]),
            "localhost" => Ok(vec![([127, 0, 0, 1], port).into()]),
            _ => Ok(vec![SocketAddr::new(host.parse().map_err(io::Error::other)?, port)]),
        }
    }

    fn is_own(&self, ip: IpAddr) -> bool {
        // TEST-NET-3 is another machine's.
        !ip.to_string().starts_with("203.0.113.")
    }
}

pub(crate) fn shown(diagnostics: &[Diagnostic]) -> String {
    diagnostics.iter().map(|diagnostic| format!("{diagnostic}\n")).collect()
}

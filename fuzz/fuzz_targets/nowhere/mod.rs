//! A machine for imports that has one file's text and nothing else.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use kettle_import::Surroundings;

pub struct Nowhere<'t>(pub &'t str);

impl Surroundings for Nowhere<'_> {
    fn folder(&self) -> PathBuf {
        "/".into()
    }

    fn read(&self, _: &Path) -> io::Result<String> {
        Ok(self.0.to_owned())
    }

    fn files_in(&self, _: &Path) -> io::Result<Vec<String>> {
        Ok(vec!["a.pem".to_owned(), "b".to_owned()])
    }

    fn is_file(&self, _: &Path) -> bool {
        true
    }

    fn addresses(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let ip = if host == "*" { "::" } else { host };
        Ok(vec![SocketAddr::new(ip.parse().map_err(io::Error::other)?, port)])
    }
}

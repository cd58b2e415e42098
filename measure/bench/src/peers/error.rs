//! Why a server does not run, in a sentence.

use std::fmt;
use std::io;
use std::path::Path;

#[derive(Debug)]
pub enum PeerError {
    /// Something that it needs cannot be had: a file, a port, a program, its processors; or it takes no connections.
    Unprepared(String),
    /// It takes connections, but does not do on them what is to be measured.
    Useless(String),
}

impl PeerError {
    /// A file for it could not be written, for `map_err`.
    pub(super) fn unwritable(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.display().to_string();
        move |error| Self::Unprepared(format!("cannot write {path}: {error}"))
    }
}

impl fmt::Display for PeerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Unprepared(why) | Self::Useless(why)) = self;
        f.write_str(why)
    }
}

impl std::error::Error for PeerError {}

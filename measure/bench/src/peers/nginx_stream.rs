//! Tells whether an nginx relays bytes: by its stream module, which is built in, or a file that Debian has a package of its own
//! for.

use std::path::{Path, PathBuf};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NginxStream {
    /// This build has none, or its file is not there.
    Absent,
    BuiltIn,
    /// In this file, which the configuration has to name.
    Module(PathBuf),
}

impl NginxStream {
    /// By what `nginx -V` prints. The modules of an nginx that was unpacked from another system are not on this one.
    pub(super) fn of(said: &str, is_installed: bool) -> Self {
        let mut words = said.split_ascii_whitespace();
        if words.clone().any(|word| word == "--with-stream") {
            return Self::BuiltIn;
        }
        let folder = words.find_map(|word| word.strip_prefix("--modules-path="));
        let module = folder.map(|folder| Path::new(folder).join(MODULE));
        match module {
            Some(module) if is_installed && module.is_file() => Self::Module(module),
            _ => Self::Absent,
        }
    }

    pub(super) fn module(&self) -> Option<&Path> {
        match self {
            Self::Module(module) => Some(module),
            Self::Absent | Self::BuiltIn => None,
        }
    }
}

const MODULE: &str = "ngx_stream_module.so";

#[cfg(test)]
mod tests;

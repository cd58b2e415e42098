//! stunnel: `stunnel.conf` with what it includes. Source: stunnel(8).

mod file;
mod names;
mod service;
mod vocabulary;
mod write;

use std::path::Path;

use kettle_config::Diagnostic;

use crate::{Imported, Surroundings};

/// Imports a configuration file.
///
/// # Errors
/// Every mistake in it.
pub fn import_file(
    path: &Path,
    surroundings: &dyn Surroundings,
) -> Result<Imported, Vec<Diagnostic>> {
    let sections = file::read(path, surroundings)?;
    write::write(&sections, path, surroundings)
}

#[cfg(test)]
mod tests;

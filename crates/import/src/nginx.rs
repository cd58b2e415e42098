//! nginx: `nginx.conf` with what it includes.
//!
//! [`syntax`] and [`include`] make a tree of directives, [`scope`] checks where they stand, and [`write`] makes a
//! kettle.toml of it. A directive that decides which clients are served is carried over, or its place is left out: nothing
//! becomes looser.

mod include;
mod listen;
mod location;
mod map;
mod measure;
mod regex;
mod scope;
mod syntax;
mod template;
mod variables;
mod vocabulary;
mod write;

use std::path::Path;

use kettle_config::Diagnostic;

use crate::{Imported, Surroundings};
pub use template::template;
use vocabulary::Context;

/// Imports a configuration file.
///
/// # Errors
/// Every mistake in it.
pub fn import_file(
    path: &Path,
    surroundings: &dyn Surroundings,
) -> Result<Imported, Vec<Diagnostic>> {
    let mut directives = include::read(path, surroundings)?;
    let mut diagnostics = Vec::new();
    let mut warnings = Vec::new();
    scope::check(&directives, Context::Main, &mut diagnostics, &mut warnings);
    if !diagnostics.is_empty() {
        return Err(diagnostics);
    }
    scope::put_places_last(&mut directives);
    let blocks = directives.iter_mut().filter(|directive| directive.name == "http");
    let mut maps = Vec::new();
    for http in blocks.filter_map(|http| http.block.as_mut()) {
        maps.extend(map::take(http));
        let servers = http.iter_mut().filter(|directive| directive.name == "server");
        servers.filter_map(|server| server.block.as_mut()).for_each(|it| scope::put_constants(it));
    }
    write::write(&directives, maps, path, surroundings, warnings)
}

#[cfg(test)]
mod tests;

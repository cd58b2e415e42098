//! From text to a configuration: syntax, then each setting, then the settings together.

use std::path::Path;

use toml::de::{DeTable, DeValue};

use crate::check;
use crate::finding::Finding;
use crate::model::Config;
use crate::read::{Item, Reader};
use crate::setting::Settings;
use crate::source::Source;
use crate::syntax;

/// Reads a configuration. `path` is the file the text came from: relative paths start from its
/// folder, and findings name it. On failure every mistake is listed, in the order of the file.
pub fn parse(text: &str, path: &Path) -> Result<Config, Vec<Finding>> {
    let source = Source::new(text, path);
    let document = syntax::read(text);
    let is_partial = !document.mistakes.is_empty();
    let mut reader = Reader::new(&source, is_partial);
    let (table, _) = DeTable::parse_recoverable(&document.readable);
    let table = DeValue::Table(table.into_inner());
    let mut config = Config::read(&Item::document(&table), &mut reader).unwrap_or_default();
    for site in &mut config.sites {
        site.default |= site.names.iter().any(|name| name.value == "_");
    }
    if !is_partial {
        check::check(&config, &mut reader);
    }
    reader.forget(&document.homeless);
    for mistake in document.mistakes {
        reader.find_at(&mistake.span, mistake.message, mistake.instead);
    }
    let places = reader.finish()?;
    Ok(Config { path: path.to_path_buf(), source: source.clone(), places, ..config })
}

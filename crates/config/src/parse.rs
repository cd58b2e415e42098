//! From text to a configuration: syntax, then each setting, then the settings together.

use std::path::Path;

use toml::de::{DeTable, DeValue};

use crate::finding::Finding;
use crate::model::Config;
use crate::read::{Item, Reader};
use crate::setting::Settings;
use crate::source::Source;

/// Reads a configuration. `path` is the file the text came from: relative paths start from its
/// folder, and findings name it. On failure every mistake is listed, in the order of the file.
pub fn parse(text: &str, path: &Path) -> Result<Config, Vec<Finding>> {
    let source = Source::new(text, path);
    let mut reader = Reader::new(&source);
    let (document, errors) = DeTable::parse_recoverable(source.text());
    for error in &errors {
        let span = error.span().unwrap_or(0..0);
        reader.find_at(&span, error.message().to_owned(), None);
    }
    let document = DeValue::Table(document.into_inner());
    let config = Config::read(&Item::document(&document), &mut reader).unwrap_or_default();
    let findings = reader.into_findings();
    if findings.is_empty() {
        Ok(Config { path: path.to_path_buf(), source: source.clone(), ..config })
    } else {
        Err(findings)
    }
}

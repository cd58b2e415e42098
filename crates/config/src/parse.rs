//! From text to a configuration: syntax, then each setting, then the settings together.

use std::path::Path;

use toml::de::{DeTable, DeValue};

use crate::check;
use crate::diagnostic::{Diagnostic, Help};
use crate::foreign::{shape, spelling};
use crate::model::Config;
use crate::origin::Origins;
use crate::read::{Item, Reader};
use crate::reference::tables_with;
use crate::setting::{ANY_NAME, Settings};
use crate::source::Source;
use crate::syntax;

/// Reads a configuration as it lies on the disk. Like [`parse`], which takes text.
///
/// # Errors
/// Every mistake, as [`parse`] finds them, or the one byte that is no UTF-8.
pub fn parse_bytes(bytes: &[u8], path: &Path) -> Result<Config, Vec<Diagnostic>> {
    let error = match std::str::from_utf8(bytes) {
        Ok(text) => return parse(text, path),
        Err(error) => error,
    };
    // All before the wrong byte is the same in both, so its place is too.
    let shown = String::from_utf8_lossy(bytes);
    let at = error.valid_up_to();
    let byte = bytes.get(at).copied().unwrap_or_default();
    let message = format!("the file is not UTF-8: here stands the byte 0x{byte:02x}");
    let help = Help::act("save the file as UTF-8 in your editor");
    let range = at..at + char::REPLACEMENT_CHARACTER.len_utf8();
    Err(vec![Source::new(&shown, path).diagnostic(&range, message, help)])
}

/// Reads a configuration that was made from another file, `path`. diagnostics, those of later stages too, are shown where
/// its lines came from.
///
/// # Errors
/// Every mistake, as [`parse`] finds them.
pub fn parse_made(text: &str, path: &Path, origins: Origins) -> Result<Config, Vec<Diagnostic>> {
    match parse_with(text, path, &origins) {
        Ok(config) => Ok(Config { origins, ..config }),
        Err(diagnostics) => {
            Err(diagnostics.into_iter().map(|diagnostic| origins.trace(diagnostic)).collect())
        }
    }
}

/// Reads a configuration. `path` is the file the text came from: relative paths start from its
/// folder, and diagnostics name it. On failure every mistake is listed, in the order of the file.
///
/// # Errors
/// Every mistake, in the order of the file; never an empty list.
pub fn parse(text: &str, path: &Path) -> Result<Config, Vec<Diagnostic>> {
    parse_with(text, path, &Origins::default())
}

fn parse_with(text: &str, path: &Path, origins: &Origins) -> Result<Config, Vec<Diagnostic>> {
    let source = Source::new(text, path);
    let document = syntax::read(text);
    let is_partial = !document.mistakes.is_empty();
    if let Some(program) = is_partial.then(|| shape::program(text)).flatten() {
        let help = Some(program.help().to_owned());
        return Err(vec![Diagnostic::without_place(path, program.message(), help)]);
    }
    let mut reader = Reader::new(&source, origins, is_partial, tables_with);
    let (table, _) = DeTable::parse_recoverable(&document.readable);
    let table = DeValue::Table(table.into_inner());
    let mut config = Config::read(&Item::document(&table), &mut reader).unwrap_or_default();
    for site in &mut config.sites {
        site.default |= site.names.iter().any(|name| name.value == ANY_NAME);
        site.compile_patterns();
    }
    if !is_partial {
        check::check(&config, &mut reader);
    }
    reader.forget(&document.homeless);
    for mistake in document.mistakes {
        reader.report_at(&mistake.span, mistake.message, mistake.help);
    }
    let hinted =
        |found: Vec<Diagnostic>| found.into_iter().map(spelling::with_hint).collect::<Vec<_>>();
    let places = reader.finish().map_err(hinted)?.into();
    Ok(Config { path: path.to_path_buf(), source: source.clone(), places, ..config })
}

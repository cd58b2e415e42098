//! The rules that hold for each import of one file's text.

use kettle_config::Diagnostic;
use kettle_import::Imported;

/// It is a configuration or is explained, by lines that the text has.
pub fn check(text: &str, imported: Result<Imported, Vec<Diagnostic>>) {
    let lines = text.lines().count();
    let made = imported.and_then(|imported| {
        // The text is valid TOML, whatever its values are.
        assert!(imported.warnings.iter().all(|warning| warning.line <= lines));
        imported.config()
    });
    if let Err(diagnostics) = made {
        assert!(!diagnostics.is_empty());
        for diagnostic in diagnostics {
            assert!(diagnostic.line <= lines && !diagnostic.to_string().is_empty());
        }
    }
}

//! stunnel.conf: every text is imported or explained, and what is imported is a configuration or explained.

#![no_main]

mod nowhere;

use std::path::Path;

use kettle_import::stunnel::import_file;
use libfuzzer_sys::fuzz_target;
use nowhere::Nowhere;

fuzz_target!(|text: &str| {
    let lines = text.lines().count();
    let imported = import_file(Path::new("/stunnel.conf"), &Nowhere(text));
    let made = imported.and_then(|imported| {
        // The text is valid TOML, whatever its values are.
        assert!(imported.warnings.iter().all(|warning| warning.line <= lines));
        imported.config()
    });
    if let Err(findings) = made {
        assert!(!findings.is_empty());
        for finding in findings {
            assert!(finding.line <= lines && !finding.to_string().is_empty());
        }
    }
});

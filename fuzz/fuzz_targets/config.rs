//! Configuration files: every text is either accepted or explained.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Err(diagnostics) = kettle_config::parse(text, Path::new("kettle.toml")) {
        assert!(!diagnostics.is_empty());
        for diagnostic in diagnostics {
            assert!(diagnostic.line <= text.lines().count() + 1);
            assert!(!diagnostic.to_string().is_empty());
        }
    }
});

//! Configuration files: every text is either accepted or explained.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Err(findings) = kettle_config::parse(text, Path::new("kettle.toml")) {
        assert!(!findings.is_empty());
        for finding in findings {
            assert!(finding.line <= text.lines().count() + 1);
            assert!(!finding.to_string().is_empty());
        }
    }
});

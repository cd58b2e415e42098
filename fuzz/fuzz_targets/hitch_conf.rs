//! hitch.conf: every text is imported or explained, and what is imported is a configuration or explained.

#![no_main]

mod explained;
mod nowhere;

use std::path::Path;

use kettle_import::hitch::{Dialect, import_file};
use libfuzzer_sys::fuzz_target;
use nowhere::Nowhere;

fuzz_target!(|text: &str| explained::check(
    text,
    import_file(Dialect::Hitch, Path::new("/hitch.conf"), &Nowhere(text))
));

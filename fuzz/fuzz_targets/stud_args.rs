//! The command lines of stud and hitch, one word a line: run, printed or explained.

#![no_main]

mod nowhere;

use kettle_import::hitch::{Asked, Dialect, command_line};
use libfuzzer_sys::fuzz_target;
use nowhere::Nowhere;

fuzz_target!(|text: &str| {
    let words: Vec<String> = text.lines().map(str::to_owned).collect();
    for dialect in [Dialect::Stud, Dialect::Hitch] {
        match command_line(dialect, &words, &Nowhere("pem-file = \"a\"")) {
            Ok(Asked::Run(imported) | Asked::Test(imported)) => {
                if let Err(diagnostics) = imported.config() {
                    assert!(!diagnostics.is_empty());
                }
            }
            Ok(Asked::Help | Asked::Version) => {}
            Err(diagnostics) => assert!(!diagnostics.is_empty()),
        }
    }
});

//! `kettle bench` and `kettle calibrate` become the program `kettle-bench`, wherever it lies.

use std::path::{Path, PathBuf};

use kettle_tests::environment::kettle_program;

use super::*;

/// A kettle with nothing beside it.
fn kettle_alone(folder: &TempDir) -> PathBuf {
    let alone = folder.path().join("kettle");
    shell(&format!("cp {} $0", kettle_program().display()), &alone);
    alone
}

/// Written by another process: what this one has open for writing while another test forks cannot be executed (ETXTBSY).
fn shell(script: &str, path: &Path) {
    let path = path.to_str().unwrap();
    let _ = Tool::new("sh").args(["-c", script, path]).succeed();
}

#[test]
fn help_reads_as_one_with_the_rest() {
    for (words, usage) in [
        (&["bench", "--help"][..], "Usage: kettle bench <COMMAND>"),
        (&["bench", "load", "--help"], "Usage: kettle bench load [OPTIONS] <URL>"),
        (&["help", "bench", "run"], "Usage: kettle bench run [OPTIONS] [NAME]..."),
        (&["calibrate", "--help"], "Usage: kettle calibrate [OPTIONS]"),
    ] {
        let said = Tool::kettle(words).succeed();
        assert!(said.contains(usage), "{words:?}: {said}");
    }
}

#[test]
fn without_the_program_the_error_says_how_to_get_it() {
    let folder = TempDir::new().unwrap();
    let alone = kettle_alone(&folder);
    for command in ["bench", "calibrate"] {
        let alone = Tool::new(&alone).args([command]).environment("PATH", folder.path());
        let said = alone.fail("cargo build --release -p kettle-bench");
        assert!(said.contains("--path measure/bench"), "{said}");
    }
}

#[test]
fn a_program_in_path_gets_all_words_and_is_told_who_called() {
    let folder = TempDir::new().unwrap();
    let alone = kettle_alone(&folder);
    let programs = folder.path().join("bin");
    let script = "mkdir $0; echo '#!/bin/sh\necho \"$KETTLE_BIN: $@\"' >$0/kettle-bench; chmod +x $0/kettle-bench";
    shell(script, &programs);
    let words = ["bench", "load", "--json", "a b"];
    let said = Tool::new(&alone).args(words).environment("PATH", &programs).without("KETTLE_BIN");
    assert_eq!(said.succeed(), format!("{}: bench load --json a b\n", alone.display()));
}

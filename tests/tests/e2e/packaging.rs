//! The files of packages beside the programs: manual pages, completions, a dashboard and alerts.

mod monitoring;
mod unit;

use std::fs;
use std::path::{Path, PathBuf};

use kettle_tests::environment::kettle_program;
use kettle_tests::prelude::*;
use tempfile::TempDir;

/// True if this machine has a program; else the test that needs it is noted down as skipped.
pub fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_there = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    if !is_there {
        skip(&format!("there is no {program} here"));
    }
    is_there
}

/// The files of a folder.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// The pages and completions of one of our programs.
pub fn manual_of(program: &Path) -> TempDir {
    let folder = TempDir::new().unwrap();
    let words = [Path::new("manual"), folder.path(), Path::new("--date=2026-11-22")];
    drop(Tool::new(program).args(words).succeed());
    folder
}

/// The same of kettle, for a program that reads them; none where that is missing.
fn manual_for(reader: &str) -> Option<TempDir> {
    has(reader).then(|| manual_of(&kettle_program()))
}

#[test]
fn manual_pages_have_no_warnings() {
    let Some(folder) = manual_for("mandoc") else { return };
    let mut pages =
        [files(&folder.path().join("man1")), files(&folder.path().join("man5"))].concat();
    pages.sort();
    let name = |name: &str| pages.iter().any(|page| page.ends_with(name));
    for page in ["kettle.1", "kettle-serve.1", "kettle-hitch.1", "kettle.toml.5"] {
        assert!(name(page), "{page} is missing: {pages:?}");
    }
    let lint = Tool::new("mandoc").args(["-T", "lint", "-W", "warning"]).args(&pages).output();
    assert_eq!(lint.text() + &lint.stderr, "");
    let text = Tool::new("mandoc").args(["-T", "utf8"]).args(&pages).succeed();
    assert!(text.contains("kernel-sendfile") && text.contains("2026-11-22"));
}

#[test]
fn bash_completes_commands_and_options() {
    let folder = manual_of(&kettle_program());
    let script = "source \"$0\"; COMP_WORDS=(kettle ser); COMP_CWORD=1; _kettle kettle ser kettle; echo ${COMPREPLY[@]}
                  COMP_WORDS=(kettle serve --li); COMP_CWORD=2; _kettle kettle --li serve; echo ${COMPREPLY[@]}";
    let completions = folder.path().join("completions/kettle");
    let said = Tool::new("bash").args(["-c", script]).args([completions]).succeed();
    assert_eq!(said, "serve\n--listen --listen-http\n");
}

#[test]
fn fish_completes_commands_and_options() {
    let Some(folder) = manual_for("fish") else { return };
    let asked = "source $argv[1]; complete -C 'kettle ser'; complete -C 'kettle serve --li'";
    let file = folder.path().join("completions/kettle.fish");
    let said = Tool::new("fish").args(["--no-config", "-c", asked]).args([&file]).output();
    assert_eq!(said.stderr, "");
    let text = said.text();
    let words: Vec<_> = text.lines().filter_map(|line| line.split('\t').next()).collect();
    assert_eq!(words, ["serve", "--listen", "--listen-http"]);
}

/// The arguments of the shell's own functions for completions stand in their place here.
#[test]
fn zsh_is_told_commands_and_options() {
    let Some(folder) = manual_for("zsh") else { return };
    let asked = "compdef() { }; is-at-least() { true }; _arguments() { print -rl -- \"$@\" }; _describe() { print -rl -- ${(P)4} }
                 source $1; curcontext=''; _kettle; _kettle_commands; _kettle__subcmd__serve_commands";
    let file = folder.path().join("completions/_kettle");
    let said = Tool::new("zsh").args(["-f", "-c", asked, "zsh"]).args([&file]).output();
    assert_eq!(said.stderr, "");
    let text = said.text();
    for told in ["serve:Serve a folder", "terminate:", "--version["] {
        assert!(text.contains(told), "{told} is not in\n{text}");
    }
}

#[test]
fn version_tells_what_it_was_built_from() {
    let said = Tool::kettle(["--version"]).succeed();
    assert!(said.starts_with("kettle ") && said.contains("\nrustls "), "{said}");
    assert_eq!(Tool::kettle(["-V"]).succeed(), said);
    assert_eq!(
        Tool::kettle(["serve", "--version"]).succeed().lines().count(),
        said.lines().count()
    );
}

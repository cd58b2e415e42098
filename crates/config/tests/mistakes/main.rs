//! Bad snippets and exactly what the operator reads about each.

mod advice;
mod answers;
mod caches;
mod foreign;
mod order;
mod proxies;
mod together;
mod tunnels;

use std::path::Path;

use kettle_config::Diagnostic;

/// The lines that a snippet lacks to be a whole configuration are added below it.
const LISTENER: &str = "\n[[listener]]\naddress = \"0.0.0.0:443\"\n";
const SITE: &str =
    "\n[[site]]\nnames = [\"rest.example\"]\nself_signed = true\n[[site.route]]\nroot = \"/srv\"\n";

/// Snippets that begin with this line are taken as they are.
const ALONE: &str = "#alone";

/// Returns what is wrong in a snippet.
fn shown(snippet: &str) -> String {
    let parsed = kettle_config::parse(&whole(snippet), Path::new("kettle.toml"));
    listed(&parsed.err().unwrap_or_default())
}

/// Returns what is wrong in a snippet, or else what should be looked at.
fn shown_or_advised(snippet: &str) -> String {
    let parsed = kettle_config::parse(&whole(snippet), Path::new("kettle.toml"));
    listed(&parsed.map_or_else(|mistakes| mistakes, |config| kettle_config::advice(&config)))
}

fn whole(snippet: &str) -> String {
    let mut text = snippet.to_owned();
    let is_alone = snippet.starts_with(ALONE);
    if !is_alone && !snippet.contains("[[listener]]") {
        text.push_str(LISTENER);
    }
    if !is_alone && !snippet.contains("[[site]]") {
        text.push_str(SITE);
    }
    text
}

fn listed(found: &[Diagnostic]) -> String {
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    if found.is_empty() { "nothing".to_owned() } else { found.join("\n") }
}

/// Each file of the folder `cases` is named as what it shows, and has a reason, if there is one to give, and cases: what is written
/// and what is shown about it. `KETTLE_BLESS=1` writes anew what is shown.
#[test]
fn what_is_shown_is_what_the_cases_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mistakes/cases");
    let mut wrong = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let (reason, cases) = text.split_at(text.find(CASE).unwrap());
        let mut found = reason.to_owned();
        for case in cases.split(CASE).skip(1) {
            let (title, rest) = case.split_once('\n').unwrap();
            let (snippet, _) = rest.split_once(SHOWS).unwrap();
            found += &format!("{CASE}{title}\n{snippet}{SHOWS}{}\n", shown_or_advised(snippet));
        }
        if found != text && std::env::var_os("KETTLE_BLESS").is_some() {
            std::fs::write(&path, found).unwrap();
        } else if found != text {
            let is_other = |(found, said): &(&str, &str)| found != said;
            let line = found.lines().zip(text.lines()).position(|pair| is_other(&pair));
            wrong.push(format!("{}, from line {:?} on:\n{found}", path.display(), line));
        }
    }
    assert!(wrong.is_empty(), "not as in {}", wrong.join("\n"));
}

const CASE: &str = "=== case";
const SHOWS: &str = "\n=== shows\n";

//! Bad snippets and exactly what the operator reads about each.

mod advice;
mod answers;
mod backends;
mod caches;
mod carried;
mod foreign;
mod keys;
mod order;
mod proxies;
mod routes;
mod scalars;
mod syntax;
mod texts;
mod together;
mod tunnels;
mod unix;

use std::path::Path;

/// What a snippet lacks to be a whole configuration is added below it.
const LISTENER: &str = "\n[[listener]]\naddress = \"0.0.0.0:443\"\n";
const SITE: &str =
    "\n[[site]]\nnames = [\"rest.example\"]\nself_signed = true\n[[site.route]]\nroot = \"/srv\"\n";

/// Snippets that begin with this line are taken as they are.
const ALONE: &str = "#alone";

fn shown(snippet: &str) -> String {
    let mut text = snippet.to_owned();
    let is_alone = snippet.starts_with(ALONE);
    if !is_alone && !snippet.contains("[[listener]]") {
        text.push_str(LISTENER);
    }
    if !is_alone && !snippet.contains("[[site]]") {
        text.push_str(SITE);
    }
    match kettle_config::parse(&text, Path::new("kettle.toml")) {
        Ok(_) => "nothing".to_owned(),
        Err(diagnostics) => {
            let diagnostics: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
            diagnostics.join("\n")
        }
    }
}

/// A snippet and what is shown about it.
type Row = (&'static str, &'static str);

#[track_caller]
fn assert_found(rows: &[(&str, &str)]) {
    for (snippet, expected) in rows {
        let shown = shown(snippet);
        assert!(shown == *expected, "in\n{snippet}\nexpected\n{expected}\nbut found\n{shown}");
    }
}

//! Tables of docs/performance.md and of other pages that a command writes: their places, and the sentence on where they were measured.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use super::configs;
use crate::checkout;
use crate::vm::cache::at;

/// Puts a table of this command in place of the one that is there, below the sentence on its run. Gives the whole page.
pub fn bless(command: &str, run: &Value, table: &str) -> Result<String, String> {
    let placed = placed(&text()?, command, &format!("{}\n\n{table}", said(run)));
    let placed = placed.ok_or("docs/performance.md has no place for it")?;
    configs::write(&path(), &placed)?;
    Ok(placed)
}

/// Puts a text in place of the one that is there of this command in another page.
pub fn bless_in(page: &str, command: &str, text: &str) -> Result<(), String> {
    let path = checkout::workspace().join(page);
    let before = fs::read_to_string(&path).map_err(|error| at(&path, &error))?;
    let placed = placed(&before, command, text).ok_or(format!("{page} has no place for it"))?;
    configs::write(&path, &placed)
}

/// The page as it is.
pub fn text() -> Result<String, String> {
    let path = path();
    fs::read_to_string(&path).map_err(|error| at(&path, &error))
}

fn path() -> PathBuf {
    checkout::workspace().join("docs/performance.md")
}

/// Says where and when it was measured, by the line of the run in the results.
fn said(run: &Value) -> String {
    let word = |value: &Value| value.as_str().unwrap_or("unknown").to_owned();
    let machine = &run["machine"];
    format!(
        "kettle at {}, on {} processors ({}, Linux {}), with a load of {} when it began.\n\
         Medians, with a 95 % interval in brackets (for fewer than nine rounds the least and the most). The ratio is the median of \
         each round's own.",
        word(&run["commit"]),
        machine["cpus"],
        word(&machine["processor"]),
        word(&machine["kernel"]),
        machine["load_average"],
    )
}

/// The text in place of what stands between a command's mark and the next end in a page.
pub fn placed(page: &str, command: &str, text: &str) -> Option<String> {
    let begin = format!("<!-- `cargo xtask measure {command} --bless` writes from here -->");
    let (before, rest) = page.split_once(&begin)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{begin}\n\n{text}\n{END}{after}"))
}

const END: &str = "<!-- to here -->";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_a_place_for_each_table() {
        let page = include_str!("../../../docs/performance.md");
        for command in ["growth", "native --only proxy"] {
            let placed = placed(page, command, "| table |\n").unwrap();
            assert!(
                placed
                    .contains(&format!("{command} --bless` writes from here -->\n\n| table |\n\n"))
            );
            assert_eq!(super::placed(&placed, command, "| table |\n").unwrap(), placed);
        }
        let page = include_str!("../../../docs/acme.md");
        assert!(
            ["outage", "outage --days", "certificates"]
                .iter()
                .all(|it| placed(page, it, "").is_some())
        );
        assert_eq!(placed("no marks", "growth", ""), None);
    }
}

//! Tables of docs/performance.md and of other pages that a command writes: their places, and the sentence on where they were measured.

use std::path::PathBuf;

use serde_json::Value;

use super::MeasureArguments;
use crate::checkout;
use crate::files::{self};

/// Puts a table of this command in place of the one that is there, below the sentence on its run. Gives the whole page.
pub fn bless(command: &str, run: &Value, table: &str) -> Result<String, String> {
    let placed = placed(&text()?, command, &format!("{}\n\n{table}", said(run)));
    let placed = placed.ok_or("docs/performance.md has no place for it")?;
    files::write(path(), &placed)?;
    Ok(placed)
}

/// Writes what was seen and prints its table; results and table go into the documents if they are to be the new ones.
pub fn publish(
    arguments: &MeasureArguments,
    record: &Value,
    command: &str,
    (name, table): (&str, &str),
    is_whole: bool,
) -> Result<(), String> {
    let output = arguments.output.clone();
    let output = output.unwrap_or_else(|| checkout::target_folder().join(name));
    let text = serde_json::to_string_pretty(record).map_err(|error| error.to_string())?
        + "
";
    files::write(&output, &text)?;
    println!(
        "
{table}
in {}",
        output.display()
    );
    if !arguments.is_blessing {
        return Ok(());
    }
    if !is_whole {
        return Err(format!("the table has all rows: cargo xtask measure {command} --bless"));
    }
    let docs = checkout::workspace().join("docs");
    files::write(docs.join("results").join(name), &text)?;
    let page = docs.join("acme.md");
    let placed = placed(&files::read(&page)?, command, table);
    files::write(&page, placed.ok_or("docs/acme.md has no place for it")?)
}

pub fn text() -> Result<String, String> {
    files::read(path())
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

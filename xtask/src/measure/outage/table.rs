//! The table of docs/acme.md, and the results that it is made of.

use std::fmt::Write;

use serde_json::Value;

use super::super::{MeasureArguments, page};
use super::NAMES;

/// Writes what was seen and prints the table; into the documents if it is to be the new one.
pub fn publish(record: &Value, arguments: &MeasureArguments) -> Result<(), String> {
    let (name, command, unit) = match arguments.is_days {
        true => ("outage-days.json", "outage --days", MINUTES),
        false => ("outage.json", "outage", SECONDS),
    };
    let table = render(record, unit);
    let is_whole = arguments.only.is_empty();
    page::publish(arguments, record, command, (name, &table), is_whole)
}

/// The table, below what ran. In a unit of so many seconds stands when all was over.
fn render(record: &Value, (unit, unit_name): (f64, &str)) -> String {
    let word = |name: &str| record[name].as_str().unwrap_or("unknown").to_owned();
    let mut text = format!(
        "{} and Caddy {} of Debian sid, each with {} names.\n\n\
         | what | server | certificates that expired | orders | refused | first certificates (s) | over after ({unit_name}) | memory (MiB) |\n\
         |---|---|--:|--:|--:|--:|--:|--:|\n",
        word("kettle"),
        word("caddy"),
        NAMES
    );
    for row in record["rows"].as_array().into_iter().flatten() {
        let number =
            |name: &str, scale: f64| row[name].as_f64().map(|it| format!("{:.1}", it / scale));
        let scenario = row["scenario"].as_str().unwrap_or_default();
        let expired = match (row["expired"].as_u64(), row["without"].as_u64()) {
            (Some(expired), Some(0)) => expired.to_string(),
            (Some(expired), without) => {
                format!("{expired}, and {} never came", without.unwrap_or_default())
            }
            _ => String::new(),
        };
        let _ = writeln!(
            text,
            "| {} | {} | {expired} | {} | {} | {} | {} | {} |",
            said(scenario),
            row["program"].as_str().unwrap_or_default(),
            row["orders"],
            row["refusals"],
            number("first_seconds", 1.0).unwrap_or_default(),
            number("over_seconds", unit).unwrap_or_else(|| "not while it was looked".to_owned()),
            number("memory_bytes", 1_048_576.0).unwrap_or_default(),
        );
    }
    text
}

fn said(scenario: &str) -> &str {
    match scenario {
        "slept" => "the machine sleeps for five and a half days",
        "late" => "the authority is away for three days, from just before renewals on",
        "away" => "the authority is away for 5 minutes",
        "killed" => "one of two servers is killed as it orders",
        "changed" => "another authority in the configuration, the old one gone",
        "replaced" => "an old copy of the state, so that the authority says 409",
        other => other,
    }
}

const SECONDS: (f64, &str) = (1.0, "s");
const MINUTES: (f64, &str) = (60.0, "min");

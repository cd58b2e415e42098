//! A verdict as a table: on the page, and in Markdown.

use super::{Outcome, PageVerdict, VerdictCell};
use crate::report::axis::Axis;
use crate::report::conclusion::joined;
use crate::report::markup::Markup;
use crate::report::speech;
use crate::report::style;

/// Writes the table, with what it leaves out below.
pub fn write(page: &mut Markup, verdict: &PageVerdict) {
    if verdict.rows.is_empty() {
        return;
    }
    page.raw("<table class=\"verdict\"><thead><tr><th scope=\"col\">kettle beside</th>");
    for (peer, version) in verdict.peers.iter().zip(&verdict.versions) {
        page.open("th", &[("scope", "col")]);
        page.text(peer);
        if !version.is_empty() {
            page.element("span", &[], version);
        }
        page.close("th");
    }
    page.raw("</tr></thead><tbody>");
    for row in &verdict.rows {
        page.raw("<tr><th scope=\"row\">");
        page.element("strong", &[], row.question.name);
        page.element("span", &[], &row.about);
        page.raw("</th>");
        for (peer, cell) in verdict.peers.iter().zip(&row.cells) {
            match cell {
                Some(cell) => write_cell(page, peer, cell, row.question.figure()),
                None => page.element("td", &[("data-peer", peer), ("class", "none")], "–"),
            }
        }
        page.raw("</tr>");
    }
    page.raw("</tbody></table>");
    page.open("p", &[("class", "note")]);
    page.text(&notes(verdict).join(" "));
    page.close("p");
}

fn write_cell(page: &mut Markup, peer: &str, cell: &VerdictCell, figure: &str) {
    page.open("td", &[("data-peer", peer), ("class", class(cell.outcome))]);
    page.element("b", &[], &format!("{}×", speech::multiple(cell.ratio.middle)));
    page.element("span", &[], &sureness(cell));
    page.element("small", &[], &values(cell, figure));
    page.close("td");
}

fn class(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Less => "less",
        Outcome::More => "more",
        Outcome::Same | Outcome::Undecided | Outcome::TooFew => "open",
    }
}

/// `0.36 to 0.46`, or why there is nothing to be sure of.
pub fn sureness(cell: &VerdictCell) -> String {
    match cell.outcome {
        Outcome::Less | Outcome::More => speech::range(&cell.ratio),
        Outcome::Same => "no difference".to_owned(),
        Outcome::Undecided => format!("{}: undecided", speech::range(&cell.ratio)),
        Outcome::TooFew => format!("undecided: {}", speech::rounds(cell.rounds)),
    }
}

/// `144 µs against 337 µs`, and which path of the other if it is not its process.
fn values(cell: &VerdictCell, figure: &str) -> String {
    let axis = Axis::of_figure(figure);
    let (ours, theirs) = cell.values;
    let way = style::way(&cell.subjects.1);
    let path = if way.starts_with("kernel") { format!(" ({way})") } else { String::new() };
    format!("{} against {}{path}", axis.exactly(ours), axis.exactly(theirs))
}

fn notes(verdict: &PageVerdict) -> Vec<String> {
    let mut notes = vec![
        "0.50× means that kettle needs half of what the other needs; below it the interval of that ratio, or why nothing is decided."
            .to_owned(),
    ];
    if !verdict.relays.is_empty() {
        let relays = joined(&verdict.relays);
        let verb = verdict.relays.len();
        let verb = if verb == 1 { "passes" } else { "pass" };
        notes.push(format!(
            "{relays} {verb} requests on to another server, whose work is not counted."
        ));
    }
    let own =
        |row: &super::VerdictRow| row.cells.iter().flatten().map(|cell| cell.values.0).collect();
    let differs = |own: Vec<f64>| own.windows(2).any(|pair| pair.first() != pair.last());
    if verdict.rows.iter().map(own).any(differs) {
        notes.push(
            "Where kettle's own figure differs within a row, two comparisons measured the same, and each cell shows the surer one."
                .to_owned(),
        );
    }
    if !verdict.unasked.is_empty() {
        let unasked = verdict.unasked.iter().map(|(name, scenario)| {
            format!("{} (kettle bench run {scenario})", name.to_lowercase())
        });
        notes.push(format!("Not measured here: {}.", joined(&unasked.collect::<Vec<_>>())));
    }
    notes
}

/// The table in Markdown, with the same words.
pub fn markdown(verdict: &PageVerdict) -> String {
    let heads = verdict.peers.iter().zip(&verdict.versions);
    let heads: Vec<String> =
        heads.map(|(peer, version)| format!("{peer} {version}").trim_end().to_owned()).collect();
    let mut text = format!("| kettle beside | {} |\n", heads.join(" | "));
    text.push_str(&format!("|---|{}\n", "---|".repeat(verdict.peers.len())));
    for row in &verdict.rows {
        let cells = row.cells.iter().map(|cell| match cell {
            Some(cell) => {
                let ratio = speech::multiple(cell.ratio.middle);
                format!("**{ratio}×** ({})", sureness(cell))
            }
            None => "–".to_owned(),
        });
        let cells: Vec<String> = cells.collect();
        let phrase = row.question.phrase();
        let name = row.question.name;
        text.push_str(&format!(
            "| {name}: {} {} | {} |\n",
            phrase.thing,
            row.purpose,
            cells.join(" | ")
        ));
    }
    text + "\n" + &notes(verdict).join(" ") + "\n"
}

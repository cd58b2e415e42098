//! The answer alone, to be shown to others: a picture of the size that previews have, and the same in Markdown.

use super::canvas::{Anchor, Canvas, fitted, wrapped};
use super::chart;
use super::gathered::Gathered;
use super::head;
use super::speech;
use super::trust::Trust;
use super::verdict::{self, Outcome, PageVerdict, VerdictCell};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Card {
    /// As a picture, 1,200 by 630 pixels.
    pub svg: String,
    pub markdown: String,
}

/// Draws it; nothing without an answer.
pub fn draw(files: &[Gathered], verdict: &PageVerdict, trust: &Trust) -> Option<Card> {
    if verdict.rows.is_empty() {
        return None;
    }
    let title = head::title(files, verdict);
    let place = head::place(files);
    let said = said(trust);
    let commands: Vec<String> = files
        .iter()
        .filter(|file| !file.is_work())
        .filter_map(|file| file.runs.first())
        .map(|run| run.command.join(" "))
        .collect();
    let mut markdown =
        format!("**{title}**\n\n{}\n{said}\n\n{place}\n\n", verdict::markdown(verdict));
    for command in &commands {
        markdown.push_str(&format!("    {command}\n"));
    }
    Some(Card { svg: svg(&title, &place, &said, verdict), markdown })
}

fn said(trust: &Trust) -> String {
    let mut said = trust.first.clone().map_or_else(String::new, |first| format!("{first} "));
    said.push_str(&format!("How far to trust this: {}.", trust.level));
    if !trust.reasons.is_empty() {
        said.push_str(&format!(" {}.", speech::capital(&trust.reasons.join("; "))));
    }
    if let Some(kernel) = &trust.kernel {
        said.push_str(&format!(" {kernel}"));
    }
    said
}

fn svg(title: &str, place: &str, said: &str, verdict: &PageVerdict) -> String {
    let mut canvas = Canvas::new();
    canvas.group("c-kettle", |canvas| {
        canvas.text("card-mark", (EDGE, 58.0), Anchor::Start, "kettle bench");
    });
    canvas.text("card-small", (WIDTH - EDGE, 58.0), Anchor::End, place);
    let mut y = 104.0;
    for line in wrapped(title, TITLE * BOLD, WIDTH - 2.0 * EDGE).iter().take(2) {
        canvas.text("card-title", (EDGE, y), Anchor::Start, line);
        y += TITLE * 1.18;
    }
    draw_table(&mut canvas, verdict, y - 22.0);
    let lines = wrapped(said, SMALL, WIDTH - 2.0 * EDGE);
    let count = lines.len().min(LINES_MAX);
    for (index, line) in lines.iter().take(count).enumerate() {
        let y = HEIGHT - 26.0 - (count - 1 - index) as f64 * SMALL * 1.35;
        canvas.text("card-foot", (EDGE, y), Anchor::Start, line);
    }
    chart::standing_alone(&canvas.finish(WIDTH, HEIGHT).content, (WIDTH, HEIGHT), title)
}

fn draw_table(canvas: &mut Canvas, verdict: &PageVerdict, top: f64) {
    let names = 330.0;
    let peers: Vec<&String> = verdict.peers.iter().take(PEERS_MAX).collect();
    let column = (WIDTH - 2.0 * EDGE - names) / peers.len().max(1) as f64;
    let at = |index: usize| EDGE + names + column * index as f64;
    let room = HEIGHT - 26.0 - LINES_MAX as f64 * SMALL * 1.35 - top - 72.0;
    let high = (room / verdict.rows.len().max(1) as f64).min(58.0);
    canvas.text("card-small", (EDGE, top + 26.0), Anchor::Start, "kettle beside");
    for (index, (peer, version)) in peers.iter().zip(&verdict.versions).enumerate() {
        canvas.text("card-row", (at(index), top + 26.0), Anchor::Start, peer);
        let version = fitted(version, 13.0, column - 12.0);
        canvas.text("tick", (at(index), top + 42.0), Anchor::Start, &version);
    }
    for (line, row) in verdict.rows.iter().enumerate() {
        let y = top + 54.0 + high * line as f64;
        canvas.line("grid", (EDGE, y), (WIDTH - EDGE, y));
        let about = format!("{} {}", row.question.phrase().thing, row.purpose);
        canvas.text("card-row", (EDGE, y + 22.0), Anchor::Start, row.question.name);
        let about = fitted(&about, 13.0, names - 16.0);
        canvas.text("tick", (EDGE, y + 39.0), Anchor::Start, &about);
        for (index, cell) in row.cells.iter().take(PEERS_MAX).enumerate() {
            if let Some(cell) = cell {
                draw_cell(canvas, cell, (at(index), y));
            }
        }
    }
}

fn draw_cell(canvas: &mut Canvas, cell: &VerdictCell, (x, y): (f64, f64)) {
    let class = match cell.outcome {
        Outcome::Less => "c-kettle",
        Outcome::More => "c-bad",
        _ => "c-neutral",
    };
    canvas.group(&format!("s {class}"), |canvas| {
        let ratio = format!("{}×", speech::multiple(cell.ratio.middle));
        canvas.text("card-ratio label", (x, y + 23.0), Anchor::Start, &ratio);
    });
    canvas.text("tick", (x, y + 39.0), Anchor::Start, &verdict::sureness(cell));
}

const WIDTH: f64 = 1200.0;
const HEIGHT: f64 = 630.0;
const EDGE: f64 = 48.0;
const TITLE: f64 = 34.0;
/// The width of bold letters, of those that `text_width` knows.
const BOLD: f64 = 1.05;
const SMALL: f64 = 13.5;
const LINES_MAX: usize = 4;
/// More columns than this cannot be read.
const PEERS_MAX: usize = 5;

//! The answer of a report, for people who read nothing else: a row for each question, a ratio to each other server with its interval,
//! and `undecided` where it is.

mod question;
mod written;

pub use written::{markdown, sureness, write};

use super::gathered::{Gathered, ScenarioResults};
use super::sampling::{PROGRAMS, Samples};
use super::speech;
use super::style;
use crate::figure::Better;
use crate::peers::subject::OURS;
use crate::results::{Clock, distinct};
use crate::stats::Estimate;
use crate::stats::comparison::{Comparison, Interval, SAMPLES_MIN, Verdict};
use question::{FigureSource, QUESTIONS, Question};

#[derive(Clone, Debug, Default)]
pub struct PageVerdict {
    /// The other programs, a column each.
    pub peers: Vec<String>,
    /// Their versions, with that of their OpenSSL; empty where nothing says it.
    pub versions: Vec<String>,
    /// The questions that were asked.
    pub rows: Vec<VerdictRow>,
    /// The questions that were not: what they are called, and the comparison that asks them.
    pub unasked: Vec<(&'static str, &'static str)>,
    /// Programs that pass requests on to another server.
    pub relays: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct VerdictRow {
    pub question: &'static Question,
    /// The subject of the measurement.
    pub about: String,
    /// The purpose of the cost: `for a 1 MiB file`.
    pub purpose: String,
    /// The answer beside each other program, as many as there are columns.
    pub cells: Vec<Option<VerdictCell>>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct VerdictCell {
    /// Ours as a multiple of theirs.
    pub ratio: Interval,
    pub outcome: Outcome,
    /// The number of rounds the side with fewer has.
    pub rounds: usize,
    /// Ours and theirs in their unit.
    pub values: (f64, f64),
    /// The subjects compared, of kettle and of the other.
    pub subjects: (String, String),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Ours needs less.
    Less,
    /// Ours needs more.
    More,
    /// Both are the same, exactly.
    Same,
    /// The samples do not tell.
    Undecided,
    /// There are fewer samples than could ever tell.
    TooFew,
}

impl PageVerdict {
    /// Compares what was measured as time.
    pub fn of(files: &[Gathered]) -> Self {
        let scenarios: Vec<&ScenarioResults> = files
            .iter()
            .filter(|file| file.runs.iter().any(|run| run.clock == Clock::Time))
            .flat_map(|file| &file.scenarios)
            .collect();
        let answered: Vec<(&Question, String, Cells)> = QUESTIONS
            .iter()
            .map(|question| {
                let (word, cells) = answer(question, &scenarios);
                (question, word, cells)
            })
            .collect();
        let unasked = answered.iter().filter(|(_, _, cells)| cells.is_empty());
        let unasked = unasked.map(|(question, ..)| (question.name, question.scenario())).collect();
        let found = answered.iter().flat_map(|(_, _, cells)| cells);
        let mut peers = distinct(found.map(|(peer, _)| peer.clone()));
        peers.sort_by_key(|peer| PROGRAMS.iter().position(|known| known == peer));
        let asked = answered.into_iter().filter(|(_, _, cells)| !cells.is_empty());
        let rows = asked.map(|(question, word, cells)| {
            let find = |peer: &String| {
                cells.iter().find(|(name, _)| name == peer).map(|(_, cell)| cell.clone())
            };
            let [about, purpose] =
                [question.about, question.purpose].map(|text| text.replace("{}", &word));
            VerdictRow { question, about, purpose, cells: peers.iter().map(find).collect() }
        });
        let rows = rows.collect();
        let relays = peers.iter().filter(|peer| RELAYS.contains(&peer.as_str())).cloned().collect();
        let versions = peers.iter().map(|peer| versions(peer, &scenarios)).collect();
        Self { peers, versions, rows, unasked, relays }
    }

    /// Every answer there is, with its row and the other program.
    pub fn cells(&self) -> impl Iterator<Item = (&VerdictRow, &str, &VerdictCell)> {
        self.rows.iter().flat_map(|row| {
            let cells = self.peers.iter().zip(&row.cells);
            cells.filter_map(move |(peer, cell)| Some((row, peer.as_str(), cell.as_ref()?)))
        })
    }

    /// The finding in a sentence, beside the first of the other programs for which anything is decided; what speaks against us is
    /// never left out of it. Nothing if nothing is decided.
    pub fn headline(&self) -> Option<String> {
        self.peers.iter().find_map(|peer| self.headline_beside(peer))
    }

    fn headline_beside(&self, peer: &str) -> Option<String> {
        let decided = || {
            self.cells().filter(|(_, other, cell)| {
                *other == peer && matches!(cell.outcome, Outcome::Less | Outcome::More)
            })
        };
        let worse = decided().filter(|(_, _, cell)| cell.outcome == Outcome::More);
        let mut said: Vec<(&VerdictRow, &VerdictCell)> =
            worse.map(|(row, _, cell)| (row, cell)).take(HEADLINE_PARTS - 1).collect();
        for (row, _, cell) in decided() {
            let is_said = said.iter().any(|(other, _)| std::ptr::eq(*other, row));
            if said.len() < HEADLINE_PARTS && !is_said {
                said.push((row, cell));
            }
        }
        let place = |row: &VerdictRow| self.rows.iter().position(|other| std::ptr::eq(other, row));
        said.sort_by_key(|(row, _)| place(row));
        let mut before = None;
        let parts = said.iter().map(|(row, cell)| {
            let phrase = row.question.phrase();
            let ratio = cell.ratio.middle;
            // The words that a part shares with the one before is not said again.
            let part = if before == Some((phrase.verb, phrase.thing)) {
                let times = if ratio < 1.0 { "" } else { " times" };
                format!("{}{times} {}", speech::multiple(ratio), row.purpose)
            } else {
                let share = speech::share(ratio, peer, phrase.thing);
                format!("{} {share} {}", phrase.verb, row.purpose)
            };
            before = Some((phrase.verb, phrase.thing));
            part
        });
        let parts: Vec<String> = parts.collect();
        (!parts.is_empty()).then(|| format!("kettle {}", super::conclusion::joined(&parts)))
    }
}

/// Answers by the program beside which they were found.
type Cells = Vec<(String, VerdictCell)>;

/// `1.22.1, OpenSSL 3.0.19`; several where several were measured.
fn versions(peer: &str, scenarios: &[&ScenarioResults]) -> String {
    let is_number = |word: &&str| word.starts_with(|it: char| it.is_ascii_digit());
    let number = |text: &str| {
        let mut words = text.split([' ', '/', ',', '(', '-']);
        words.find(is_number).map(str::to_owned)
    };
    let subjects = scenarios.iter().flat_map(|scenario| &scenario.subjects);
    let of_peer = subjects.filter(|subject| style::program(&subject.name) == peer);
    let versions = of_peer.map(|subject| {
        let library = subject.version.split_once("OpenSSL ").and_then(|(_, it)| number(it));
        let own = number(&subject.version).unwrap_or_default();
        library.map_or(own.clone(), |library| format!("{own}, OpenSSL {library}"))
    });
    distinct(versions.filter(|version| !version.is_empty())).join("; ")
}

/// The answer to a question, and the size or rate it holds for. If two comparisons asked the same, the one with more rounds
/// is the surer.
fn answer(question: &Question, scenarios: &[&ScenarioResults]) -> (String, Cells) {
    let mut word = String::new();
    let mut cells = Cells::new();
    for source in question.sources {
        for scenario in scenarios.iter().filter(|scenario| scenario.name == source.scenario) {
            let Some((samples, spoken)) = source.pick(&scenario.samples) else { continue };
            if !cells.is_empty() && word != spoken && question.about.contains("{}") {
                continue;
            }
            word = spoken;
            for (peer, cell) in beside(&samples, source) {
                match cells.iter_mut().find(|(other, _)| *other == peer) {
                    Some((_, known)) if cell.rounds > known.rounds => *known = cell,
                    Some(_) => {}
                    None => cells.push((peer, cell)),
                }
            }
        }
    }
    (word, cells)
}

/// Ours beside the best path of each other program.
fn beside(samples: &Samples, source: &FigureSource) -> Cells {
    let figure = source.figure;
    let samples = samples.having(figure).only(|sample| style::way(&sample.subject) != "plain");
    let subjects = samples.subjects();
    let ours = OURS.iter().copied().find(|name| subjects.contains(name));
    let Some(ours) = ours else { return Cells::new() };
    let own = samples.subject(ours).rounds(figure);
    let mut found = Cells::new();
    for subject in subjects.iter().filter(|subject| style::program(subject) != "kettle") {
        let theirs = samples.subject(subject).rounds(figure);
        let Some(mut cell) = cell_of(&own, &theirs) else { continue };
        cell.subjects = (ours.to_owned(), (*subject).to_owned());
        let program = style::program(subject);
        match found.iter_mut().find(|(peer, _)| peer == program) {
            Some((_, other)) if cell.values.1 < other.values.1 => *other = cell,
            Some(_) => {}
            None => found.push((program.to_owned(), cell)),
        }
    }
    found
}

fn cell_of(ours: &[f64], theirs: &[f64]) -> Option<VerdictCell> {
    let comparison = Comparison::of(theirs, ours)?;
    let ratio = comparison.ratio?;
    let rounds = ours.len().min(theirs.len());
    let values = (Estimate::of(ours)?.median, Estimate::of(theirs)?.median);
    let outcome = match comparison.verdict(Better::Lower) {
        _ if ratio.low == 1.0 && ratio.high == 1.0 => Outcome::Same,
        _ if rounds < SAMPLES_MIN => Outcome::TooFew,
        Verdict::Better => Outcome::Less,
        Verdict::Worse => Outcome::More,
        _ => Outcome::Undecided,
    };
    Some(VerdictCell { ratio, outcome, rounds, values, subjects: (String::new(), String::new()) })
}

const HEADLINE_PARTS: usize = 2;
/// These serve no files: they decrypt and pass on.
const RELAYS: &[&str] = &["hitch", "stunnel"];

#[cfg(test)]
mod tests;

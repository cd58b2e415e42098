//! The screen of a run while it lasts, on standard error: in a terminal a few lines that are drawn again and again,
//! elsewhere a line for each sample.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};

use kettle_loadgen::client::Progress;

use crate::figure;
use crate::number::{count, digits, duration, latency};
use crate::results::{self, Sample};
use crate::scenario;
use crate::scenario::event::{Event, Sampling};

#[derive(Default)]
pub(crate) struct Screen {
    is_terminal: bool,
    scenario: String,
    /// Lines that are drawn over next time.
    drawn: usize,
    /// Warnings that were shown already.
    shown: BTreeSet<String>,
    /// Of the sample before: how many there are.
    counted: String,
}

impl Screen {
    pub(crate) fn new() -> Self {
        Self { is_terminal: io::stderr().is_terminal(), ..Self::default() }
    }

    pub(crate) fn show(&mut self, event: Event<'_>) {
        match event {
            Event::Scenario { name, title, rules } => {
                name.clone_into(&mut self.scenario);
                self.shown.clear();
                self.keep(&format!("{name}: {title}"));
                for rule in rules {
                    self.keep(&format!("  · {rule}"));
                }
            }
            Event::Preparing(what) => self.draw(&[format!("{}: {what} …", self.scenario)]),
            Event::Sampling(sampling) => {
                self.counted = counted(sampling, "/");
                self.draw(&live_lines(&self.scenario, sampling));
            }
            Event::Sampled(sample) => {
                if !self.is_terminal {
                    self.keep(&format!("  [{}] {}", self.counted, sample_line(sample)));
                }
                for warning in &sample.warnings {
                    if self.shown.insert(kind(warning).to_owned()) {
                        self.keep(&format!("  ! {}: {warning}", sample.subject));
                    }
                }
            }
            Event::Absent(absent) => self.keep(&format!("  – {}: {}", absent.what, absent.why)),
            Event::Note(text) => {
                for line in text.lines() {
                    self.keep(&format!("  {line}"));
                }
            }
        }
    }

    /// Takes away what would be drawn over.
    pub(crate) fn clear(&mut self) {
        let text = self.erase();
        write(&text);
    }

    /// Writes a line that stays.
    fn keep(&mut self, line: &str) {
        let text = format!("{}{line}\n", self.erase());
        write(&text);
    }

    /// Draws lines over those before.
    fn draw(&mut self, lines: &[String]) {
        if !self.is_terminal {
            return;
        }
        let mut text = self.erase();
        // Without wrapping, a line of a narrow terminal stays one line, which can be drawn over.
        text += NO_WRAP;
        for line in lines {
            text += line;
            text.push('\n');
        }
        text += WRAP;
        self.drawn = lines.len();
        write(&text);
    }

    /// Returns the text that takes the drawn lines away.
    fn erase(&mut self) -> String {
        match std::mem::take(&mut self.drawn) {
            0 => String::new(),
            lines => format!("\r\x1b[{lines}A\x1b[J"),
        }
    }
}

fn live_lines(scenario: &str, sampling: &Sampling<'_>) -> [String; 2] {
    let Sampling { subject, place, round, left, progress, .. } = sampling;
    let Progress { elapsed, succeeded, failed, mean_us, open_connections, .. } = *progress;
    let about =
        if left.is_zero() { String::new() } else { format!(" · {} left", duration(*left)) };
    let first = format!("{scenario} · sample {}{about}", counted(sampling, " of "));
    let mut parts = vec![(*subject).to_owned()];
    if !place.is_empty() {
        parts.push((*place).to_owned());
    }
    parts.push(format!("round {}", round + 1));
    parts.push(duration(elapsed));
    if succeeded > 0 && !elapsed.is_zero() {
        parts.push(format!("{}/s", digits(succeeded as f64 / elapsed.as_secs_f64())));
    }
    if mean_us > 0.0 {
        parts.push(format!("mean {}", latency(mean_us)));
    }
    if open_connections > 0 {
        parts.push(format!("{} open", count(open_connections)));
    }
    if failed > 0 {
        parts.push(format!("{} FAILED", count(failed)));
    }
    [first, format!("  {}", parts.join(" · "))]
}

/// Which sample this is, and of how many as far as that is known: a search does not know how long it will take.
fn counted(sampling: &Sampling<'_>, of: &str) -> String {
    let Sampling { samples, samples_planned, .. } = sampling;
    match samples_planned {
        0 => format!("{}", samples + 1),
        planned => format!("{}{of}{planned}", samples + 1),
    }
}

/// A sample in a line: what it is of, and the figures that people ask for first.
fn sample_line(sample: &Sample) -> String {
    let mut parts = vec![sample.subject.clone()];
    let place = results::place(&sample.point);
    if !place.is_empty() {
        parts.push(place);
    }
    if !sample.part.is_empty() {
        parts.push(sample.part.clone());
    }
    parts.push(format!("round {}", sample.round + 1));
    let headline = scenario::find(&sample.scenario).map_or(&[][..], |scenario| scenario.headline);
    let others = OTHER_FIGURES.iter().filter(|name| !headline.contains(*name));
    let figures = headline.iter().chain(others).filter_map(|name| {
        let value = sample.figures.get(*name)?;
        let figure = figure::find(name)?;
        Some(format!("{} {}", figure.label, figure.in_words(*value)))
    });
    let figures: Vec<_> = figures.take(FIGURES_MAX).collect();
    format!("{}: {}", parts.join(", "), figures.join(", "))
}

/// A warning without its numbers: it is shown once in a scenario, each time with other ones it is in the results.
fn kind(warning: &str) -> &str {
    warning.split(|character: char| character.is_ascii_digit()).next().unwrap_or_default()
}

fn write(text: &str) {
    // A terminal that is gone has nobody in front of it.
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// DECAWM of the VT100: lines that are too long are cut off, or go on in the next line.
const NO_WRAP: &str = "\x1b[?7l";
const WRAP: &str = "\x1b[?7h";

/// The figures that a line may hold beside the figures that answer the scenario's question.
const OTHER_FIGURES: &[&str] = &[
    figure::GIGABITS_PER_SECOND.name,
    figure::CALLS_PER_REQUEST.name,
    figure::MEMORY_BYTES_PER_CONNECTION.name,
    figure::P99_US.name,
];
const FIGURES_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn sampling() -> Sampling<'static> {
        Sampling {
            subject: "nginx kernel-sendfile",
            place: "64 KiB",
            round: 1,
            samples: 11,
            samples_planned: 90,
            left: Duration::from_secs(100),
            progress: Progress {
                elapsed: Duration::from_secs(3),
                attempted: 12_630,
                succeeded: 12_630,
                failed: 0,
                mean_us: 23_400.0,
                open_connections: 100,
            },
        }
    }

    #[test]
    fn the_live_lines_say_what_runs_and_how_long_it_takes() {
        assert_eq!(
            live_lines("web-sizes", &sampling()),
            [
                "web-sizes · sample 12 of 90 · 1 min 40 s left",
                "  nginx kernel-sendfile · 64 KiB · round 2 · 3 s · 4,210/s · mean 23.4 ms · 100 open",
            ]
        );
    }

    #[test]
    fn failures_are_shown_only_if_there_are_any() {
        let mut failed = sampling();
        failed.progress.failed = 3;
        assert!(live_lines("web-sizes", &failed)[1].ends_with("3 FAILED"));
    }

    #[test]
    fn a_sample_is_a_line_with_its_first_figures() {
        let sample = Sample {
            scenario: "web-sizes".to_owned(),
            subject: "kettle auto".to_owned(),
            point: Default::default(),
            round: 0,
            figures: [("requests_per_second", 1234.0), ("server_busy", 0.9), ("p99_us", 81.0)]
                .map(|(name, value)| (name.to_owned(), value))
                .into(),
            ..Sample::default()
        };
        assert_eq!(
            sample_line(&sample),
            "kettle auto, round 1: Requests 1,234/s, 99th percentile of latency 81.0 µs"
        );
    }
}

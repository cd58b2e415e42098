//! One run: what scenarios measure with. It starts servers, takes samples, skips those that are there, writes and shows.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::BenchError;
use super::event::Event;
use super::options::Options;
use super::plan::{Key, Outlook, Taken};
use super::stop::Stop;
use crate::results::{Absent, Line, Sample};

/// One run of one scenario.
pub struct Bench<'a> {
    /// What the user asked for.
    pub options: &'a Options,
    scenario: &'static str,
    /// Where files to serve, configurations and sockets are put.
    folder: PathBuf,
    write: &'a mut dyn FnMut(&Line) -> Result<(), BenchError>,
    watch: &'a mut dyn FnMut(Event<'_>),
    taken: &'a mut Taken,
    outlook: Outlook,
    stop: Stop,
}

impl Bench<'_> {
    /// Says how many samples the scenario has, given their keys, and how long each takes with its warm-up.
    pub fn plan(&mut self, keys: &[Key], each: Duration) {
        let there = keys.iter().filter(|key| self.taken.has(key)).count();
        self.outlook = Outlook::new(keys.len(), there, each);
    }

    /// The key of a usual sample of this scenario.
    #[must_use]
    pub fn key(&self, subject: impl ToString, point: &crate::results::Point, round: u32) -> Key {
        Key {
            scenario: self.scenario.to_owned(),
            subject: subject.to_string(),
            part: String::new(),
            point: point.clone(),
            round,
        }
    }

    /// Whether this sample is there from an earlier, interrupted run.
    #[must_use]
    pub fn has(&self, key: &Key) -> bool {
        self.taken.has(key)
    }

    /// An error if the user wants no further sample; for `bench.go_on()?`.
    pub fn go_on(&self) -> Result<(), BenchError> {
        if self.stop.is_asked() { Err(BenchError::Stopped) } else { Ok(()) }
    }

    /// Writes a sample down.
    pub fn record(&mut self, sample: Sample, took: Duration) -> Result<(), BenchError> {
        self.taken.add(&Key::of(&sample));
        self.outlook.took(took);
        (self.watch)(Event::Sampled(&sample));
        (self.write)(&Line::Sample(sample))
    }

    /// Writes down what cannot be shown, and why; what would mend it belongs into the reason.
    pub fn absent(&mut self, what: impl ToString, why: impl ToString) -> Result<(), BenchError> {
        let absent = Absent {
            scenario: self.scenario.to_owned(),
            what: what.to_string(),
            why: why.to_string(),
        };
        (self.watch)(Event::Absent(&absent));
        (self.write)(&Line::Absent(absent))
    }

    /// Tells the user something.
    pub fn note(&mut self, text: &str) {
        (self.watch)(Event::Note(text));
    }

    /// Tells the user what takes a moment.
    pub fn preparing(&mut self, text: &str) {
        (self.watch)(Event::Preparing(text));
    }

    /// An empty folder of this name below the run's own; it is removed at the end.
    pub fn folder(&self, name: &str) -> Result<PathBuf, BenchError> {
        let path = Path::join(&self.folder, name);
        std::fs::create_dir_all(&path).map_err(BenchError::file(&path))?;
        Ok(path)
    }
}

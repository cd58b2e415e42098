//! The equipment of scenarios: a run's files and servers, samples in interleaved rounds, and what of them is there already.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kettle_loadgen::load::Load;
use kettle_loadgen::measure::cores::Cores;

use super::capacity;
use super::error::BenchError;
use super::event::Event;
use super::measured::Measured;
use super::options::Options;
use super::plan::{Key, Remaining, Taken, interleaved};
use super::stop::Stop;
use crate::number;
use crate::peers::Running;
use crate::peers::backend::Backend;
use crate::peers::site::Site;
use crate::peers::subject::{Setup, Subject};
use crate::report::plot::PlotPoint;
use crate::report::sampling::Samples;
use crate::results::{self, Absent, DOUBTED, Line, Point, Sample, SubjectLine, Value};

pub struct Bench<'a> {
    pub options: &'a Options,
    pub cores: &'a Cores,
    pub(super) scenario: &'static str,
    /// The folder of files to serve, configurations and sockets.
    pub(super) folder: &'a Path,
    pub(super) site: Option<Site>,
    /// The backend of all terminators and caches.
    pub(super) backend: Option<Backend>,
    pub(super) write: &'a mut dyn FnMut(&Line) -> Result<(), BenchError>,
    pub(super) on_event: &'a mut dyn FnMut(Event<'_>),
    pub(super) samples: &'a mut Vec<Sample>,
    /// The servers as earlier runs started them, whose results this one goes on with.
    pub(super) earlier: &'a [SubjectLine],
    pub(super) taken: Taken,
    pub(super) remaining: Remaining,
    pub(super) stop: &'a Stop,
}

/// A server that runs and waits to be measured.
pub struct StartedServer {
    pub subject: Subject,
    pub name: String,
    /// The axis values it was configured for.
    pub point: Point,
    pub setup: Setup,
    pub running: Running,
}

impl<'a> Bench<'a> {
    /// Says how many samples the scenario has, given their keys, and how long each takes with its warm-up.
    pub fn plan(&mut self, keys: &[Key], each: Duration) {
        let there = keys.iter().filter(|key| self.taken.has(key)).count();
        self.remaining = Remaining::new(keys.len(), there, each);
    }

    /// The same for rounds over servers at points.
    pub fn plan_rounds(
        &mut self,
        servers: &[StartedServer],
        points: &[Point],
        rounds: u32,
        each: Duration,
    ) {
        let keys = self.keys(servers, points, rounds);
        self.plan(&keys, each);
    }

    pub fn keys(&self, servers: &[StartedServer], points: &[Point], rounds: u32) -> Vec<Key> {
        let at_point = |point| {
            interleaved(rounds, servers).map(move |(round, it)| self.key_of(it, point, round))
        };
        points.iter().flat_map(at_point).collect()
    }

    /// The key of a usual sample of this scenario.
    pub fn key(&self, subject: impl ToString, point: &Point, round: u32) -> Key {
        Key {
            scenario: self.scenario.to_owned(),
            subject: subject.to_string(),
            part: String::new(),
            point: point.clone(),
            round,
        }
    }

    /// The same for a server, at the point it was configured for and this one.
    pub fn key_of(&self, server: &StartedServer, point: &Point, round: u32) -> Key {
        let mut whole = server.point.clone();
        whole.extend(point.clone());
        self.key(&server.name, &whole, round)
    }

    /// True if this sample is there from an earlier, interrupted run.
    pub fn has(&self, key: &Key) -> bool {
        self.taken.has(key)
    }

    /// Returns an error once no further sample may be taken; for `bench.go_on()?`.
    pub fn go_on(&self) -> Result<(), BenchError> {
        if self.stop.is_asked() { Err(BenchError::Stopped) } else { Ok(()) }
    }

    /// Measures each server in turn, round after round, and writes the samples down. One that is there already is not
    /// measured again; one that is implausible is. A server that fails at this point is left out of its other rounds.
    ///
    /// # Errors
    /// [`BenchError::Stopped`] if the user wants no further sample, [`BenchError::Results`] if a line cannot be written, and what
    /// `measure` returns unless the server or the load is to blame.
    pub fn interleave(
        &mut self,
        servers: &[StartedServer],
        point: &Point,
        rounds: u32,
        mut measure: impl FnMut(&mut Self, &StartedServer, &Key) -> Result<Measured, BenchError>,
    ) -> Result<(), BenchError> {
        let mut failed: Vec<&str> = Vec::new();
        for (round, server) in interleaved(rounds, servers) {
            let key = self.key_of(server, point, round);
            if self.has(&key) || failed.contains(&server.name.as_str()) {
                continue;
            }
            self.go_on()?;
            let began = Instant::now();
            match self.measure_until_plausible(&key, |bench| measure(bench, server, &key)) {
                Ok(sample) => self.record(sample, began.elapsed())?,
                failure => {
                    failed.push(&server.name);
                    let place = results::place(&key.point);
                    self.or_absent(format!("{}, {place}", server.name), failure)?;
                }
            }
        }
        Ok(())
    }

    /// The same at each of these sizes of bodies, by a load that lasts so long behind its warm-up.
    pub fn interleave_sizes(
        &mut self,
        servers: &[StartedServer],
        sizes: &[u64],
        (rounds, time): (u32, Duration),
        load: impl Fn(&Self, &StartedServer, u64) -> Load,
    ) -> Result<(), BenchError> {
        let points: Vec<Point> = sizes.iter().map(|size| at("size", *size)).collect();
        self.plan_rounds(servers, &points, rounds, WARM_UP + time);
        for (size, point) in sizes.iter().zip(&points) {
            self.interleave(servers, point, rounds, |bench, server, key| {
                bench.measure(server, &load(bench, server, *size), key)
            })?;
        }
        Ok(())
    }

    /// Measures until the sample is plausible, at most [`TRIES_MAX`] times; implausible ones are written down as doubted.
    fn measure_until_plausible(
        &mut self,
        key: &Key,
        mut measure: impl FnMut(&mut Self) -> Result<Measured, BenchError>,
    ) -> Result<Sample, BenchError> {
        let mut tries = 1;
        loop {
            let measured = measure(self)?;
            let mut sample = measured.sample(key);
            let Some(why) = measured.implausible else { return Ok(sample) };
            if tries == TRIES_MAX {
                sample.warnings.push(format!("{why}: {TRIES_MAX} times in turn"));
                return Ok(sample);
            }
            tries += 1;
            sample.warnings.push(format!("{why}: measured again"));
            DOUBTED.clone_into(&mut sample.part);
            self.record_part(sample)?;
            self.go_on()?;
        }
    }

    pub fn record(&mut self, sample: Sample, took: Duration) -> Result<(), BenchError> {
        self.remaining.took(took);
        self.record_part(sample)
    }

    /// Writes a sample down that is a part of another one, or prepares the others: the time left is not counted by it.
    pub fn record_part(&mut self, sample: Sample) -> Result<(), BenchError> {
        self.taken.add(&Key::of(&sample));
        (self.on_event)(Event::Sampled(&sample));
        let line = Line::Sample(sample.clone());
        self.samples.push(sample);
        (self.write)(&line)
    }

    /// Writes down what cannot be shown, and why; what would mend it belongs into the reason.
    pub fn absent(&mut self, what: impl ToString, why: impl ToString) -> Result<(), BenchError> {
        let absent = Absent {
            scenario: self.scenario.to_owned(),
            what: what.to_string(),
            why: why.to_string(),
        };
        (self.on_event)(Event::Absent(&absent));
        (self.write)(&Line::Absent(absent))
    }

    /// Returns the result of an attempt; one that the server made fail is a line on what this run cannot show.
    ///
    /// # Errors
    /// An error of `outcome` for which neither the server nor the load is to blame; [`BenchError::Results`] if the line cannot be written.
    pub fn or_absent<T>(
        &mut self,
        what: impl ToString,
        outcome: Result<T, BenchError>,
    ) -> Result<Option<T>, BenchError> {
        match outcome {
            Err(error @ BenchError::Failed(_)) => self.absent(what, error).map(|()| None),
            outcome => outcome.map(Some),
        }
    }

    pub fn note(&mut self, text: &str) {
        (self.on_event)(Event::Note(text));
    }

    pub fn preparing(&mut self, text: &str) {
        (self.on_event)(Event::Preparing(text));
    }

    /// Samples of this scenario so far, of earlier runs too.
    pub fn samples(&self) -> impl Iterator<Item = &Sample> {
        self.samples.iter().filter(|sample| sample.scenario == self.scenario)
    }

    /// A subject's values of a figure along an axis, smallest place first.
    pub fn along(&self, subject: &Subject, axis: &str, figure: &str) -> Vec<PlotPoint> {
        let samples: Samples<'_> = self.samples().collect();
        samples.part("").subject(&subject.to_string()).along(axis, figure)
    }

    /// A folder of this name below the run's own; it is removed at the end.
    pub fn folder(&self, name: &str) -> Result<PathBuf, BenchError> {
        let path = self.folder.join(name);
        std::fs::create_dir_all(&path).map_err(BenchError::file(&path))?;
        Ok(path)
    }

    /// Makes the folder that servers serve, with a file of each size, named by its bytes, in the page cache.
    pub fn make_site(&mut self, sizes: &[u64]) -> Result<(), BenchError> {
        let total: u64 = sizes.iter().sum();
        self.preparing(&format!("writing {} of files to serve", number::size(total)));
        let folder = self.folder("site")?;
        self.site = Some(Site::make(&folder, sizes).map_err(BenchError::Refused)?);
        Ok(())
    }

    /// Starts the backend if any of the subjects needs it; it has a body of each size. It runs on the client's first processor,
    /// because the server's are the server's.
    pub fn start_backend(&mut self, subjects: &[Subject], sizes: &[u64]) -> Result<(), BenchError> {
        if subjects.iter().any(|subject| subject.role.has_backend()) {
            self.preparing("starting the backend of terminators");
            let cpu = self.cores.client.first().copied().unwrap_or(0);
            let started = Backend::start(cpu, sizes);
            self.backend = Some(started.map_err(|error| {
                BenchError::Refused(format!("no backend for terminators: {error}"))
            })?);
        }
        Ok(())
    }

    /// The numbers of connections to compare. A number that the machine cannot hold is named instead.
    pub fn numbers_of_connections(&mut self) -> Result<Vec<u32>, BenchError> {
        let usual = self.options.effort.pick(vec![1000], vec![1000, 10_000], vec![1000, 10_000]);
        let mut held = Vec::new();
        for connections in self.options.connections.clone().unwrap_or(usual) {
            // A terminator has both ends of each, and so has this process, where client and backend are.
            let sockets_each = if self.backend.is_some() { 2 } else { 1 };
            match capacity::refuse(connections, sockets_each) {
                Some(why) => self.absent(format!("{connections} connections"), why)?,
                None => held.push(connections),
            }
        }
        Ok(held)
    }

    /// Refuses more connections than this process and a server of the same limits can have open.
    pub fn require_descriptors(&self, connections: u32) -> Result<(), BenchError> {
        capacity::refuse(connections, 1).map_or(Ok(()), |why| Err(BenchError::Refused(why)))
    }
}

/// Before a steady load is counted.
pub const WARM_UP: Duration = Duration::from_millis(500);

/// The number of times a sample is measured at most until it is plausible.
const TRIES_MAX: u32 = 3;

pub fn at(axis: &str, value: u64) -> Point {
    Point::from([(axis.to_owned(), Value::Number(value as f64))])
}

#[cfg(test)]
mod tests;

//! The comparisons `kettle bench` makes: what each asks, by which rules, and how it finds out.
//!
//! A scenario decides whom to measure at which points; [`bench::Bench`] starts servers, measures, writes down and shows.

pub mod bench;
mod cached;
pub mod capacity;
pub mod choose;
mod ciphers;
pub mod cores;
pub mod crossover;
mod curl;
pub mod error;
pub mod event;
mod heed;
mod idle_memory;
mod implausible;
mod ktls_setup;
pub mod measured;
mod mixed;
mod nginx_1g;
pub mod options;
pub mod plan;
mod proxy;
pub mod rules;
pub mod run;
pub mod server;
pub mod stop;
pub mod streaming;
pub mod summary;
pub mod tps_ramp;
mod web_sizes;

pub use bench::Bench;
pub use error::BenchError;
pub use options::Options;

/// A comparison, said once: whoever adds one adds a value.
#[derive(Debug)]
pub struct Scenario {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its name in reports.
    pub title: &'static str,
    pub question: &'static str,
    /// The figures that answer the question, the first one first.
    pub headline: &'static [&'static str],
    /// The options that it heeds beside the usual, by the words of the command line.
    heeds: &'static [(&'static str, heed::Takes)],
    /// The rules of fairness and the parameters it goes by with these options beside the usual ones, a sentence each.
    rules: fn(&Options) -> Vec<String>,
    /// Measures. A part that this machine cannot show becomes a line of its own in the results; an error ends the scenario.
    run: fn(&mut Bench<'_>) -> Result<(), BenchError>,
}

/// All scenarios, in the order of lists and reports.
pub const SCENARIOS: &[Scenario] = &[
    nginx_1g::SCENARIO,
    web_sizes::SCENARIO,
    streaming::SCENARIO,
    tps_ramp::SCENARIO,
    idle_memory::SCENARIO,
    mixed::SCENARIO,
    ktls_setup::SCENARIO,
    ciphers::SCENARIO,
    cached::SCENARIO,
    proxy::SCENARIO,
];

pub fn find(name: &str) -> Option<&'static Scenario> {
    SCENARIOS.iter().find(|scenario| scenario.name == name)
}

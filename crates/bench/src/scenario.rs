//! The comparisons `kettle bench` makes: what each asks, by which rules, and how it finds out.
//!
//! A scenario decides whom to measure at which points; [`bench::Bench`] starts servers, measures, writes down and shows.

pub mod bench;
pub mod capacity;
pub mod error;
pub mod event;
pub mod options;
pub mod plan;
pub mod stop;
pub mod streaming;
pub mod tps_ramp;
pub mod word;

pub use bench::Bench;
pub use error::BenchError;
pub use options::Options;

/// A comparison.
pub trait Scenario: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// What reports call it.
    fn title(&self) -> &'static str;

    /// What it asks, in one sentence.
    fn question(&self) -> &'static str;

    /// The rules of fairness and the parameters it goes by with these options, a sentence each.
    fn rules(&self, options: &Options) -> Vec<String>;

    /// Measures. What this machine cannot show becomes a line of its own in the results; an error ends the scenario.
    fn run(&self, bench: &mut Bench<'_>) -> Result<(), BenchError>;
}

/// All scenarios, in the order of lists and reports.
pub static SCENARIOS: &[&dyn Scenario] = &[];

/// The scenario of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Scenario> {
    SCENARIOS.iter().copied().find(|scenario| scenario.name() == name)
}

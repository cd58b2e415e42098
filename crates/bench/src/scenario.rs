//! The comparisons `kettle bench` makes: what each asks, by which rules, and how it finds out.
//!
//! A scenario decides whom to measure at which points; [`bench::Bench`] starts servers, measures, writes down and shows.

mod behind;
pub mod bench;
pub mod capacity;
pub mod choose;
mod ciphers;
pub mod cores;
pub mod crossover;
mod curl;
pub mod error;
pub mod event;
mod idle_memory;
mod impossible;
mod ktls_setup;
pub mod measured;
mod mixed;
mod nginx_1g;
pub mod options;
pub mod plan;
pub mod rules;
pub mod run;
pub mod server;
pub mod stop;
pub mod streaming;
pub mod summary;
pub mod tps_ramp;
mod web_sizes;
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

    /// The figures that answer the question, the first one first.
    fn headline(&self) -> &'static [&'static str];

    /// Measures. What this machine cannot show becomes a line of its own in the results; an error ends the scenario.
    fn run(&self, bench: &mut Bench<'_>) -> Result<(), BenchError>;
}

/// All scenarios, in the order of lists and reports.
pub static SCENARIOS: &[&dyn Scenario] = &[
    &nginx_1g::Nginx1g,
    &web_sizes::WebSizes,
    &streaming::Streaming,
    &tps_ramp::TpsRamp,
    &idle_memory::IdleMemory,
    &mixed::Mixed,
    &ktls_setup::KtlsSetup,
    &ciphers::Ciphers,
];

/// The scenario of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Scenario> {
    SCENARIOS.iter().copied().find(|scenario| scenario.name() == name)
}

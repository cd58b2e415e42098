//! The trust in a run, in one line with its reasons, and what it says nothing about.

use super::gathered::Gathered;
use super::number;
use super::speech;
use super::verdict::PageVerdict;
use crate::figure;
use crate::results::{Clock, Sample};
use crate::stats::comparison::SAMPLES_MIN;

#[derive(Clone, Debug, PartialEq)]
pub struct Trust {
    /// The first line where this machine gave no run without warnings.
    pub first: Option<String>,
    pub level: &'static str,
    pub reasons: Vec<String>,
    pub kernel: Option<String>,
}

/// Rates the runs. `scatter` is how far the same code came out apart, if it was measured twice.
pub fn assess(files: &[Gathered], verdict: &PageVerdict, scatter: Option<f64>) -> Trust {
    let timed = || files.iter().filter(|file| !file.is_work());
    let kernel = kernel(files);
    if timed().next().is_none() {
        let reasons = vec!["work was counted under an emulator, which repeats exactly".to_owned()];
        return Trust { first: None, level: "as counts, not as time", reasons, kernel };
    }
    let samples = || timed().flat_map(Gathered::samples);
    let all = samples().count();
    let doubtful = samples().filter(|s| !s.warnings.is_empty()).count();
    let limited = samples().filter(|sample| is_limited(sample)).count();
    let answers: Vec<usize> = verdict.cells().map(|(_, _, cell)| cell.rounds).collect();
    let few = answers.iter().filter(|rounds| **rounds < SAMPLES_MIN).count();
    let is_shared = timed()
        .flat_map(|file| &file.runs)
        .any(|run| run.machine.virtualization.as_deref().is_some_and(|host| host != "none"));
    let cpus = timed().flat_map(|file| &file.runs).map(|run| run.machine.cpus).min().unwrap_or(0);
    let mut reasons = Vec::new();
    if few > 0 {
        let answers = number::counted(answers.len(), "answer", "answers");
        reasons
            .push(format!("{few} of {answers} rest on fewer than {}", speech::rounds(SAMPLES_MIN)));
    }
    if doubtful > 0 {
        reasons.push(format!(
            "{doubtful} of {} {} a warning",
            number::counted(all, "sample", "samples"),
            if doubtful == 1 { "carries" } else { "carry" }
        ));
    }
    if limited > 0 {
        let limited = number::counted(limited, "sample", "samples");
        reasons.push(format!("in {limited} the client was at its own limit"));
    }
    if let Some(scatter) = scatter.filter(|ratio| *ratio > SCATTER_MIN) {
        reasons.push(format!(
            "the same code measured twice came out up to {} apart",
            number::percent(scatter - 1.0)
        ));
    }
    let has_warning = |file: &Gathered| file.samples().any(|sample| !sample.warnings.is_empty());
    let first = timed().all(has_warning);
    let first = first.then(|| "This machine gave no run without warnings.".to_owned());
    let machine = if is_shared { "a virtual machine with " } else { "a machine with " };
    if is_shared || cpus < CPUS_TO_SCALE {
        reasons.push(format!("{machine}{}", number::counted(cpus, "processor", "processors")));
    }
    let is_weak = few * 2 > answers.len() || doubtful * 2 > all || answers.is_empty();
    let is_strong = few == 0
        && answers.iter().all(|rounds| *rounds >= ROUNDS_FOR_INTERVAL)
        && doubtful * 10 < all
        && !is_shared;
    let level = match (is_weak, is_strong) {
        (true, _) => "a first look: it shows directions, not distances",
        (_, true) => "well",
        _ => "in what is decided, on a machine like this one",
    };
    Trust { first, level, reasons, kernel }
}

fn kernel(files: &[Gathered]) -> Option<String> {
    let runs = || files.iter().flat_map(|file| &file.runs);
    let has_work = runs().any(|run| run.clock == Clock::Work);
    let has_time = runs().any(|run| run.clock == Clock::Time);
    let carries = |run: &crate::results::Run| {
        run.clock == Clock::Time && !run.machine.kernel_tls.starts_with("no")
    };
    if runs().any(|run| carries(run)) {
        return None;
    }
    let lacking =
        "Kernel TLS is unproven here: this machine's kernel has none, so its paths have no times.";
    let counted = "What is counted of these paths is work under an emulator, and work is not time.";
    match (has_time, has_work) {
        (true, true) => Some(format!("{lacking} {counted}")),
        (true, false) => Some(lacking.to_owned()),
        (false, true) => Some(format!("Kernel TLS is unproven here as time. {counted}")),
        (false, false) => None,
    }
}

/// True if the client was at its own limit.
pub fn is_limited(sample: &Sample) -> bool {
    sample.figures.get(figure::CLIENT_BUSY.name).is_some_and(|busy| *busy >= BUSY)
}

/// A client thread that is busy for this share of its core is the bottleneck.
const BUSY: f64 = 0.9;
/// With fewer, nothing can be said of how a server scales beside a client.
pub const CPUS_TO_SCALE: usize = 4;
/// With fewer rounds not even all of them hold the true median in 95 of 100 cases.
pub const ROUNDS_FOR_INTERVAL: usize = 6;
/// Less is not worth a word.
const SCATTER_MIN: f64 = 1.02;

#[cfg(test)]
mod tests;

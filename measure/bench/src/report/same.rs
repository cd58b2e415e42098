//! `auto` where the kernel carries no TLS: it runs the code of `user`, so it is no second subject but more samples of the first,
//! and how far the two lie apart is how much this machine scatters.

use crate::figure;
use crate::results::read::Results;
use crate::results::{Clock, Sample};
use crate::stats::Estimate;

/// The results with such samples under one name.
pub fn merged(files: &[Results]) -> Vec<Results> {
    let mut files = files.to_vec();
    for file in files.iter_mut().filter(|file| carries_no_tls(file)) {
        for sample in file.samples.iter_mut().filter(|sample| is_auto(sample)) {
            sample.subject = user_of(sample);
        }
    }
    files
}

/// The largest ratio between what the same code cost under its two names at one point, if both were measured.
pub fn scatter(files: &[Results]) -> Option<f64> {
    let mut largest: Option<f64> = None;
    for file in files.iter().filter(|file| carries_no_tls(file)) {
        let mut seen: Vec<&Sample> = Vec::new();
        for sample in file.samples.iter().filter(|sample| is_auto(sample)) {
            if seen.iter().any(|other| is_same_point(other, sample)) {
                continue;
            }
            seen.push(sample);
            for figure in COSTS {
                let median = |subject: &str| {
                    let own = file
                        .samples
                        .iter()
                        .filter(|other| other.subject == subject && is_same_point(other, sample));
                    let values = own.filter_map(|other| other.figures.get(*figure).copied());
                    Estimate::of(&values.collect::<Vec<_>>()).map(|estimate| estimate.median)
                };
                let pair = (median(&sample.subject), median(&user_of(sample)));
                if let (Some(auto), Some(user)) = pair
                    && auto > 0.0
                    && user > 0.0
                {
                    let ratio = (auto / user).max(user / auto);
                    largest = Some(largest.map_or(ratio, |other| other.max(ratio)));
                }
            }
        }
    }
    largest
}

fn carries_no_tls(file: &Results) -> bool {
    let is_without = |kernel_tls: &str| kernel_tls.starts_with("no");
    file.clock() == Some(Clock::Time)
        && file.runs.iter().all(|run| is_without(&run.machine.kernel_tls))
}

fn is_auto(sample: &Sample) -> bool {
    sample.subject.ends_with(AUTO)
}

fn user_of(sample: &Sample) -> String {
    format!("{} user", sample.subject.trim_end_matches(AUTO))
}

fn is_same_point(a: &Sample, b: &Sample) -> bool {
    a.scenario == b.scenario && a.part == b.part && a.point == b.point
}

/// The word in a name by which the server chooses, whatever it does.
const AUTO: &str = " auto";

const COSTS: &[&str] = &[
    figure::CPU_NS_PER_REQUEST.name,
    figure::CPU_US_PER_TRANSACTION.name,
    figure::CPU_PERCENT.name,
];

//! The disturbances of a measurement: each finding is a sentence with its number, written beside the sample it belongs to.

use std::path::Path;
use std::time::Duration;

use super::line;
use super::server::Usage;
use super::throttled::{Throttled, processors};

/// Returns the disturbances of the stretch of time in which this was used.
pub fn warnings(usage: &Usage) -> Vec<String> {
    beneath(Path::new("/"), usage)
}

fn beneath(root: &Path, usage: &Usage) -> Vec<String> {
    let found = [
        governor(&governors(root)),
        steal(usage),
        background(usage),
        heat(usage.throttled),
        quota(usage),
    ];
    found.into_iter().flatten().collect()
}

fn governor(governors: &[String]) -> Option<String> {
    let others = || governors.iter().filter(|name| *name != "performance");
    let other = others().next()?;
    Some(format!(
        "the frequency governor is `{other}`, not `performance`, on {} of {} processors: they change their speed",
        others().count(),
        governors.len()
    ))
}

fn steal(usage: &Usage) -> Option<String> {
    let percent = percent_of_core(usage.steal, usage);
    (percent > STEAL_PERCENT_MAX)
        .then(|| format!("the hypervisor took {percent:.1} % of a core away (steal time)"))
}

fn background(usage: &Usage) -> Option<String> {
    let percent = percent_of_core(usage.others, usage);
    if percent <= OTHERS_PERCENT_MAX {
        return None;
    }
    let names: Vec<String> = usage
        .background
        .iter()
        .map(|process| (&process.name, percent_of_core(process.cpu, usage)))
        .filter(|(_, percent)| *percent >= NAMED_PERCENT_MIN)
        .map(|(name, percent)| format!("{name} {percent:.1} %"))
        .collect();
    let who = if names.is_empty() { "all short-lived".to_owned() } else { names.join(", ") };
    Some(format!("other processes used {percent:.1} % of a core ({who})"))
}

fn heat(throttled: Throttled) -> Option<String> {
    let times = throttled.by_heat;
    (times > 0).then(|| format!("processors slowed down {times} times because they were too hot"))
}

fn quota(usage: &Usage) -> Option<String> {
    let percent = percent_of_core(usage.throttled.by_quota, usage);
    (percent > QUOTA_PERCENT_MAX).then(|| {
        format!(
            "this container's processor quota held its threads back for {percent:.1} % of the time"
        )
    })
}

fn percent_of_core(time: Duration, usage: &Usage) -> f64 {
    let elapsed = usage.elapsed.as_secs_f64();
    if elapsed > 0.0 { 100.0 * time.as_secs_f64() / elapsed } else { 0.0 }
}

fn governors(root: &Path) -> Vec<String> {
    let folders = processors(root).into_iter();
    folders.filter_map(|folder| line(folder.join("cpufreq/scaling_governor"))).collect()
}

const STEAL_PERCENT_MAX: f64 = 0.5;
const OTHERS_PERCENT_MAX: f64 = 3.0;
const NAMED_PERCENT_MIN: f64 = 0.5;
const QUOTA_PERCENT_MAX: f64 = 0.5;

#[cfg(test)]
mod tests;

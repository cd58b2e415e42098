//! What disturbs a measurement: each finding is a sentence with its number, written beside the sample it belongs to.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::server::Usage;
use super::{line, text};

/// What to hold against the usage of a stretch of time.
#[derive(Clone, Debug, Default)]
pub struct Disturbance {
    root: PathBuf,
    throttled: Throttled,
}

/// How often, or how long, the machine was held back since its boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Throttled {
    /// Times a processor became too hot.
    by_heat: u64,
    /// Time in which a container's share was used up.
    by_quota: Duration,
}

/// Begins to watch.
pub fn begin() -> Disturbance {
    Disturbance::beneath(Path::new("/"))
}

impl Disturbance {
    fn beneath(root: &Path) -> Self {
        Self { root: root.to_owned(), throttled: Throttled::read(root) }
    }

    /// What disturbed the stretch of time since the beginning, in which this was used.
    pub fn warnings(&self, usage: &Usage) -> Vec<String> {
        let now = Throttled::read(&self.root);
        let held_back = Throttled {
            by_heat: now.by_heat.saturating_sub(self.throttled.by_heat),
            by_quota: now.by_quota.saturating_sub(self.throttled.by_quota),
        };
        let found = [
            governor(&governors(&self.root)),
            steal(usage),
            background(usage),
            heat(held_back),
            quota(held_back, usage),
        ];
        found.into_iter().flatten().collect()
    }
}

impl Throttled {
    fn read(root: &Path) -> Self {
        let counts = processors(root).into_iter().flat_map(|folder| {
            ["core_throttle_count", "package_throttle_count"]
                .map(|name| line(folder.join("thermal_throttle").join(name)))
        });
        let by_heat = counts.flatten().filter_map(|count| count.parse::<u64>().ok());
        let own = text(root.join("proc/self/cgroup")).unwrap_or_default();
        let stats =
            cpu_stat_places(&own).into_iter().filter_map(|place| text(root.join(place)).ok());
        let by_quota = stats.map(|stat| throttled_time(&stat));
        Self {
            by_heat: by_heat.fold(0, u64::saturating_add),
            by_quota: by_quota.fold(Duration::ZERO, Duration::saturating_add),
        }
    }
}

fn governor(governors: &[String]) -> Option<String> {
    let other = governors.iter().find(|name| *name != "performance")?;
    let count = governors.iter().filter(|name| *name != "performance").count();
    Some(format!(
        "the frequency governor is `{other}`, not `performance`, on {count} of {} processors: they change their speed",
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
        .map(|background_process| {
            (background_process, percent_of_core(background_process.cpu, usage))
        })
        .filter(|(_, percent)| *percent >= NAMED_PERCENT_MIN)
        .map(|(background_process, percent)| format!("{} {percent:.1} %", background_process.name))
        .collect();
    let who = if names.is_empty() { "all short-lived".to_owned() } else { names.join(", ") };
    Some(format!("other processes used {percent:.1} % of a core ({who})"))
}

fn heat(held_back: Throttled) -> Option<String> {
    let times = held_back.by_heat;
    (times > 0).then(|| format!("processors slowed down {times} times because they were too hot"))
}

fn quota(held_back: Throttled, usage: &Usage) -> Option<String> {
    let percent = percent_of_core(held_back.by_quota, usage);
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

/// The folders `cpu0`, `cpu1` and so on.
fn processors(root: &Path) -> Vec<PathBuf> {
    let entries = root.join("sys/devices/system/cpu").read_dir();
    let is_processor = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        let number = name.and_then(|name| name.strip_prefix("cpu"));
        number.is_some_and(|it| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit()))
    };
    entries.into_iter().flatten().flatten().map(|entry| entry.path()).filter(is_processor).collect()
}

/// Where the groups this process is in say how long they were throttled: its own and all above, in either version of cgroups.
fn cpu_stat_places(own: &str) -> Vec<PathBuf> {
    let mut places = Vec::new();
    for line in own.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let mount = match controllers {
            "" => "sys/fs/cgroup",
            names if names.split(',').any(|name| name == "cpu") => "sys/fs/cgroup/cpu",
            _ => continue,
        };
        let group = Path::new(path.trim_start_matches('/'));
        for above in group.ancestors().take(GROUPS_MAX) {
            places.push(Path::new(mount).join(above).join("cpu.stat"));
        }
    }
    places
}

/// `throttled_usec` of cgroups 2, `throttled_time` in nanoseconds of cgroups 1.
fn throttled_time(text: &str) -> Duration {
    let value = |name: &str| {
        text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok())
    };
    let micros = value("throttled_usec ").map(Duration::from_micros);
    micros.or_else(|| value("throttled_time ").map(Duration::from_nanos)).unwrap_or_default()
}

const STEAL_PERCENT_MAX: f64 = 0.5;
const OTHERS_PERCENT_MAX: f64 = 3.0;
const NAMED_PERCENT_MIN: f64 = 0.5;
const QUOTA_PERCENT_MAX: f64 = 0.5;
const GROUPS_MAX: usize = 32;

#[cfg(test)]
mod tests;

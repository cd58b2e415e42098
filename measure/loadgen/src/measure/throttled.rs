//! The ways in which the machine, or the container, held processors back: by heat, or by a quota.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{line, text};

/// The number of times, or the time, since the boot or between two moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttled {
    /// Times a processor became too hot.
    pub by_heat: u64,
    /// Time in which a container's share was used up.
    pub by_quota: Duration,
}

impl Throttled {
    /// Since the boot of the machine beneath this root.
    pub(super) fn read(root: &Path) -> Self {
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

    pub(super) fn since(self, earlier: Self) -> Self {
        Self {
            by_heat: self.by_heat.saturating_sub(earlier.by_heat),
            by_quota: self.by_quota.saturating_sub(earlier.by_quota),
        }
    }
}

/// The folders `cpu0`, `cpu1` and so on.
pub(super) fn processors(root: &Path) -> Vec<PathBuf> {
    let entries = root.join("sys/devices/system/cpu").read_dir();
    let is_processor = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        let number = name.and_then(|name| name.strip_prefix("cpu"));
        number.is_some_and(|it| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit()))
    };
    entries.into_iter().flatten().flatten().map(|entry| entry.path()).filter(is_processor).collect()
}

/// The files where the groups this process is in say how long they were throttled: its own and all above, in either version of
/// cgroups.
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

const GROUPS_MAX: usize = 32;

#[cfg(test)]
mod tests;

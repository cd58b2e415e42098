//! The limits that the control groups of this process let it use: processor time and memory, in
//! version 2 and version 1.
//!
//! A limit of any parent holds for its children, so the whole path is looked at, up to where the hierarchy is mounted.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

/// The tightest limits along the path; `None` is no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Processors' worth of time (`cpu.max`, or `cpu.cfs_quota_us` for each `cpu.cfs_period_us`).
    pub processors: Option<f64>,
    /// Bytes of memory (`memory.max`, or `memory.limit_in_bytes`).
    pub memory_bytes: Option<u64>,
}

impl Limits {
    /// Those of this process, as far as they can be read.
    #[must_use]
    pub fn of_this_process() -> Self {
        Self::below(Path::new("/"))
    }

    /// The same for a machine whose files lie below a folder.
    #[must_use]
    pub fn below(root: &Path) -> Self {
        let text = |path: &Path| {
            std::fs::read_to_string(root.join(path.strip_prefix("/").unwrap_or(path))).ok()
        };
        let groups = text(Path::new("/proc/self/cgroup")).unwrap_or_default();
        let mounts = text(Path::new("/proc/self/mountinfo")).unwrap_or_default();
        let mut limits = Self::default();
        for mount in mounts.lines().filter_map(Mount::parse) {
            let path = groups.lines().find_map(|line| mount.path_of_group(line));
            let Some(path) = path else { continue };
            // Up to the mount itself, which in a container is the container's own group.
            for folder in path.ancestors().take_while(|folder| folder.starts_with(&mount.at)) {
                limits.tighten(mount.version, |name| text(&folder.join(name)));
            }
        }
        limits
    }

    fn tighten(&mut self, version: Version, text: impl Fn(&str) -> Option<String>) {
        let (processors, memory) = match version {
            Version::Two => (
                text("cpu.max").and_then(|it| quota(&it)),
                text("memory.max").and_then(|it| it.trim().parse().ok()),
            ),
            Version::One => {
                let quota_text = |name| Some(text(name)?.trim().to_owned());
                let processors =
                    quota_text("cpu.cfs_quota_us").zip(quota_text("cpu.cfs_period_us"));
                let memory = text("memory.limit_in_bytes").and_then(|it| it.trim().parse().ok());
                (
                    processors
                        .and_then(|(quota_us, period)| quota(&format!("{quota_us} {period}"))),
                    // "No limit" is the largest number of whole pages.
                    memory.filter(|bytes| *bytes < NO_LIMIT_BYTES_MIN),
                )
            }
        };
        self.processors = least(self.processors, processors, f64::min);
        self.memory_bytes = least(self.memory_bytes, memory, u64::min);
    }
}

/// A mounted hierarchy of groups.
#[derive(Debug, PartialEq)]
struct Mount {
    version: Version,
    /// Which group is at the mount.
    group: PathBuf,
    /// The path at which it is mounted.
    at: PathBuf,
    /// The controllers of version 1.
    controllers: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Version {
    One,
    Two,
}

impl Mount {
    /// Reads a line of `/proc/self/mountinfo` (proc_pid_mountinfo(5)).
    fn parse(line: &str) -> Option<Self> {
        let (mount, file_system) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let group = fields.next()?;
        let at = fields.next()?;
        let mut fields = file_system.split(' ');
        let version = match fields.next()? {
            "cgroup2" => Version::Two,
            "cgroup" => Version::One,
            _ => return None,
        };
        let controllers = fields.nth(1).unwrap_or_default().split(',').map(str::to_owned).collect();
        Some(Self { version, group: group.into(), at: at.into(), controllers })
    }

    /// The folder of the group that a line of `/proc/self/cgroup` names, if that is of this hierarchy.
    fn path_of_group(&self, line: &str) -> Option<PathBuf> {
        let mut fields = line.splitn(3, ':').skip(1);
        let controllers = fields.next()?;
        let group = fields.next()?;
        let is_ours = match self.version {
            Version::Two => controllers.is_empty(),
            Version::One => {
                let mut named = controllers.split(',').filter(|name| !name.is_empty());
                named.any(|name| self.controllers.iter().any(|known| known == name))
            }
        };
        // A group outside of what is mounted cannot be seen; what is mounted limits it all the same.
        let below = Path::new(group).strip_prefix(&self.group).unwrap_or(Path::new(""));
        let is_plain = below.components().all(|it| matches!(it, std::path::Component::Normal(_)));
        is_ours.then(|| if is_plain { self.at.join(below) } else { self.at.clone() })
    }
}

/// Processors' worth of `QUOTA PERIOD`, in microseconds; `max` and negative quotas are none.
fn quota(text: &str) -> Option<f64> {
    let (quota, period) = text.trim().split_once(' ')?;
    let (quota, period): (i64, u32) = (quota.parse().ok()?, period.trim().parse().ok()?);
    let quota = u32::try_from(quota).ok().filter(|quota| *quota > 0)?;
    (period > 0).then(|| f64::from(quota) / f64::from(period))
}

fn least<T>(left: Option<T>, right: Option<T>, least_of: fn(T, T) -> T) -> Option<T> {
    match (left, right) {
        (Some(left), Some(right)) => Some(least_of(left, right)),
        (left, right) => left.or(right),
    }
}

const NO_LIMIT_BYTES_MIN: u64 = 1 << 62;

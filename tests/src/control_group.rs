//! Control groups made for one test, and gone with it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::environment::patience;

/// A group with limits: one folder in version 2, one for each controller in version 1.
pub struct ControlGroup(Vec<PathBuf>);

impl ControlGroup {
    /// A group that may use a part of one processor and so much memory; the reason if none can be made here.
    ///
    /// # Errors
    /// As text for a person.
    pub fn limited(processors: f64, memory_bytes: u64) -> Result<Self, String> {
        let name = format!("kettle-test-{}", std::process::id());
        let quota_us = (processors * f64::from(PERIOD_US)).to_string();
        let memory = memory_bytes.to_string();
        let mut made = Self(Vec::new());
        if Path::new(ROOT).join("cgroup.controllers").exists() {
            let _ = fs::write(Path::new(ROOT).join("cgroup.subtree_control"), "+cpu +memory");
            let group = made.folder(Path::new(ROOT).join(name))?;
            write(&group, "cpu.max", &format!("{quota_us} {PERIOD_US}"))?;
            write(&group, "memory.max", &memory)?;
        } else {
            let time = made.folder(Path::new(ROOT).join("cpu").join(&name))?;
            write(&time, "cpu.cfs_quota_us", &quota_us)?;
            let group = made.folder(Path::new(ROOT).join("memory").join(&name))?;
            write(&group, "memory.limit_in_bytes", &memory)?;
        }
        Ok(made)
    }

    /// A group whose threads can be [bounded](Self::bound_threads); the reason if none can be made here.
    ///
    /// # Errors
    /// As text for a person.
    pub fn of_threads() -> Result<Self, String> {
        let name = format!("kettle-test-{}-threads", std::process::id());
        let root = Path::new(ROOT);
        let mut made = Self(Vec::new());
        if root.join("cgroup.controllers").exists() {
            let _ = fs::write(root.join("cgroup.subtree_control"), "+pids");
            made.folder(root.join(name))?;
        } else {
            made.folder(root.join("pids").join(name))?;
        }
        made.bound_threads("max")?;
        Ok(made)
    }

    /// Lets it begin no thread beyond this many, or as many as it likes (`max`).
    ///
    /// # Errors
    /// As text for a person.
    pub fn bound_threads(&self, max: &str) -> Result<(), String> {
        self.0.iter().try_for_each(|group| write(group, "pids.max", max))
    }

    fn folder(&mut self, path: PathBuf) -> Result<PathBuf, String> {
        fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        self.0.push(path.clone());
        Ok(path)
    }

    /// Words that start a program in the group.
    #[must_use]
    pub fn launcher(&self) -> Vec<String> {
        let enter = |group: &PathBuf| format!("echo $$ >{}/cgroup.procs && ", group.display());
        let script = self.0.iter().map(enter).collect::<String>() + "exec \"$@\"";
        ["sh", "-c", &script, "sh"].map(str::to_owned).to_vec()
    }
}

fn write(group: &Path, name: &str, value: &str) -> Result<(), String> {
    fs::write(group.join(name), value).map_err(|error| format!("{name}: {error}"))
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        let deadline = Instant::now() + patience();
        for group in &self.0 {
            // A process that was killed leaves its group a moment later.
            while fs::remove_dir(group).is_err() && Instant::now() < deadline {
                std::thread::yield_now();
            }
        }
    }
}

const ROOT: &str = "/sys/fs/cgroup";

const PERIOD_US: u32 = 100_000;

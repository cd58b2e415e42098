//! Builds the workspace once, with everything the stages run, and finds the programs among what cargo made. Those who work on the
//! server can leave out what measures servers.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::{checkout, process};

/// Which packages are looked at, compiled and tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Everything,
    /// All but the packages below `measure/`.
    Server,
}

impl Scope {
    /// The packages, as cargo wants them named.
    pub fn words(self) -> &'static [&'static str] {
        match self {
            Self::Everything => &["--workspace"],
            Self::Server => {
                &["--workspace", "--exclude", "kettle-bench", "--exclude", "kettle-loadgen"]
            }
        }
    }
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Programs {
    pub kettle: PathBuf,
    /// The program beside it that measures, unless it is left out.
    pub kettle_bench: Option<PathBuf>,
    /// The tests of the crates, the harness of the end-to-end suite among them.
    pub units: Vec<TestProgram>,
    /// The tests of the crates that measure.
    pub measuring: Vec<TestProgram>,
    pub suite: Vec<TestProgram>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestProgram {
    pub path: PathBuf,
    /// The folder of its package, in which cargo would run it.
    pub folder: PathBuf,
    /// If it is run on every kernel too, the words that say which of its tests.
    pub on_kernels: Option<&'static [&'static str]>,
}

impl Programs {
    /// Returns the tests for every kernel: those of the crates next to it, which say what is wrong below the server, then the
    /// suite.
    pub fn for_kernels(&self) -> Vec<&TestProgram> {
        self.units
            .iter()
            .filter(|program| program.on_kernels.is_some())
            .chain(&self.suite)
            .collect()
    }
}

/// Builds all targets in one go: one choice of features for all, so that no dependency is built twice.
pub fn build(scope: Scope) -> Result<Programs, String> {
    let mut command = checkout::cargo();
    command.arg("build").args(scope.words());
    command.args(["--all-targets", "--message-format=json-render-diagnostics"]);
    let messages = process::read_showing_errors(&mut command)?;
    find(&messages, &checkout::workspace(), scope)
}

fn find(messages: &str, workspace: &Path, scope: Scope) -> Result<Programs, String> {
    let mut programs = Programs::default();
    for message in messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let (Some(manifest), Some(executable)) =
            (message["manifest_path"].as_str(), message["executable"].as_str())
        else {
            continue;
        };
        let Ok(manifest) = Path::new(manifest).strip_prefix(workspace) else { continue };
        let is_test = message["profile"]["test"].as_bool().unwrap_or(false);
        let kind = message["target"]["kind"][0].as_str().unwrap_or_default();
        let package = manifest.parent().unwrap_or(manifest);
        let path = PathBuf::from(executable);
        if !is_test {
            match package.to_str() {
                Some("crates/app") if kind == "bin" => programs.kettle = path,
                Some("measure/bench") if kind == "bin" => programs.kettle_bench = Some(path),
                _ => {}
            }
            continue;
        }
        let mut on_kernels = RUN_ON_KERNELS.iter();
        let on_kernels = on_kernels.find(|it| Path::new(it.0) == package && it.1 == kind);
        let on_kernels = on_kernels.map(|(_, _, words)| *words);
        let program = TestProgram { path, folder: workspace.join(package), on_kernels };
        if package == Path::new("tests") && kind == "test" {
            programs.suite.push(program);
        } else if package.starts_with("measure") {
            programs.measuring.push(program);
        } else {
            programs.units.push(program);
        }
    }
    if programs.kettle.as_os_str().is_empty() {
        return Err("cargo built no kettle".into());
    }
    if scope == Scope::Everything && programs.kettle_bench.is_none() {
        return Err("cargo built no kettle-bench".into());
    }
    for list in [&mut programs.units, &mut programs.measuring, &mut programs.suite] {
        list.sort_by(|one, other| one.path.cmp(&other.path));
    }
    Ok(programs)
}

/// Package and kind of the crates' tests that meet the kernel, and which of them do: what is said of bytes alone is the same on
/// each, and takes an emulator minutes.
const RUN_ON_KERNELS: &[(&str, &str, &[&str])] = &[
    ("crates/kernel", "lib", &[]),
    ("crates/kernel", "test", &[]),
    ("crates/tls", "lib", &["stream::", "--skip", "::differential::", "--skip", "::exceptions::"]),
    ("crates/tls", "test", &["--skip", "both_directions_flow_at_once_in_user_space"]),
    ("crates/server", "lib", &["relay::tests::kernel::"]),
];

#[cfg(test)]
mod tests;

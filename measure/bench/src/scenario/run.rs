//! A whole run: checks what it needs, opens the results, makes one comparison after the other, and cleans up.

use std::path::{Path, PathBuf};

use kettle_loadgen::measure::machine::Machine;

use super::bench::Bench;
use super::error::BenchError;
use super::event::Event;
use super::options::{Options, OwnNginx};
use super::plan::{Key, Remaining, Taken};
use super::server::BEGIN_ANEW;
use super::stop::Stop;
use super::{SCENARIOS, Scenario, cores, find, heed, rules};
use crate::number;
use crate::peers::subject::{OwnConfig, Program, Role};
use crate::peers::{self, own_config};
use crate::results::read::{Results, read};
use crate::results::write::Writer;
use crate::results::{Clock, FORMAT, Line, REST, Run, ScenarioLine};

#[derive(Clone, Debug)]
pub struct Request {
    /// The scenarios' names; empty goes on with those of the results.
    pub names: Vec<String>,
    pub options: Options,
    pub results: PathBuf,
    /// True if the results file is there and to be gone on with.
    pub resumes: bool,
    pub kettle: String,
    /// The commit it was built from, if known.
    pub commit: Option<String>,
    pub command: Vec<String>,
    pub folder: Option<PathBuf>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    pub stopped: bool,
    /// Scenarios that could not be made, with the reason.
    pub failed: Vec<(String, String)>,
}

/// Runs; `on_event` is told what happens, on the calling thread.
///
/// # Errors
/// [`BenchError`] if the options do not fit together, or a file cannot be read or written. A scenario that fails is in [`Ended::failed`].
pub fn run(
    request: &Request,
    stop: &Stop,
    on_event: &mut dyn FnMut(Event<'_>),
) -> Result<Ended, BenchError> {
    let machine = Machine::read();
    let earlier = earlier(request, &machine)?;
    let scenarios = scenarios(request, &earlier)?;
    heed::check(&scenarios, &request.options)?;
    let cores = cores::choose(&request.options)?;
    // A refusal until here leaves no results behind.
    let mut writer = open(request)?;
    // Refusals come from the scenarios, which know how many they need.
    let _ = kettle_kernel::process::raise_open_files_limit();
    let folder = working_folder(&request.options)?;
    let request = &by_own_nginx(request, folder.path())?;
    writer.write(&Line::Run(this_run(request, machine))).map_err(BenchError::Results)?;
    for warning in &cores.warnings {
        on_event(Event::Note(warning));
    }
    let mut samples = earlier.samples.clone();
    let mut ended = Ended::default();
    for scenario in scenarios {
        if earlier.is_complete(scenario.name) {
            on_event(Event::Note(&format!("{} is complete already", scenario.name)));
            continue;
        }
        let name = scenario.name;
        let folder = folder.path().join(name);
        std::fs::create_dir_all(&folder).map_err(BenchError::file(&folder))?;
        let mut taken = Taken::default();
        samples.iter().for_each(|sample| taken.add(&Key::of(sample)));
        let outcome = run_one(
            scenario,
            Bench {
                options: &request.options,
                cores: &cores,
                scenario: name,
                folder: &folder,
                site: None,
                backend: None,
                write: &mut |line| writer.write(line).map_err(BenchError::Results),
                on_event,
                samples: &mut samples,
                earlier: &earlier.subjects,
                taken,
                remaining: Remaining::default(),
                stop,
            },
        );
        // The next scenario may need the room.
        let _ = std::fs::remove_dir_all(&folder);
        match outcome {
            Ok(()) => {}
            Err(BenchError::Stopped) => {
                ended.stopped = true;
                break;
            }
            Err(error @ (BenchError::Broken(_) | BenchError::Results(_))) => return Err(error),
            Err(error) => ended.failed.push((scenario.name.to_owned(), error.to_string())),
        }
    }
    Ok(ended)
}

/// Measures, with the lines around what is measured.
fn run_one(scenario: &Scenario, mut bench: Bench<'_>) -> Result<(), BenchError> {
    let Scenario { name, title, .. } = *scenario;
    let rules = [rules::usual(bench.options), (scenario.rules)(bench.options)].concat();
    let line = ScenarioLine { name: name.to_owned(), rules: rules.clone() };
    (bench.write)(&Line::Scenario(line))?;
    (bench.on_event)(Event::Scenario { name, title, rules: &rules });
    let outcome = (scenario.run)(&mut bench);
    match &outcome {
        Ok(()) => (bench.write)(&Line::Complete { scenario: name.to_owned() })?,
        // A further line behind half a line would make the file unreadable.
        Err(BenchError::Stopped | BenchError::Results(_)) => {}
        Err(error) => bench.absent(REST, error)?,
    }
    outcome
}

/// The scenarios asked for, each once, in their own order.
fn scenarios(request: &Request, earlier: &Results) -> Result<Vec<&'static Scenario>, BenchError> {
    let begun = || earlier.scenarios.iter().map(|scenario| scenario.name.clone()).collect();
    let names: Vec<String> = match request.names.as_slice() {
        [] => begun(),
        names => names.to_vec(),
    };
    if let Some(unknown) = names.iter().find(|name| *name != ALL && find(name).is_none()) {
        let known: Vec<_> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
        let known = known.join(", ");
        return Err(BenchError::Refused(format!(
            "there is no comparison {unknown}; there are {known} and all"
        )));
    }
    let is_asked =
        |scenario: &&Scenario| names.iter().any(|name| name == ALL || name == scenario.name);
    Ok(SCENARIOS.iter().filter(is_asked).collect())
}

fn earlier(request: &Request, machine: &Machine) -> Result<Results, BenchError> {
    let path = &request.results;
    if !request.resumes {
        return Ok(Results::default());
    }
    let earlier = read(path).map_err(BenchError::Results)?;
    may_go_on(&earlier, machine, request)
        .map_err(|why| BenchError::Results(format!("{}: {why}", path.display())))?;
    Ok(earlier)
}

/// The results file to write to, in a folder that may have to be made.
fn open(request: &Request) -> Result<Writer, BenchError> {
    let path = &request.results;
    if request.resumes {
        return Writer::append(path).map_err(BenchError::Results);
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(BenchError::file(folder))?;
    }
    Writer::create(path).map_err(BenchError::Results)
}

/// Samples of two machines or two programs do not belong into one comparison.
fn may_go_on(earlier: &Results, machine: &Machine, request: &Request) -> Result<(), String> {
    let commit = request.commit.as_deref().unwrap_or("?");
    for run in &earlier.runs {
        let then = &run.machine;
        for (what, now, then) in [
            ("kettle-bench", request.kettle.as_str(), run.kettle.as_str()),
            ("the commit", commit, run.commit.as_deref().unwrap_or("?")),
            ("the kernel", &machine.kernel, &then.kernel),
            ("the processor", &machine.processor, &then.processor),
        ] {
            if now != then {
                return Err(format!("{what} is {now} and was {then}{BEGIN_ANEW}"));
            }
        }
        if machine.cpus != then.cpus {
            return Err(format!(
                "this machine has {} processors and had {}{BEGIN_ANEW}",
                machine.cpus, then.cpus
            ));
        }
        if run.clock != Clock::Time {
            return Err(format!("it counts work, not time{BEGIN_ANEW}"));
        }
    }
    Ok(())
}

fn this_run(request: &Request, machine: Machine) -> Run {
    Run {
        format: FORMAT,
        started: number::now(),
        kettle: request.kettle.clone(),
        commit: request.commit.clone(),
        command: request.command.clone(),
        folder: request.folder.clone(),
        machine,
        clock: Clock::Time,
    }
}

/// A folder of this run's own, which is gone when the run is over.
fn working_folder(options: &Options) -> Result<tempfile::TempDir, BenchError> {
    let parent = options.directory.clone().unwrap_or_else(std::env::temp_dir);
    tempfile::Builder::new()
        .prefix("kettle-bench-")
        .tempdir_in(&parent)
        .map_err(BenchError::file(&parent))
}

/// If `--config` names an nginx.conf as it is in use, both servers are measured by what it says.
fn by_own_nginx(request: &Request, folder: &Path) -> Result<Request, BenchError> {
    let mut request = request.clone();
    let options = &mut request.options;
    let Some(OwnConfig::Template(file)) = options.config(Program::Nginx).cloned() else {
        return Ok(request);
    };
    let Some(own) = own_config::ImportedNginx::of(&file).map_err(BenchError::Refused)? else {
        return Ok(request);
    };
    if options.roles.iter().flatten().any(|role| *role != Role::Files) {
        let why = "an nginx.conf of your own is measured as a file server; write --roles files";
        return Err(BenchError::Refused(why.to_owned()));
    }
    // nginx asks the kernel and does without where it refuses.
    let lacks = peers::kernel_lacks(&rules::offer(options)).is_some();
    let path = if lacks { peers::subject::SubjectPath::User } else { own.path };
    let template = folder.join("own-nginx.conf");
    std::fs::write(&template, own.template).map_err(BenchError::file(&template))?;
    options.configs.push((Program::Nginx, OwnConfig::Template(template.clone())));
    if options.config(Program::Kettle).is_none() {
        options.configs.push((Program::Kettle, OwnConfig::OfNginx(template)));
    }
    options.own_nginx = Some(OwnNginx { file, path });
    Ok(request)
}

const ALL: &str = "all";

#[cfg(test)]
mod tests;

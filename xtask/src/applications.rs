//! `cargo xtask applications`: applications that others wrote, behind nginx and behind kettle with the same nginx.conf. A person's
//! steps are done by script: to log in, to send files, to fetch them, to hear events. Prints a table, and writes it to a file.
//!
//! This file installs; `tests/applications` has the configurations, the steps, and what they run in.

mod parts;
mod results;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

use crate::files::{self, create_folder, remove_folder};
use crate::process::{self, Exit};
use crate::{checkout, packages};

pub fn run(arguments: &[String]) -> Result<ExitCode, String> {
    let mut write = None;
    let mut names = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--write" => write = Some(PathBuf::from(words.next().ok_or("--write takes a file")?)),
            name if parts::ALL.contains(&name) => names.push(name),
            name => {
                return Err(format!("no application `{name}`; there is {}", parts::ALL.join(", ")));
            }
        }
    }
    let names = if names.is_empty() { parts::ALL.to_vec() } else { names };
    packages::ensure_servers(&[parts::DEBIAN, &parts::debian_of(&names)].concat())?;
    process::run(checkout::cargo().args(["build", "--quiet", "--package", "kettle"]))?;
    let folder = checkout::target_folder().join("applications");
    remove_folder(&folder)?;
    create_folder(&folder)?;
    let (parts, missing) = parts::fetch(&names, &folder.join("parts"))?;
    let there: Vec<&str> =
        names.into_iter().filter(|name| !missing.iter().any(|(other, _)| other == name)).collect();
    let results = folder.join("results.json");
    let mut command = alone(&folder.join("machine"), &parts);
    command
        .args(["/usr/bin/python3", "-B"])
        .arg(checkout::workspace().join("tests/applications/applications.py"))
        .arg("--kettle")
        .arg(checkout::target_folder().join("debug/kettle"))
        .args(["--parts", "/run/parts"])
        .arg("--results")
        .arg(&results)
        .arg("--logs")
        .arg(folder.join("logs"))
        .args(&there);
    let limit = LIMIT * u32::try_from(there.len()).unwrap_or(u32::MAX);
    let ending = process::follow(&mut command, limit, &mut std::io::stdout(), &mut |_| {})?;
    let text = files::read(&results)?;
    let table = results::Results::read(&text)?;
    print!("{}", table.written(&missing));
    if let Some(file) = write {
        files::write(&file, table.written(&missing))?;
    }
    println!("what the programs said: {}", folder.join("logs").display());
    let is_well = matches!(ending, Exit::Exited(status) if status.success()) && missing.is_empty();
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A command on a machine of its own, as far as it sees; its processes end with it.
fn alone(folder: &Path, parts: &Path) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount", "--pid", "--fork", "--kill-child", "sh"]);
    command.arg(checkout::workspace().join("tests/applications/alone.sh")).arg(folder).arg(parts);
    command
}

/// For one application, behind both.
const LIMIT: Duration = Duration::from_mins(10);

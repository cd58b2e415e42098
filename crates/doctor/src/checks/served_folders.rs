//! The file systems of the served folders: whether a server knows beforehand which reads would wait for a disk.

use std::fs::File;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;
use std::{io, thread};

use kettle_kernel::file_system::{Disclosure, FileSystem};

use crate::finding::Finding;
use crate::machine::Machine;

pub(crate) fn check(machine: &Machine) -> Option<Finding> {
    let mut sentences = Vec::new();
    let mut steps: Vec<&str> = Vec::new();
    for folder in &machine.folders {
        let (sentence, step) = look(folder);
        sentences.push(sentence);
        steps.extend(step.filter(|step| !steps.contains(step)));
    }
    let message = sentences.join("; ");
    let finding = match steps.as_slice() {
        [] if sentences.is_empty() => return None,
        [] => Finding::good(NAME, message),
        _ => Finding::warning(NAME, message),
    };
    Some(steps.into_iter().fold(finding, Finding::fix))
}

/// Returns where a folder lies, and what to do about it. A file system that never answers keeps a thread, not the doctor.
fn look(folder: &Path) -> (String, Option<&'static str>) {
    let (answer, answered) = mpsc::channel();
    let path = folder.to_owned();
    // The receiver may have gone.
    thread::spawn(move || drop(answer.send(ask(&path))));
    match answered.recv_timeout(PATIENCE) {
        Ok(Ok((file_system, disclosure))) => {
            (disclosure.sentence(folder, file_system), disclosure.advice())
        }
        Ok(Err(error)) => (
            format!("{} cannot be opened: {error}", folder.display()),
            Some("`kettle check` says what the serving user lacks"),
        ),
        Err(_) => {
            (format!("{} does not answer", folder.display()), Disclosure::MayNeverAnswer.advice())
        }
    }
}

fn ask(folder: &Path) -> io::Result<(FileSystem, Disclosure)> {
    let folder = File::open(folder)?;
    let file_system = FileSystem::of(folder.as_fd())?;
    Ok((file_system, Disclosure::of(folder.as_fd(), file_system)))
}

const NAME: &str = "served folders";
const PATIENCE: Duration = Duration::from_secs(2);

//! The rights that a serving process can give up on this kernel, and in this container.

use crate::finding::Finding;
use crate::machine::Machine;

pub(crate) fn check(machine: &Machine) -> Option<Finding> {
    let mut missing = Vec::new();
    let done = match &machine.landlock {
        Ok(version) => format!("Landlock {version} confines what is opened"),
        Err(reason) => {
            missing.push(format!("what is opened is not confined: {reason}"));
            String::new()
        }
    };
    if let Err(reason) = &machine.seccomp {
        missing.push(format!("all system calls are there: {reason}"));
    }
    if missing.is_empty() {
        return Some(Finding::good(NAME, format!("{done}, seccomp which system calls are there")));
    }
    Some(Finding::warning(NAME, missing.join("; ")).fix(format!("see {PAGE}")))
}

const NAME: &str = "sandbox";
const PAGE: &str = "https://github.com/kettle-tls/kettle/blob/main/docs/starting.md#the-sandbox";

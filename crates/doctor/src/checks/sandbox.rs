//! What a serving process can give up on this kernel.

use crate::finding::Finding;
use crate::machine::Machine;

pub(crate) fn check(machine: &Machine) -> Option<Finding> {
    Some(match &machine.landlock {
        Ok(version) => Finding::good(NAME, format!("Landlock {version} confines what is opened")),
        Err(reason) => Finding::warning(NAME, format!("what is opened is not confined: {reason}"))
            .fix(format!("see {PAGE}")),
    })
}

const NAME: &str = "sandbox";
const PAGE: &str = "https://github.com/kettle-tls/kettle/blob/main/docs/operations.md#the-sandbox";

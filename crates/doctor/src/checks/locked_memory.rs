//! The memory that this user may lock.

use crate::finding::Finding;
use crate::machine::Machine;

pub(crate) fn check(machine: &Machine) -> Option<Finding> {
    let shown = match machine.locked_memory.maximum {
        None => "no limit".to_owned(),
        Some(bytes) => format!("{} KiB allowed", bytes / 1024),
    };
    // MSG_ZEROCOPY and io_uring would count against it; kTLS refuses the first and kettle does not use the second.
    Some(Finding::good(NAME, format!("{shown}; kettle locks none")))
}

const NAME: &str = "locked memory";

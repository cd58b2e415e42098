//! The newer options of kernel TLS sockets; useful to some, needed by nobody.

use kettle_kernel::probe::ProbeOutcome;

use crate::finding::Finding;
use crate::machine::Machine;

pub(crate) fn check(machine: &Machine) -> Option<Finding> {
    if !machine.carries_tx() {
        return None;
    }
    let found = &machine.capabilities;
    let word = |outcome: &ProbeOutcome| if outcome.is_ok() { "yes" } else { "no" };
    Some(Finding::good(
        NAME,
        format!(
            "zero-copy sendfile (cards only): {}; record size limit: {}",
            word(&found.zero_copy_read_only),
            word(&found.max_payload_length),
        ),
    ))
}

const NAME: &str = "socket options";

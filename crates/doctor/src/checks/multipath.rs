//! Multipath TCP, whose connections cannot carry kernel TLS.

use crate::finding::Finding;
use crate::machine::Machine;

pub(crate) fn check(machine: &Machine) -> Option<Finding> {
    let text = machine.text("proc/sys/net/mptcp/enabled")?;
    Some(Finding::good(
        NAME,
        match text.trim() {
            "0" => "switched off",
            _ => "available; connections that use it stay in user space",
        },
    ))
}

const NAME: &str = "Multipath TCP";

//! sendfile and splice into a kernel TLS socket.

use crate::finding::Finding;
use crate::machine::Machine;

pub(crate) fn check(machine: &Machine) -> Option<Finding> {
    if !machine.carries_tx() {
        return None;
    }
    let found = &machine.capabilities;
    Some(match (&found.sendfile, &found.splice) {
        (Ok(()), Ok(())) => Finding::good(NAME, "sendfile and splice work and leave TLS records"),
        (Ok(()), Err(reason)) => Finding::warning(NAME, format!("sendfile works; {reason}"))
            .fix("only tunnels use splice; files are not affected"),
        (Err(reason), _) => Finding::bad(NAME, reason.clone())
            .fix("set path = \"kernel-write\" for the listener, and report this kernel"),
    })
}

const NAME: &str = "file transfer";

//! Tells whether keys can be changed while a connection is in the kernel.

use crate::finding::Finding;
use crate::machine::Machine;

pub(crate) fn check(machine: &Machine) -> Option<Finding> {
    if !machine.carries_tx() {
        return None;
    }
    Some(if machine.capabilities.carries_rekey() {
        Finding::good(NAME, "the kernel changes keys in both directions")
    } else {
        let message = "the kernel cannot change keys: a client that asks for it gets its response and a \
                       clean close";
        Finding::warning(NAME, message).fix("boot Linux 6.14 or later")
    })
}

const NAME: &str = "key updates";

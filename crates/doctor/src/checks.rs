//! The checks, in the order of the screen: one file each. A check without anything to say on a machine is left out.

mod aes_gcm_driver;
mod boot;
mod connection_tracking;
mod control_group;
mod interrupts;
mod kernel;
mod key_updates;
mod known_bugs;
mod locked_memory;
mod low_water_mark;
mod module;
mod multipath;
mod network_cards;
mod open_files;
mod option;
mod page_clearing;
mod processor;
mod sandbox;
mod served_folders;
mod socket_options;
mod suites;
#[cfg(test)]
mod tests;
mod transfer;

pub(crate) use suites::NAME as SUITES;

use crate::finding::Finding;
use crate::machine::Machine;

/// Every check.
pub(crate) const ALL: [fn(&Machine) -> Option<Finding>; 22] = [
    kernel::check,
    option::check,
    module::check,
    boot::check,
    suites::check,
    key_updates::check,
    transfer::check,
    socket_options::check,
    known_bugs::check,
    aes_gcm_driver::check,
    processor::check,
    network_cards::check,
    interrupts::check,
    low_water_mark::check,
    page_clearing::check,
    multipath::check,
    open_files::check,
    connection_tracking::check,
    locked_memory::check,
    control_group::check,
    sandbox::check,
    served_folders::check,
];

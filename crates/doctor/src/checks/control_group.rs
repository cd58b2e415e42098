//! The limits of the control groups of this process for a server started here.

use kettle_kernel::cgroup::Limits;

use crate::finding::Finding;
use crate::machine::Machine;

pub(crate) fn check(machine: &Machine) -> Option<Finding> {
    let Limits { processors, memory_bytes } = Limits::below(&machine.root);
    if processors.is_none() && memory_bytes.is_none() {
        return None;
    }
    let time = processors.map_or("all processor time".to_owned(), |quota| {
        format!("the time of {quota} processors, so as many workers at most")
    });
    let memory = memory_bytes.map_or("all memory".to_owned(), |bytes| {
        format!("{} MiB of memory, half of which workers keep by default", bytes >> 20)
    });
    Some(Finding::good("control group", format!("{time}; {memory}")))
}

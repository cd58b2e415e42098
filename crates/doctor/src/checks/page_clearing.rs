//! `init_on_alloc`: whether the kernel clears pages before it encrypts into them.

use kettle_kernel::process::init_on_alloc;

use crate::finding::Finding;
use crate::machine::Machine;

pub(crate) fn check(machine: &Machine) -> Option<Finding> {
    let command_line = machine.text("proc/cmdline")?;
    let config = machine.kernel_config();
    let built = config.map(|config| config.option("CONFIG_INIT_ON_ALLOC_DEFAULT_ON") == Some("y"));
    // It protects against leaks and costs little, so it is no reason for a warning.
    Some(match init_on_alloc(&command_line).or(built) {
        Some(true) => Finding::good(NAME, "init_on_alloc=1: sending writes each byte once more"),
        Some(false) => Finding::good(NAME, "init_on_alloc=0: pages are not cleared before use"),
        None => Finding::good(NAME, "init_on_alloc: this kernel's default"),
    })
}

const NAME: &str = "page clearing";

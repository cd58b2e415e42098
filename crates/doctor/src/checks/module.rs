//! Whether the module is loaded and TCP lists it.

use super::boot;
use crate::finding::Finding;
use crate::machine::Machine;

pub(crate) fn check(machine: &Machine) -> Option<Finding> {
    let listed = machine.text("proc/sys/net/ipv4/tcp_available_ulp").unwrap_or_default();
    let is_listed = listed.split_ascii_whitespace().any(|name| name == "tls");
    let is_loaded = machine.has_loaded("tls");
    if is_listed {
        let how = if is_loaded { "loaded" } else { "part of the kernel" };
        let all = listed.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
        return Some(Finding::good(NAME, format!("{how}; TCP offers: {all}")));
    }
    // Without CONFIG_TLS there is no module to load, and the line above this one says so.
    if machine.kernel_config().is_some_and(|config| config.option("CONFIG_TLS").is_none()) {
        return None;
    }
    let finding = if is_loaded {
        Finding::warning(NAME, "loaded, but TCP does not list it in tcp_available_ulp")
    } else {
        Finding::bad(NAME, "not loaded")
    };
    if machine.text(NO_MORE_MODULES).is_some_and(|text| text.trim() == "1") {
        return Some(
            finding
                .fix("kernel.modules_disabled=1: load it at boot instead, before that is set")
                .fix(machine.write_as_root("tls", boot::FILE)),
        );
    }
    let load = machine.as_root("modprobe tls");
    Some(if boot::may_load(machine) {
        finding.fix(load)
    } else {
        finding.fix(format!("{load}   # this process may not load modules itself"))
    })
}

const NAME: &str = "tls module";
const NO_MORE_MODULES: &str = "proc/sys/kernel/modules_disabled";

//! Tells whether the module is loaded and TCP lists it.

use super::boot;
use crate::finding::Finding;
use crate::machine::Machine;

pub(crate) fn check(machine: &Machine) -> Option<Finding> {
    let how = || if machine.has_loaded("tls") { "loaded" } else { "part of the kernel" };
    match machine.text(LIST) {
        Some(listed) if names_tls(&listed) => {
            let all = listed.split_ascii_whitespace().collect::<Vec<_>>().join(" ");
            return Some(Finding::good(NAME, format!("{}; TCP offers: {all}", how())));
        }
        None if is_there(machine) => {
            let how = if machine.carries_tx() { "in use" } else { how() };
            return Some(Finding::good(NAME, format!("{how}; {UNLISTED}")));
        }
        _ => {}
    }
    // Without CONFIG_TLS there is no module to load, and the line above this one says so.
    if machine.kernel_config().is_some_and(|config| config.option("CONFIG_TLS").is_none()) {
        return None;
    }
    let finding = if machine.has_loaded("tls") {
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

/// True if the kernel has TLS now. Only the first network namespace has TCP's list: elsewhere, as in a container, the probe
/// says so, or the module that is loaded or built in.
pub(super) fn is_there(machine: &Machine) -> bool {
    let is_built_in =
        || machine.kernel_config().is_some_and(|config| config.option("CONFIG_TLS") == Some("y"));
    match machine.text(LIST) {
        Some(listed) => names_tls(&listed),
        None => machine.carries_tx() || machine.has_loaded("tls") || is_built_in(),
    }
}

fn names_tls(listed: &str) -> bool {
    listed.split_ascii_whitespace().any(|name| name == "tls")
}

const NAME: &str = "tls module";
const LIST: &str = "proc/sys/net/ipv4/tcp_available_ulp";
const UNLISTED: &str = "this network namespace has no list of what TCP offers";
const NO_MORE_MODULES: &str = "proc/sys/kernel/modules_disabled";

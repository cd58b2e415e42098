//! Tells whether the module will be there after the next boot, or this user could load it when it is needed.

use crate::finding::Finding;
use crate::machine::Machine;

pub(crate) fn check(machine: &Machine) -> Option<Finding> {
    let config = machine.kernel_config();
    let option = config.as_ref().map(|config| config.option("CONFIG_TLS"));
    // Built in or not there at all: nothing to load.
    if matches!(option, Some(None | Some("y"))) {
        return None;
    }
    // Without a configuration, only a loaded module is known to be one.
    if option.is_none() && !machine.has_loaded("tls") {
        return None;
    }
    if let Some(path) = loaded_by(machine) {
        return Some(Finding::good(NAME, format!("/{path} loads the module")));
    }
    let who = if may_load(machine) {
        "kettle started as this user would load the module itself, others would not"
    } else {
        "nothing loads the module, and this user may not (CAP_NET_ADMIN outside user namespaces is needed)"
    };
    Some(Finding::warning(NAME, who).fix(machine.write_as_root("tls", FILE)))
}

/// The kernel loads the module on first use for those who have `CAP_NET_ADMIN` in the first user namespace: there, and nowhere a
/// user made one, every ID is mapped to itself. A kernel without user namespaces has no map.
pub(super) fn may_load(machine: &Machine) -> bool {
    let map = machine.text("proc/self/uid_map");
    if map.is_some_and(|map| !map.split_ascii_whitespace().eq(ALL_USERS)) {
        return false;
    }
    let status = machine.text("proc/self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let capabilities = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    capabilities.is_some_and(|set| set & (1 << CAP_NET_ADMIN) != 0)
}

fn loaded_by(machine: &Machine) -> Option<String> {
    let mut files = vec!["etc/modules".to_owned()];
    for folder in ["etc/modules-load.d", "run/modules-load.d", "usr/lib/modules-load.d"] {
        files.extend(machine.files_in(folder, ".conf"));
    }
    files.into_iter().find(|path| {
        let text = machine.text(path).unwrap_or_default();
        text.lines().any(|line| line.split_ascii_whitespace().next() == Some("tls"))
    })
}

const NAME: &str = "at boot";
/// The folder where systemd, OpenRC and others look for modules to load.
pub(super) const FILE: &str = "/etc/modules-load.d/kettle.conf";
const CAP_NET_ADMIN: u32 = 12;
/// From 0, to 0, so many.
const ALL_USERS: [&str; 3] = ["0", "0", "4294967295"];

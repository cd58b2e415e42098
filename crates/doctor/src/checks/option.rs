//! Tells whether the kernel was built with TLS at all.

use crate::finding::Finding;
use crate::machine::Machine;

pub(crate) fn check(machine: &Machine) -> Option<Finding> {
    let Some(config) = machine.kernel_config() else {
        return Some(from_modules(machine));
    };
    let cards = match config.option("CONFIG_TLS_DEVICE") {
        Some(_) => "network cards may help",
        None => "without help of network cards",
    };
    Some(match config.option(NAME) {
        Some("y") => Finding::good(NAME, format!("built in, {cards}")),
        Some(_) => Finding::good(NAME, format!("built as a module, {cards}")),
        None => Finding::bad(NAME, format!("not set in {}", config.path)).fix(format!(
            "boot a kernel with CONFIG_TLS; distributions that have it: {KERNELS_PAGE}"
        )),
    })
}

/// Without a configuration to read, the list of modules tells as much.
fn from_modules(machine: &Machine) -> Finding {
    let folder = format!("lib/modules/{}", machine.kernel_release());
    let lists = |file: &str| {
        let text = machine.text(&format!("{folder}/{file}")).unwrap_or_default();
        text.lines().any(|line| line.split(':').next().is_some_and(names_tls))
    };
    if lists("modules.builtin") {
        Finding::good(NAME, "built in")
    } else if lists("modules.dep") {
        Finding::good(NAME, "built as a module")
    } else if machine.carries_tx() {
        Finding::good(NAME, "no configuration to read here, but the probe below works")
    } else {
        Finding::warning(NAME, "unknown: no /proc/config.gz, /boot/config-* or list of modules")
            .fix(machine.as_root("modprobe tls   # tells whether the module exists"))
    }
}

fn names_tls(path: &str) -> bool {
    let file = path.rsplit('/').next().unwrap_or_default();
    file == "tls.ko" || file.starts_with("tls.ko.")
}

const NAME: &str = "CONFIG_TLS";
const KERNELS_PAGE: &str = "https://github.com/kettle-tls/kettle/blob/main/docs/kernels.md";

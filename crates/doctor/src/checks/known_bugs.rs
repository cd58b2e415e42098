//! Stable releases of the kernel that still have kernel TLS bugs fixed since.

use crate::finding::Finding;
use crate::kernel_version::KernelVersion;
use crate::machine::Machine;

pub(crate) fn check(machine: &Machine) -> Option<Finding> {
    let version = machine.kernel_version()?;
    let (major, minor) = version.series;
    let Some(fixes) = SERIES.iter().find(|(series, _)| *series == version.series) else {
        return Some(Finding::good(
            NAME,
            format!("none on kettle's list for Linux {major}.{minor}"),
        ));
    };
    let (_, fixes) = fixes;
    let Some(stable) = version.stable else {
        let message = format!("the vendor's own {major}.{minor}: its changelog has to tell");
        return Some(Finding::good(NAME, message));
    };
    let open: Vec<_> = fixes.iter().filter(|fix| stable < fix.stable).collect();
    let Some(newest) = open.iter().map(|fix| fix.stable).max() else {
        return Some(Finding::good(NAME, format!("none known in {version}")));
    };
    let needed = KernelVersion { series: version.series, stable: Some(newest) };
    let bugs = open.iter().map(|fix| fix.bug).collect::<Vec<_>>().join("; ");
    let message = format!("{version} lacks fixes up to {needed}: {bugs}");
    Some(Finding::warning(NAME, message).fix(machine.update_kernel()))
}

/// A bug, and the stable release of its series that no longer has it.
struct Fix {
    stable: u32,
    bug: &'static str,
}

type Series = (u32, u32);

const NAME: &str = "known bugs";

// From the changelogs of the Debian packages of these series. The series not listed were not read.
const SERIES: [(Series, &[Fix]); 2] = [
    (
        (6, 1),
        &[
            Fix { stable: 176, bug: "errors in the list of buffers to send" },
            Fix { stable: 187, bug: "a signal aborts a send (kettle blocks signals)" },
            Fix { stable: 190, bug: "splice from a receiving socket loses data" },
            Fix { stable: 190, bug: "CVE-2026-93824 (kettle uses no socket maps)" },
            Fix { stable: 192, bug: "CVE-2026-74611 (kettle does not use NO_PAD)" },
        ],
    ),
    (
        (6, 12),
        &[
            Fix { stable: 94, bug: "errors in the list of buffers to send" },
            Fix { stable: 105, bug: "a full list of buffers is not sent; a signal aborts a send" },
            Fix { stable: 111, bug: "overlapping buffers when receiving" },
            Fix { stable: 111, bug: "CVE-2026-93824 (kettle uses no socket maps)" },
            Fix { stable: 113, bug: "splice from a receiving socket loses data" },
            Fix { stable: 115, bug: "CVE-2026-74611 (kettle does not use NO_PAD)" },
        ],
    ),
];

//! The number of files this user may open: each connection is one, each file being sent another.

use crate::finding::Finding;
use crate::machine::Machine;

pub(crate) fn check(machine: &Machine) -> Option<Finding> {
    let maximum = machine.open_files.maximum.unwrap_or(u64::MAX);
    if maximum >= ENOUGH {
        let shown = machine.open_files.maximum.map_or("no limit".to_owned(), |it| it.to_string());
        return Some(Finding::good(NAME, format!("{shown} allowed; kettle raises its own limit")));
    }
    let message = format!("at most {maximum} allowed: about as many connections as that");
    Some(
        Finding::warning(NAME, message)
            .fix("in a systemd unit: LimitNOFILE=1048576")
            .fix("else a line `* hard nofile 1048576` in /etc/security/limits.conf"),
    )
}

const NAME: &str = "open files";
const ENOUGH: u64 = 65_536;

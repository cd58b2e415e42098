//! The firewall's table of connections: when it is full, the kernel drops new ones.

use crate::finding::Finding;
use crate::machine::Machine;

pub(crate) fn check(machine: &Machine) -> Option<Finding> {
    let number = |name: &str| -> Option<u64> {
        machine.text(&format!("proc/sys/net/netfilter/{name}"))?.trim().parse().ok()
    };
    // Without the module there is no such file.
    let most = number("nf_conntrack_max").filter(|most| *most > 0)?;
    let tracked = number("nf_conntrack_count").unwrap_or(0);
    let message = format!("the firewall tracks {tracked} of at most {most} connections");
    let is_nearly_full = tracked.saturating_mul(100) / most >= NEARLY_FULL_PERCENT;
    if !is_nearly_full && most >= ENOUGH {
        return Some(Finding::good(NAME, message));
    }
    let what =
        if is_nearly_full { "new ones are dropped when it is full" } else { "few for a server" };
    let wanted = most.saturating_mul(4).max(ENOUGH * 4);
    let set = format!("sysctl -w net.netfilter.nf_conntrack_max={wanted}");
    Some(
        Finding::warning(NAME, format!("{message}: {what}"))
            .fix(machine.as_root(&set))
            .fix(machine.write_as_root(&(wanted / 4).to_string(), HASH_SIZE))
            .fix("or leave kettle's ports untracked: `notrack` in nftables, `-j CT --notrack` in iptables"),
    )
}

const NAME: &str = "tracking";
const NEARLY_FULL_PERCENT: u64 = 80;
/// As many as a server may open files. A closed connection stays in the table for two minutes besides.
const ENOUGH: u64 = 65_536;
/// The table's buckets: too few, and each packet walks a list.
const HASH_SIZE: &str = "/sys/module/nf_conntrack/parameters/hashsize";

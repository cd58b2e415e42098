//! `tcp_notsent_lowat`, below which sendfile over kernel TLS stalls.

use kettle_kernel::socket::NOT_SENT_LOW_WATER_BYTES_MIN;

use crate::finding::Finding;
use crate::machine::Machine;

pub(crate) fn check(machine: &Machine) -> Option<Finding> {
    let bytes: u64 = machine.text("proc/sys/net/ipv4/tcp_notsent_lowat")?.trim().parse().ok()?;
    let least = u64::from(NOT_SENT_LOW_WATER_BYTES_MIN);
    Some(if bytes >= least {
        let limit =
            if bytes >= u64::from(u32::MAX) { "no limit".to_owned() } else { bytes.to_string() };
        Finding::good(NAME, format!("tcp_notsent_lowat: {limit}"))
    } else {
        let message = format!(
            "tcp_notsent_lowat = {bytes} stalls sendfile over kTLS below {least}; kettle raises it on its own \
             sockets, other programs do not"
        );
        Finding::warning(NAME, message)
            .fix(machine.as_root("sysctl -w net.ipv4.tcp_notsent_lowat=131072"))
    })
}

const NAME: &str = "low-water mark";

//! The process that listens on a port, for the message that it is taken. Without privileges only the user's own
//! processes can be seen.

use std::fs;
use std::path::Path;

/// The program that listens on this TCP port, as `nginx (process 123)`, if it can be seen.
pub(super) fn port_owner(port: u16) -> Option<String> {
    let inodes: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(|table| listening_inodes(&table, port))
        .collect();
    let links: Vec<String> = inodes.iter().map(|inode| format!("socket:[{inode}]")).collect();
    if links.is_empty() {
        return None;
    }
    for process in fs::read_dir("/proc").ok()?.flatten().take(PROCESSES_MAX) {
        let name = process.file_name();
        let Some(number) = name.to_str().filter(|name| name.bytes().all(|b| b.is_ascii_digit()))
        else {
            continue;
        };
        if holds_one_of(&process.path().join("fd"), &links) {
            let program = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            return Some(format!("{} (process {number})", program.trim_end()));
        }
    }
    None
}

/// The socket inodes of the listeners on this port in a table as `/proc/net/tcp` has it.
fn listening_inodes(table: &str, port: u16) -> Vec<String> {
    let mut inodes = Vec::new();
    for line in table.lines().skip(1) {
        let columns: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, local, _, LISTEN, _, _, _, _, _, inode, ..] = columns.as_slice() else { continue };
        let local_port = local.rsplit(':').next().and_then(|hex| u16::from_str_radix(hex, 16).ok());
        if local_port == Some(port) {
            inodes.push((*inode).to_owned());
        }
    }
    inodes
}

fn holds_one_of(descriptors: &Path, links: &[String]) -> bool {
    let Ok(descriptors) = fs::read_dir(descriptors) else { return false };
    descriptors.flatten().take(DESCRIPTORS_MAX).any(|descriptor| {
        let link = fs::read_link(descriptor.path()).unwrap_or_default();
        links.iter().any(|wanted| link.as_os_str() == wanted.as_str())
    })
}

/// The state `TCP_LISTEN` in `/proc/net/tcp`.
const LISTEN: &str = "0A";

/// The search is for a message only, so it does not look at more than this.
const PROCESSES_MAX: usize = 4_096;
const DESCRIPTORS_MAX: usize = 4_096;

#[cfg(test)]
mod tests {
    use super::{listening_inodes, port_owner};

    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:20FB 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1 0 100 0 0 10 0
   1: 0100007F:20FB 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 4712 1 0 20 4 30 10 -1
   2: 00000000:01BB 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4713 1 0 100 0 0 10 0
";

    #[test]
    fn only_listeners_on_the_port_count() {
        assert_eq!(listening_inodes(TABLE, 8443), ["4711"]);
        assert_eq!(listening_inodes(TABLE, 443), ["4713"]);
        assert!(listening_inodes(TABLE, 80).is_empty());
    }

    #[test]
    fn this_process_is_found_by_its_own_listener() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let owner = port_owner(listener.local_addr().unwrap().port()).unwrap();
        assert!(owner.ends_with(&format!("(process {})", std::process::id())), "{owner}");
    }
}

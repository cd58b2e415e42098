//! A server in a small container: it keeps to what its control groups allow, and serves more than fits into them.

use kettle_tests::control_group::ControlGroup;

use super::*;

const MEMORY_BYTES: u64 = 128 << 20;
/// All of them together are more than the group may hold.
const FILES: usize = 3_000;
const FILE_BYTES: usize = 60_000;
const CONNECTIONS: usize = 100;

#[test]
fn a_small_group_holds_a_server_of_many_files_and_connections() {
    if is_guest() {
        return skip("natively");
    }
    let group = match ControlGroup::limited(0.5, MEMORY_BYTES) {
        Ok(group) => group,
        Err(why) => return skip(&format!("no control group can be made: {why}")),
    };
    let launcher = group.launcher();
    let launcher: Vec<_> = launcher.iter().map(String::as_str).collect();
    let kettle = Kettle::start(Setup::paths(paths_here()).launched_by(&launcher));
    kettle.messages().wait_for("this process may use the time of 0.5 of ");
    kettle.messages().wait_for("128 MiB of memory");
    kettle.messages().wait_for(": 1 worker, ");
    for number in 0..FILES {
        kettle.folder.write(&format!("www/{number}"), content(FILE_BYTES));
    }
    let path = paths_here()[0];
    let connect = |_| kettle.connect_by(path, TLS13_AES_128);
    let mut clients: Vec<_> = (0..CONNECTIONS).map(connect).collect();
    for number in 0..FILES {
        let body = clients[number % CONNECTIONS].get(&format!("/{number}")).body;
        assert_same(&body, &content(FILE_BYTES), &number.to_string());
    }
    // It keeps half of what it may; a hundred connections take little besides.
    let kept_bytes = kettle.memory_bytes();
    assert!(kept_bytes < MEMORY_BYTES * 3 / 4, "{kept_bytes}");
    assert_eq!(kettle.status("/total/connections_open"), CONNECTIONS);
}

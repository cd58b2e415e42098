//! The kill switch keeps new connections out of the kernel, and lets them in again.

use super::*;

#[test]
fn the_kill_switch_keeps_connections_out_of_the_kernel_until_it_is_turned_back() {
    let Some(kettle) = Kettle::start_in_kernel(Setup::path("kernel-sendfile").sizes(&[70_000]))
    else {
        return;
    };
    let mut old = kettle.connect(TLS13_AES_128);
    assert_eq!(path_of_next(&kettle, &mut old), "kernel-sendfile");

    let _ = kettle.ctl(&["path", "user"]).succeed();
    let mut new = kettle.connect(TLS13_AES_128);
    assert_eq!(path_of_next(&kettle, &mut new), "user (kill_switch)");
    // There is no way back for a connection that has moved.
    assert_eq!(path_of_next(&kettle, &mut old), "kernel-sendfile");
    assert!(kettle.ctl(&["status"]).succeed().contains("switched off"));

    let _ = kettle.ctl(&["path", "auto"]).succeed();
    assert_eq!(path_of_next(&kettle, &mut new), "kernel-sendfile");
}

fn path_of_next(kettle: &Kettle, client: &mut impl Connection) -> String {
    assert_same(&client.get("/70000").body, &content(70_000), "a file");
    kettle.entry("/70000").path()
}

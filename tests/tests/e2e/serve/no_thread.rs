//! A server that the system gives no further thread: what would wait for a disk is refused, and the rest goes on.

use kettle_tests::control_group::ControlGroup;
use kettle_tests::fuse::{Fuse, Silent};

use super::*;

const BYTES: usize = 10_000;

#[test]
fn without_a_further_thread_a_server_refuses_what_needs_one_and_goes_on() {
    if is_guest() {
        return skip("natively");
    }
    let group = match ControlGroup::of_threads() {
        Ok(group) => group,
        Err(why) => return skip(&format!("no control group can be made: {why}")),
    };
    let launcher = group.launcher();
    let launcher: Vec<_> = launcher.iter().map(String::as_str).collect();
    let setup = Setup::default().file("www/a", "content").set("server", "workers = 1");
    let kettle = Kettle::start(setup.launched_by(&launcher));
    // A remote file system is never asked by a worker.
    let files = &[("remote", BYTES, Silent::Never)];
    let Some(_fuse) = Fuse::mount_or_skip(kettle.folder.path("www/mounted"), files) else { return };
    let get = |target| kettle.connect(TLS13_AES_128).get(target);
    assert_eq!(get("/a").body, b"content");
    group.bound_threads("1").unwrap();
    // One that has nothing to do ends after some seconds.
    wait_until("no thread for disks is left", || !has_disk_thread(&kettle));

    let purge = || kettle.ctl(&["cache", "purge", "https://localhost/a"]);
    for _ in 0..10 {
        assert_eq!(get("/mounted/remote").status, 503);
        purge().fail("no thread can be started");
    }
    assert_eq!(get("/a").body, b"content");

    group.bound_threads("max").unwrap();
    wait_until("a thread is asked for again", || get("/mounted/remote").status == 200);
    assert_same(&get("/mounted/remote").body, &content(BYTES), "remote");
    let _ = purge().succeed();
}

fn has_disk_thread(kettle: &Kettle) -> bool {
    let threads = fs::read_dir(format!("/proc/{}/task", kettle.process())).unwrap();
    let names = threads.filter_map(|it| fs::read_to_string(it.unwrap().path().join("comm")).ok());
    names.into_iter().any(|name| name.trim() == "kettle-disk")
}

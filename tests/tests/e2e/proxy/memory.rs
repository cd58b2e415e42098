//! The memory of a request stays with the worker: the kernel is not asked for it anew.

use super::*;

const WARM: usize = 500;
const COUNTED: usize = 5_000;

/// The number of pages a process has got so far without a disk (proc(5), `minflt`). A page
/// that is given back with `madvise` or `munmap` and taken again counts, too.
fn faults(process: u32) -> usize {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let (_, behind_name) = stat.rsplit_once(')').unwrap();
    behind_name.split_whitespace().nth(7).unwrap().parse().unwrap()
}

#[test]
fn requests_that_are_passed_on_take_no_memory_from_the_kernel() {
    let backend = Backend::listen();
    backend.answer_all(&ok(&"x".repeat(1_024)));
    let setup = before("", "", &[backend.address()]).set("server", "workers = 1");
    let kettle = Kettle::start(setup);
    let mut client = Dialer::default().connect(kettle.address());
    let mut ask = |times| {
        for _ in 0..times {
            client.send(&get("/app/x")).unwrap();
            assert_eq!(client.response().body.len(), 1_024);
        }
    };
    ask(WARM);
    let faults_before = faults(kettle.process());
    ask(COUNTED);
    let faults = faults(kettle.process()) - faults_before;
    // A part of each request would be hundreds; what the process does each second is some.
    assert!(faults < COUNTED / 50, "{faults} pages for {COUNTED} requests");
}

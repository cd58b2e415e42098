//! The state that workers share does not make them wait for each other.

use kettle_tests::environment::bench_or_skip;

use super::*;

/// As under a unit or in a container whose filter of system calls does not know better.
#[test]
fn workers_that_cannot_be_pinned_serve_all_the_same() {
    let forbids = "inject=sched_setaffinity:error=EPERM";
    let strace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=sched_setaffinity"];
    // Where the test fails, strace is killed, and what it started goes with it.
    let launcher = [&strace[..], &["-e", forbids, "setpriv", "--pdeathsig", "KILL"]].concat();
    let setup = Setup::default().set("server", "workers = 2").set("server", "pin_workers = true");
    let setup = setup.file("www/a", "content").launched_by(&launcher);
    let mut kettle = Kettle::start(setup);
    kettle.messages().wait_for("sched_setaffinity");
    for _ in 0..4 {
        assert_eq!(kettle.connect(TLS13_AES_128).get("/a").body, b"content");
    }
    kettle.signal(Signal::TERM);
    let ended = kettle.ended();
    assert!(ended.status.success(), "{}", ended.status);
    assert_eq!(ended.stderr.matches("stay unpinned").count(), 1, "{}", ended.stderr);
}

/// A thread that finds a lock taken calls `futex`; so does the one that lets it go then.
#[test]
fn handshakes_of_four_workers_wait_for_no_lock() {
    if !bench_or_skip() {
        return;
    }
    let setup = Setup::path("user").set("server", "workers = 4").file("www/page.html", "hello");
    // With the log that all of them fill, at its usual size.
    let mut kettle = Kettle::start(setup.set("log", "buffer = 65536"));
    let process = kettle.process().to_string();
    let mut calls =
        Tool::new("strace").args(["-f", "-e", "trace=futex,accept4", "-p", &process]).start();
    calls.stderr.wait_for("attached");

    let once = ["--connections", "16", "--requests", "1000", "--requests-per-connection", "1"];
    let resumed = ["--connections-per-session", "4", "--resume", "ticket"];
    for words in [&once[..], &[&once[..], &resumed].concat()] {
        let url = kettle.url("/page.html");
        let address = kettle.address().to_string();
        let patience = format!("{}s", patience().as_secs());
        let load = Tool::kettle(["bench", "load", &url, "--connect", &address]);
        load.args(["--timeout", &patience]).args(words).run();
    }

    kettle.signal(Signal::TERM);
    let _ = kettle.ended();
    let calls = calls.ended().stderr;
    let count = |call: &str| calls.matches(call).count();
    assert!(count("accept4(") >= 2000, "connections were not seen:\n{calls}");
    assert!(count("futex(") <= 100, "{} for 2,000 handshakes:\n{calls}", count("futex("));
}

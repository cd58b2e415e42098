//! What workers share does not make them wait for each other.

use kettle_tests::environment::patience;
use kettle_tests::kettle::Kettle;
use kettle_tests::setup::Setup;
use kettle_tests::tool::Tool;
use rustix::process::Signal;

/// Who finds a lock taken calls `futex`; so does whoever lets it go then.
#[test]
fn handshakes_of_four_workers_wait_for_no_lock() {
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
        let (url, address) = (kettle.url("/page.html"), kettle.address().to_string());
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

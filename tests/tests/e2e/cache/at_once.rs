//! Hits that need no disk: the worker finds them by itself, and calls no more than it has to.

use super::*;

const FRESH: &str = "Connection: close\r\nCache-Control: max-age=1000\r\n";

/// Objects that are asked for before calls are counted: a file system that does not say what is in memory is read by threads until
/// it has proved quick.
const WARM: usize = 40;
const COUNTED: usize = 40;

fn hit(client: &mut Client, number: usize) {
    client.send(&request("GET", &format!("/app/{number}"), "")).unwrap();
    let response = client.response();
    assert_eq!(response.body, body(number).as_bytes());
    assert_hit(&response);
}

fn body(number: usize) -> String {
    format!("{number:04}").repeat(1_024)
}

/// A thread that finds a lock taken calls `futex`, as does one that waits for another or wakes it.
#[test]
fn a_hit_from_the_page_cache_is_found_by_the_worker() {
    let setup = Setup::default().set("server", "workers = 1").set("limits", "revalidate = \"0s\"");
    // The log's writer is woken once it has so much.
    let setup = setup.set("log", "buffer = 65536");
    let mut cached = Cached::set_up(setup, "", "", "");
    for number in 0..WARM + COUNTED {
        let response = ok(FRESH, &body(number));
        cached.get_through(&format!("/app/{number}"), "", &response);
    }
    cached.wait_for_objects(WARM + COUNTED);
    let mut client = cached.client();
    (0..WARM).for_each(|number| hit(&mut client, number));
    let process = cached.kettle.process().to_string();
    let calls = "trace=futex,openat,openat2,fstat,newfstatat,statx,pread64,preadv2,close";
    let mut strace = Tool::new("strace").args(["-f", "-e", calls, "-p", &process]).start();
    strace.stderr.wait_for("attached");
    // Found, found again with a look at how its file is, and looked at.
    for _ in 0..3 {
        (WARM..WARM + COUNTED).for_each(|number| hit(&mut client, number));
    }
    wait_until("calls", || strace.stderr.text().matches("openat2(").count() >= 3 * COUNTED);
    cached.kettle.signal(Signal::TERM);
    let _ = cached.kettle.ended();
    let calls = strace.ended().stderr;
    let count = |call: &str| calls.matches(call).count();
    let paths = calls.matches("O_PATH").count();
    assert_eq!((count("openat2("), paths), (3 * COUNTED, COUNTED), "{calls}");
    // One read for each that was found, and none for what is remembered.
    assert_eq!(
        (calls.matches("kettle\\0").count(), count("pread64(")),
        (2 * COUNTED, 0),
        "{calls}"
    );
    assert!(count("futex(") < COUNTED, "{} in {} hits:\n{calls}", count("futex("), 3 * COUNTED);
}

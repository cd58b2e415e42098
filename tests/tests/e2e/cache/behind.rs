//! Small responses that arrive faster than their disk takes them: their fetches wait, and what arrives is kept.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::*;

const OBJECTS: usize = 4_000;
const CLIENTS: usize = 16;
/// The time that a fetch waits for room.
const WAIT_MAX: Duration = Duration::from_millis(250);
/// Twice as much in all as may wait to be written.
const BODY_BYTES: usize = 16 * 1_024;

/// Asks for each object once; how many came from the store, and how many took as long as fetches wait for room. One of the clients
/// asks for what is remembered, too, each time.
fn ask_for_all(address: SocketAddr) -> (usize, usize) {
    let [answered, late] = [0; 2].map(AtomicUsize::new);
    let ask = |first: usize| {
        let mut client = Dialer::default().connect(address);
        let objects = (first..OBJECTS).step_by(CLIENTS);
        let hits = objects.filter(|number| {
            let begun = Instant::now();
            let response = client.get(&format!("/app/{number}"));
            late.fetch_add((begun.elapsed() >= WAIT_MAX).into(), Ordering::Relaxed);
            let before = answered.fetch_add(1, Ordering::Relaxed);
            if first == 0 {
                assert!(ask_for_hit(&mut client));
                // The others were not answered many times in between.
                assert!(answered.load(Ordering::Relaxed) - before <= 8 * CLIENTS);
            }
            status(&response).starts_with("kettle; hit")
        });
        hits.count()
    };
    let hits = thread::scope(|scope| {
        let ask = &ask;
        let begin = |first| scope.spawn(move || ask(first));
        let clients: Vec<_> = (0..CLIENTS).map(begin).collect();
        clients.into_iter().map(|client| client.join().unwrap()).sum()
    });
    (hits, late.into_inner())
}

fn ask_for_hit(client: &mut Client) -> bool {
    is_hit(&client.get("/app/hot"))
}

#[test]
fn what_arrives_faster_than_the_disk_takes_it_is_kept() {
    // Each object takes its disk a millisecond at least.
    let slow = ["strace", "-f", "-qq", "--seccomp-bpf", "-o", "/dev/null", "-e", "trace=linkat"];
    let slow = [&slow[..], &["-e", "inject=linkat:delay_enter=1000", "setpriv"]].concat();
    let launcher = [&slow[..], &["--pdeathsig", "KILL"]].concat();
    let setup = Setup::default().launched_by(&launcher);
    let cached = Cached::set_up(setup, "", "", "");
    let address = cached.kettle.address();
    cached.backend.answer_all(&ok("Cache-Control: max-age=1000\r\n", &"x".repeat(BODY_BYTES)));
    let mut client = cached.client();
    assert!(!ask_for_hit(&mut client));
    wait_until("it is kept", || ask_for_hit(&mut client));
    let (hits, late) = ask_for_all(address);
    assert_eq!(hits, 0);
    cached.wait_for_figure("unwritten_objects", 0);
    let (hits, _) = ask_for_all(address);
    // Only one that had no room in time is not kept: on a busy machine an object takes its disk several milliseconds.
    assert!(hits + late >= OBJECTS, "{hits} are kept, {late} took long:\n{}", cached.scrape());
}

#[test]
fn an_object_is_written_with_four_calls() {
    let mut cached = Cached::start("");
    cached.backend.answer_all(&ok("Cache-Control: max-age=1000\r\n", &"x".repeat(4_096)));
    // The store is opened with it.
    let _ = cached.get("/app/first");
    cached.wait_for_objects(1);
    let process = cached.kettle.process().to_string();
    let calls = "trace=openat,pwrite64,pwritev,write,fallocate,ftruncate,fstat,newfstatat,statx,pread64,\
                 linkat,renameat,renameat2,unlinkat,mkdirat,fsync,fdatasync,close";
    let mut strace = Tool::new("strace").args(["-f", "-y", "-e", calls, "-p", &process]).start();
    strace.stderr.wait_for("attached");
    let mut client = cached.client();
    for number in 0..COUNTED {
        client.send(&get(&format!("/app/{number}"))).unwrap();
        assert!(status(&client.response()).ends_with("stored"));
    }
    cached.wait_for_objects(COUNTED + 1);
    cached.kettle.signal(Signal::TERM);
    let _ = cached.kettle.ended();
    let calls = strace.ended().stderr;
    let folder = cached.folder.path().to_str().unwrap();
    let count = |call: &str, what: &str| {
        let lines = calls.lines().filter(|line| line.contains(call) && line.contains(what));
        lines.count()
    };
    let in_store = format!("<{folder}/#");
    let once = [
        count("openat(", "O_TMPFILE"),
        count("pwrite64(", &in_store),
        count(" linkat", " = 0"),
        count("close(", &in_store),
    ];
    assert_eq!(once, [COUNTED; 4], "{calls}");
    // The folder of an object is made with the first in it; nothing else is called for one.
    let with_descriptor =
        ["fstat(", "fsync(", "fdatasync(", "ftruncate(", "fallocate(", "pread64("];
    assert!(with_descriptor.iter().all(|call| count(call, &in_store) == 0), "{calls}");
}

const COUNTED: usize = 20;

//! The kernel fails at each step of the switch: either the connection goes on in user space or it ends, and never does a
//! byte of plaintext reach the wire.

use std::fs;

use kettle_tests::record::whole_records;
use kettle_tests::suite::TLS13_AES_256;
use kettle_tests::tool::Running;
use kettle_tests::transcript::contains;

use super::*;

#[test]
fn a_socket_that_cannot_be_attached_stays_in_user_space() {
    let Some(kettle) =
        Kettle::start_in_kernel(Setup::path("kernel-sendfile").sizes(&[70_000]).alone())
    else {
        return;
    };
    let saboteur = fail_nth_option(&kettle, ATTACH);
    let counts = KernelCounts::now();
    let mut client = kettle.connect(TLS13_AES_128);
    assert_same(&client.get("/70000").body, &content(70_000), "refused");
    assert_eq!(kettle.entry("/70000").path(), "user (no_memory)");
    assert_eq!(counts.growth("TlsTxSw"), 0);
    drop(saboteur);

    assert_same(&client.get("/70000").body, &content(70_000), "accepted");
    assert_eq!(kettle.entry("/70000").path(), "kernel-sendfile");
    assert_eq!(counts.growth("TlsTxSw"), 1);
    assert_eq!(kettle.status("/total/refusals/no_memory"), 1);
}

#[test]
fn a_key_that_cannot_be_installed_ends_the_connection_without_a_byte_of_plaintext() {
    if !kernel_tls_or_skip() {
        return;
    }
    for path in ["kernel-write", "kernel-sendfile"] {
        for suite in ONE_OF_EACH_VERSION {
            let kettle = Kettle::start(Setup::path(path).file("www/secret", CANARY.repeat(5_000)));
            let saboteur = fail_nth_option(&kettle, INSTALL);
            let mut client = kettle.connect(suite);
            client.send(&get("/secret")).unwrap();
            client.wire.read_to_end();
            let (_, rest) = whole_records(&client.wire.received);
            assert!(rest.is_empty(), "{path}: not all that was sent is a record");
            assert!(!contains(&client.wire.received, CANARY.as_bytes()), "{path}: plaintext");
            assert!(!contains(&client.wire.received, b"HTTP/1.1"), "{path}: plaintext");
            drop(saboteur);
        }
    }
}

#[test]
fn a_suite_whose_key_was_refused_stays_in_user_space_from_then_on() {
    let Some(kettle) = Kettle::start_in_kernel(Setup::path("kernel-sendfile").sizes(&[70_000]))
    else {
        return;
    };
    let saboteur = fail_nth_option(&kettle, INSTALL);
    let mut client = kettle.connect(TLS13_AES_128);
    client.send(&get("/70000")).unwrap();
    client.wire.read_to_end();
    drop(saboteur);
    assert!(!kettle.entry("/70000").is_complete());
    for (suite, path) in [
        (TLS13_AES_128, "user (circuit_open)"),
        (TLS13_AES_256, "kernel-sendfile"),
        (TLS12_AES_128, "kernel-sendfile"),
        (TLS13_AES_128, "user (circuit_open)"),
    ] {
        assert_same(&kettle.connect(suite).get("/70000").body, &content(70_000), path);
        assert_eq!(kettle.entry("/70000").path(), path, "{}", suite.name);
    }
    assert!(kettle.messages().text().contains("this suite stays in user space until restart"));
}

#[test]
fn a_disk_that_fails_under_sendfile_is_blamed_and_the_head_arrives() {
    let setup = Setup::path("kernel-sendfile").sizes(&[70_000]).without_memory();
    let Some(kettle) = Kettle::start_in_kernel(setup) else { return };
    drop(kettle.connect(TLS13_AES_128));
    let saboteur = fail_nth_call(&kettle, "sendfile", "EIO", 1);
    let mut client = kettle.connect(TLS13_AES_128);
    client.send(&get("/70000")).unwrap();
    assert_eq!(client.response_head().announced_bytes(), 70_000);
    assert_eq!(client.end(), End::Cut);
    drop(saboteur);
    assert!(!kettle.entry("/70000").is_complete());
    let file = kettle.folder.path("www/70000");
    kettle.messages().wait_for(&format!("file={file:?}"));
}

#[test]
fn a_next_key_that_is_refused_ends_the_connection_and_is_as_a_first_one() {
    if !kernel_tls_or_skip() {
        return;
    }
    if !kernel_changes_keys() {
        return skip("this kernel cannot change keys");
    }
    let kettle = Kettle::start(Setup::path("kernel-sendfile").sizes(&[70_000]));
    let mut client = kettle.connect(TLS13_AES_128);
    assert_same(&client.get("/70000").body, &content(70_000), "moved");
    assert_eq!(kettle.entry("/70000").path(), "kernel-sendfile");
    // The connection has moved already: what comes first is its next key.
    let saboteur = fail_nth_call(&kettle, "setsockopt", "ENOMEM", 1);
    client.update_keys();
    client.wire.read_to_end();
    drop(saboteur);
    kettle.wait_for_status("/total/refusals/no_memory", 1);
    assert_same(&kettle.connect(TLS13_AES_128).get("/70000").body, &content(70_000), "after it");
    assert_eq!(kettle.entry("/70000").path(), "user (circuit_open)");
}

/// Makes the n-th socket option that the worker sets from now on fail for want of memory. It prints keys: what it says
/// goes nowhere.
fn fail_nth_option(kettle: &Kettle, nth: u32) -> Running {
    // A thread has its name before it serves, not before others may see it.
    drop(kettle.connect(TLS13_AES_128));
    fail_nth_call(kettle, "setsockopt", "ENOMEM", nth)
}

/// Makes the n-th such call of the worker from now on fail with this error. The worker has served already.
pub(crate) fn fail_nth_call(kettle: &Kettle, call: &str, error: &str, nth: u32) -> Running {
    let injection = format!("inject={call}:error={error}:when={nth}");
    let strace = Tool::new("strace")
        .args(["-p", &worker_thread(kettle), "-o", "/dev/null"])
        .args(["-e", &format!("trace={call}"), "-e", &injection])
        .start();
    strace.stderr.wait_for("attached");
    strace
}

/// The thread that serves connections.
fn worker_thread(kettle: &Kettle) -> String {
    let threads = fs::read_dir(format!("/proc/{}/task", kettle.process())).unwrap();
    let worker = threads.map(|thread| thread.unwrap()).find(|thread| {
        fs::read_to_string(thread.path().join("comm")).is_ok_and(|name| name.trim() == "kettle-0")
    });
    worker.unwrap().file_name().into_string().unwrap()
}

/// The first option a worker sets on a connection: `TCP_ULP`.
const ATTACH: u32 = 1;
/// The second: `TLS_TX`.
const INSTALL: u32 = 2;

const CANARY: &str = "this text must not be seen on the wire";

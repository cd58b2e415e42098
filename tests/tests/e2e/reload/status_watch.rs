//! `kettle ctl status --watch`: a screen each second, as long as there is a server and a reader.

use kettle_tests::environment::kettle_program;

use super::*;

#[test]
fn a_watch_ends_with_the_server_and_says_so() {
    let mut kettle = Kettle::start(Setup::default().file("www/a", "content"));
    let mut watch = kettle.ctl(&["status", "--watch"]).start();
    let screens = |bytes: &[u8]| String::from_utf8_lossy(bytes).matches("\nconnections ").count();
    watch.stdout.wait_until("two screens", |bytes| (screens(bytes) >= 2).then_some(()));
    kettle.stop();
    let said = watch.ended();
    assert_eq!(said.status.code(), Some(1));
    assert!(said.stderr.contains("control socket"), "{}", said.stderr);
    let text = said.text();
    assert!(text.contains("path              responses/s"), "{text}");
    assert!(!text.contains('\x1b'), "{text}");
}

#[test]
fn a_watch_in_json_has_a_line_for_each_second() {
    let kettle = Kettle::start(Setup::default());
    let watch = kettle.ctl(&["status", "--watch", "--json"]).start();
    let line = |bytes: &[u8]| {
        let end = bytes.iter().position(|byte| *byte == b'\n')?;
        Some(bytes[..end].to_vec())
    };
    let line = watch.stdout.wait_until("a line", line);
    let status: serde_json::Value = serde_json::from_slice(&line).unwrap();
    assert_eq!(status["process"], kettle.process());
}

#[test]
fn a_watch_that_nobody_reads_ends() {
    let kettle = Kettle::start(Setup::default());
    let script = "\"$0\" ctl --socket \"$1\" status --watch | head -1; echo ${PIPESTATUS[0]}";
    let said = Tool::new("bash")
        .args(["-c", script])
        .args([kettle_program(), kettle.folder.path("admin.sock")])
        .succeed();
    assert!(said.starts_with("kettle ") && said.ends_with("\n0\n"), "{said}");
}

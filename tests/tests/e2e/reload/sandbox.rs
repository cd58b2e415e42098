//! The rights that a serving process has given up, and the words of a reload on that.

use super::*;

#[test]
fn all_threads_of_a_server_are_confined() {
    let kettle = Kettle::start(Setup::default());
    let threads = fs::read_dir(format!("/proc/{}/task", kettle.process())).unwrap();
    let mut seen = 0;
    let is_filtered = kettle.status("/sandbox").as_str().unwrap().contains("seccomp");
    for thread in threads {
        let status = fs::read_to_string(thread.unwrap().path().join("status")).unwrap();
        assert!(status.contains("\nNoNewPrivs:\t1\n"), "{status}");
        assert_eq!(status.contains("\nSeccomp:\t2\n"), is_filtered, "{status}");
        seen += 1;
    }
    assert!(seen > 1);
    let doctor = Tool::kettle(["doctor"]).output();
    assert_eq!(doctor.text().contains("✓ sandbox"), is_confined(&kettle), "{}", doctor.text());
}

#[test]
fn a_reload_that_names_what_the_sandbox_lacks_changes_nothing_and_says_so() {
    let kettle = Kettle::start(Setup::default());
    if !is_confined(&kettle) {
        return skip("this kernel confines nothing");
    }
    let elsewhere = tempfile::tempdir().unwrap();
    let root = elsewhere.path().display().to_string();
    kettle.folder.change_config("\"www\"", &format!("{root:?}"));
    let said = kettle.ctl(&["reload"]).fail(&root);
    assert!(said.contains("confined") && said.contains("restart it"), "{said}");
    kettle.folder.change_config(&format!("{root:?}"), "\"www\"");
    assert!(kettle.ctl(&["reload"]).succeed().contains("reloaded"));
}

#[test]
fn a_server_without_a_sandbox_takes_every_reload() {
    let kettle = Kettle::start(Setup::default().set("server", "sandbox = \"off\""));
    assert_eq!(kettle.status("/sandbox"), "off");
    let elsewhere = tempfile::tempdir().unwrap();
    kettle.folder.change_config("\"www\"", &format!("{:?}", elsewhere.path()));
    assert!(kettle.ctl(&["reload"]).succeed().contains("reloaded"));
}

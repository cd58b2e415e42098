//! A server that started as root and became somebody else.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use rustix::process::geteuid;

use kettle_tests::content::{assert_same, content};
use kettle_tests::environment::{has_kernel_tls, paths_here, skip};
use kettle_tests::http::Connection;
use kettle_tests::kettle::Kettle;
use kettle_tests::setup::Setup;
use kettle_tests::suite::TLS13_AES_128;
use kettle_tests::tool::Tool;

#[test]
fn a_server_that_gave_up_root_takes_every_path() {
    if !geteuid().is_root() {
        return skip("only root can become somebody else");
    }
    let setup = Setup::paths(paths_here()).sizes(&[70_000]).set("server", "user = \"nobody\"");
    let kettle = Kettle::start(setup);
    let status = fs::read_to_string(format!("/proc/{}/status", kettle.process())).unwrap();
    let users = status.lines().find(|line| line.starts_with("Uid:")).unwrap();
    assert!(!users.split_whitespace().any(|user| user == "0"), "{users}");
    // The folder of a test is its user's alone.
    fs::set_permissions(kettle.folder.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    for path in paths_here() {
        let response = kettle.connect_by(path, TLS13_AES_128).get("/70000");
        assert_same(&response.body, &content(70_000), path);
    }
    assert_eq!(kettle.status("/total/switches"), if has_kernel_tls() { 3 } else { 0 });
}

#[test]
fn memory_is_shown_to_root_alone_unless_the_operator_allows_it() {
    for (is_dumpable, is_shown) in [(None, false), (Some(false), false), (Some(true), true)] {
        let mut setup = Setup::default();
        if let Some(is_dumpable) = is_dumpable {
            setup = setup.set("server", &format!("dumpable = {is_dumpable}"));
        }
        if geteuid().is_root() {
            setup = setup.set("server", "user = \"nobody\"");
        }
        let kettle = Kettle::start(setup);
        // The files belong to root where memory is not to be read.
        let owner = fs::metadata(format!("/proc/{}/maps", kettle.process())).unwrap().uid();
        assert_eq!(owner != 0, is_shown, "dumpable = {is_dumpable:?}");
    }
}

#[test]
fn what_the_user_may_not_read_is_said_before_a_reload_needs_it() {
    if !geteuid().is_root() {
        return skip("only root can become somebody else");
    }
    let kettle = Kettle::start(Setup::default().set("server", "user = \"nobody\""));
    fs::set_permissions(kettle.folder.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    let warned = kettle.messages().text();
    assert!(warned.contains("`nobody`, which kettle becomes, may not read"), "{warned}");
    let refused = kettle.ctl(&["reload"]).output();
    assert!(!refused.status.success() && refused.text().contains("localhost.key"));

    // What check advises is done, until it has no more advice.
    for step in 0.. {
        let said = Tool::kettle(["check", "--config"]).args([kettle.folder.config()]).output();
        let text = said.text();
        if said.status.success() {
            assert_eq!(step, 1, "{text}");
            break;
        }
        let advice = text.split("help: `").nth(1).and_then(|rest| rest.split('`').next());
        let advice = advice.unwrap_or_else(|| panic!("no advice in\n{text}"));
        Tool::new("sh").args(["-c", advice]).run();
        assert!(step < 3, "{text}");
    }
    let said = kettle.ctl(&["reload"]).succeed();
    assert!(said.contains("reloaded"), "{said}");
}

//! A server that started as root and became somebody else.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use rustix::process::geteuid;

use kettle_tests::content::{assert_same, content};
use kettle_tests::environment::{has_kernel_tls, paths_here, skip};
use kettle_tests::http::Connection;
use kettle_tests::kettle::Kettle;
use kettle_tests::setup::Setup;
use kettle_tests::suite::TLS13_AES_128;

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

//! The other commands: what they say, and how they exit.

use kettle_tests::environment::has_kernel_tls;
use kettle_tests::kernel_counts::Turn;
use kettle_tests::kettle::Kettle;
use kettle_tests::setup::Setup;
use kettle_tests::tool::{Ended, Tool};

#[test]
fn check_finds_nothing_wrong_with_a_good_configuration() {
    let (_, folder) = Setup::default().lay_out();
    let said = Tool::kettle(["check", "--config"]).args([folder.config()]).succeed();
    assert!(said.contains("is fine: 1 site on 1 listener"), "{said}");
}

#[test]
fn check_names_every_mistake_with_its_place() {
    let (_, folder) = Setup::default().site("nmaes = [\"x\"]").lay_out();
    folder.change_config("workers = 1", "workers = 0");
    let said = check(&folder.config());
    assert!(!said.status.success());
    let text = said.text();
    assert!(text.contains("`workers` takes a whole number of workers from 1 to 1024"), "{text}");
    assert!(text.contains("workers = 0\n"), "{text}");
    assert!(text.contains("`nmaes` is not a setting") && text.contains("help: "), "{text}");
    assert!(text.contains("2 mistakes"), "{text}");
    let line = text.lines().find(|line| line.contains("`workers`")).unwrap();
    assert!(line.contains("kettle.toml:"), "{line}");
}

#[test]
fn check_looks_into_the_files_that_are_named() {
    let (_, folder) = Setup::default().lay_out();
    for (old, new, mistake) in [
        ("localhost.key", "missing.key", "missing.key"),
        ("missing.key", "localhost.pem", "localhost.pem"),
        ("root = \"www\"", "root = \"nowhere\"", "nowhere"),
    ] {
        folder.change_config(old, new);
        let said = check(&folder.config());
        assert!(!said.status.success());
        assert!(said.text().contains(mistake), "{}", said.text());
    }
}

#[test]
fn a_server_whose_configuration_has_mistakes_does_not_start() {
    let (_, folder) = Setup::default().lay_out();
    folder.change_config("root = \"www\"", "rot = \"www\"");
    let said = Tool::kettle(["run", "--config"]).args([folder.config()]).output();
    assert!(!said.status.success());
    assert!(said.stderr.contains("`rot` is not a setting"), "{}", said.stderr);
    let said = Tool::kettle(["run", "--config"]).args([folder.path("missing.toml")]).output();
    assert!(!said.status.success() && said.stderr.contains("missing.toml"), "{}", said.stderr);
}

#[test]
fn a_port_in_use_is_explained() {
    let kettle = Kettle::start(Setup::default());
    let second = Tool::kettle(["run", "--config"]).args([kettle.folder.config()]).output();
    assert!(!second.status.success());
    let port = kettle.address().port();
    assert!(second.stderr.contains(&format!("port {port} is in use")), "{}", second.stderr);
    // The first one lives on, its control socket included.
    assert_eq!(kettle.status("/process"), kettle.process());
}

#[test]
fn ctl_without_a_server_says_so() {
    let (_, folder) = Setup::default().lay_out();
    let said = Tool::kettle(["ctl", "--config"]).args([folder.config()]).args(["status"]).output();
    assert!(!said.status.success() && said.stderr.contains("admin.sock"), "{}", said.stderr);
}

#[test]
fn the_doctor_exits_as_the_machine_is() {
    let _turn = Turn::shared();
    let has_kernel_tls = has_kernel_tls();
    let said = Tool::kettle(["doctor", "--json"]).output();
    assert_eq!(said.status.success(), has_kernel_tls);
    let report: serde_json::Value = serde_json::from_slice(&said.stdout).unwrap();
    assert_eq!(report["ktls_tx"], has_kernel_tls);
    assert_eq!(report["probe"]["suites"].as_array().unwrap().len(), 6);
    let screen = Tool::kettle(["doctor"]).output();
    assert_eq!(screen.status.success(), has_kernel_tls);
    let verdict = if has_kernel_tls { "kTLS works here" } else { "kTLS does not work here" };
    assert!(screen.text().contains(verdict), "{}", screen.text());
}

#[test]
fn serve_serves_a_folder_and_says_where() {
    let _turn = Turn::shared();
    let (_, folder) = Setup::default().file("www/a", "content").lay_out();
    let address = format!("{}:8443", kettle_tests::setup::unused_ip());
    let serve = Tool::kettle(["serve", "--listen", &address, "--workers", "1"])
        .args([folder.path("www")])
        .environment("XDG_STATE_HOME", folder.path("state"))
        .environment("HOME", folder.path("home"))
        .start();
    serve.stdout.wait_for("TLS: ");
    let said = serve.stdout.text();
    assert!(said.contains(":8443/") && said.contains("Certificate: SHA-256 "), "{said}");
    let url = format!("https://{address}/a");
    assert_eq!(Tool::new("curl").args(["--silent", "--insecure", &url]).succeed(), "content");
}

fn check(config: &std::path::Path) -> Ended {
    Tool::kettle(["check", "--config"]).args([config]).output()
}

//! The other commands: what they say, and how they exit.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use kettle_tests::certificate::issue_ending;
use kettle_tests::environment::kettle_program;
use kettle_tests::kernel_counts::Turn;
use kettle_tests::mounted::Mounted;
use kettle_tests::setup::Folder;
use kettle_tests::tool::Running;
use rustix::process::geteuid;

use super::*;

#[test]
fn check_finds_nothing_wrong_with_a_good_configuration() {
    let (_, folder) = Setup::default().lay_out();
    let said = folder.kettle("check").succeed();
    assert!(said.contains("is fine: 1 site on 1 listener"), "{said}");
    assert!(said.contains("note: no site is the default"), "{said}");
    let (_, folder) = Setup::default().site("default = true").lay_out();
    let said = folder.kettle("check").succeed();
    assert!(!said.contains("default"), "{said}");
}

#[test]
fn check_names_every_mistake_with_its_place() {
    let (_, folder) = Setup::default().site("nmaes = [\"x\"]").lay_out();
    folder.change_config("workers = 1", "workers = 0");
    let text =
        folder.kettle("check").fail("`workers` takes a whole number of workers from 1 to 1024");
    assert!(text.contains("workers = 0\n"), "{text}");
    assert!(text.contains("`nmaes` is not a setting") && text.contains("help: "), "{text}");
    assert!(text.contains("2 mistakes"), "{text}");
    let line = text.lines().find(|line| line.contains("`workers`")).unwrap();
    assert!(line.contains("kettle.toml:"), "{line}");
}

/// Standard error has no buffer: each letter of a mistake by itself made a long report last for minutes.
#[test]
fn a_mistake_is_said_in_one_write() {
    let (_, folder) = Setup::default().lay_out();
    folder.change_config("workers = 1", "workers = 0");
    let (said, stderr) = UnixDatagram::pair().unwrap();
    let mut kettle = Command::new(kettle_program());
    kettle.args(["run", "--config"]).arg(folder.config()).stderr(OwnedFd::from(stderr));
    assert!(!kettle.status().unwrap().success());
    let mut bytes = [0; 4096];
    let count = said.recv(&mut bytes).unwrap();
    let text = String::from_utf8_lossy(&bytes[..count]);
    assert!(text.starts_with("error: ") && text.contains("help: write"), "{text}");
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
        folder.kettle("check").fail(mistake);
    }
}

#[test]
fn a_server_whose_configuration_has_mistakes_does_not_start() {
    let (_, folder) = Setup::default().lay_out();
    folder.change_config("root = \"www\"", "rot = \"www\"");
    folder.kettle("run").fail("`rot` is not a setting");
    Tool::kettle(["run", "--config"]).args([folder.path("missing.toml")]).fail("missing.toml");
}

#[test]
fn a_port_in_use_is_explained() {
    let kettle = Kettle::start(Setup::default());
    kettle.folder.kettle("run").fail(&format!("port {} is in use", kettle.address().port()));
    // The first one lives on, its control socket included.
    assert_eq!(kettle.status("/process"), kettle.process());
}

#[test]
fn ctl_without_a_server_says_so() {
    let (_, folder) = Setup::default().lay_out();
    folder.kettle("ctl").args(["status"]).fail("admin.sock");
}

#[test]
fn ctl_asks_at_the_usual_place_where_the_configuration_does_not_help() {
    if !geteuid().is_root() {
        return skip("only root can put a socket at the usual place for one command");
    }
    let kettle = Kettle::start(Setup::default());
    let mut reloads_refused = 0;
    let mut reload = |config: &Path, is_done: bool, why: &str| {
        // A file system of the command's own, in which the server's socket is where it is taken to be.
        let script = "mount -t tmpfs none /run; mkdir /run/kettle; ln -s \"$1\" /run/kettle/admin.sock; \
                      exec \"$2\" ctl --config \"$3\" reload";
        let words = ["--mount", "--propagation", "private", "sh", "-euc", script, "sh"];
        let socket = kettle.folder.path("admin.sock");
        let said = Tool::new("unshare").args(words).args([&socket, &kettle_program(), config]);
        let said = said.output();
        assert_eq!(said.status.success(), is_done, "{}", said.text());
        let says = said.stderr.contains("asking the server behind /run/kettle/admin.sock");
        assert_eq!(says, !why.is_empty(), "{}", said.stderr);
        assert!(said.stderr.contains(why), "{}", said.stderr);
        reloads_refused += u64::from(!is_done);
        assert_eq!(kettle.status("/reloads_refused"), reloads_refused);
    };
    let folder = &kettle.folder;
    let config = kettle.folder.config();
    reload(&config, true, "");
    folder.change_config("admin.sock", "elsewhere.sock");
    reload(&config, true, "elsewhere.sock");
    // Nobody writes into it, and what somebody would is for the server.
    let pipe = folder.path("pipe");
    mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
    reload(&pipe, true, "is a pipe");
    // The server is asked, so that its counts and its log tell of it.
    folder.change_config("root = \"www\"", "rot = \"www\"");
    reload(&config, false, "`rot` is not a setting");
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
fn a_certificate_that_ends_soon_is_told_wherever_one_looks() {
    let left = Duration::from_secs(10 * 24 * 3_600 + 60);
    let kettle = Kettle::start(Setup::default().certificate(issue_ending(&["localhost"], left)));
    kettle.messages().wait_for("localhost.pem ends at ");
    let said = kettle.folder.kettle("check").output();
    assert!(
        said.status.success() && said.text().contains("localhost.pem ends at "),
        "{}",
        said.text()
    );
    assert_eq!(kettle.status("/certificates/ending"), 1);
    assert_eq!(kettle.status("/certificates/soonest/0/key"), "ecdsa");
    let screen = kettle.ctl(&["status"]).succeed();
    assert!(screen.contains("certificate  localhost (ecdsa) ends in 10 d 0 h\n"), "{screen}");
    let doctor = |words: &[&str]| {
        Tool::kettle(["doctor", &kettle.address().to_string(), "--name", "localhost"])
            .args(words)
            .environment("SSL_CERT_FILE", kettle.folder.path("authority.pem"))
            .output()
    };
    assert!(doctor(&[]).status.success() && doctor(&["--fail-on", "bad"]).status.success());
    let said = doctor(&["--fail-on", "warning"]);
    assert!(!said.status.success(), "{}", said.text());
    let words = said.text().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("look why that was not done yet"), "{words}");
    // A renewed one ends the warnings.
    let renewed = issue(&["localhost"], Kind::Ecdsa);
    kettle.folder.write_certificate("localhost", &renewed);
    drop(kettle.ctl(&["reload"]).succeed());
    assert_eq!(kettle.status("/certificates/ending"), 0);
    assert!(!kettle.ctl(&["status"]).succeed().contains("certificate  "));
}

#[test]
fn check_and_the_doctor_name_what_served_folders_lie_on() {
    let (_, folder) = Setup::default().lay_out();
    let root = folder.path("www");
    let lies_on = format!("{} lies on ", root.display());
    let doctor = Tool::kettle(["doctor", "--json", "--config"]).args([folder.config()]).output();
    let report: serde_json::Value = serde_json::from_slice(&doctor.stdout).unwrap();
    let findings = report["findings"].as_array().unwrap();
    let finding = findings.iter().find(|it| it["check"] == "served folders").unwrap();
    assert!(finding["message"].as_str().unwrap().starts_with(&lies_on), "{finding}");
    // `check` says it where it is bad news.
    let is_well = finding["state"] == "good";
    let said = folder.kettle("check").output();
    assert_ne!(said.text().contains(&format!("note: {lies_on}")), is_well, "{}", said.text());

    folder.write("lower/index.html", "content");
    let beside = folder.path("beside");
    let beside_on = Mounted::at(beside.clone(), "tmpfs", "mode=755", Stdio::null());
    let mounted = Mounted::overlay(root.clone(), &folder.path("lower"), &beside);
    let (Ok(_beside), Ok(_mounted)) = (beside_on, mounted) else {
        return skip("no overlay can be mounted here");
    };
    let said = folder.kettle("check").output();
    let text = said.text();
    assert!(said.status.success(), "{text}");
    // Newer kernels may let the overlay say what the file system below it says, which is no bad news.
    assert!(!text.contains("overlayfs") || text.contains("help: put large files on"), "{text}");
}

#[test]
fn check_and_run_take_the_file_as_it_is_typed() {
    let (_, folder) = Setup::default().lay_out();
    let said = Tool::kettle(["check"]).args([folder.config()]).succeed();
    assert!(said.contains("is fine"), "{said}");
    let said = Tool::kettle(["run"]).args([folder.path("missing.toml")]).output();
    assert!(said.stderr.contains("missing.toml"), "{}", said.stderr);
}

#[test]
fn a_shared_certificate_is_warned_about_once() {
    let root = "[[site.route]]\nroot = \"www\"";
    let (_, folder) = Setup::default().another_site(&["127.0.0.1"], "localhost", root).lay_out();
    let said = folder.kettle("check").output().text();
    assert_eq!(said.matches("the issuer of certificate 1").count(), 1, "{said}");
}

#[test]
fn serve_serves_a_folder_and_says_where_and_how_to_trust_it() {
    let _turn = Turn::shared();
    let (serve, address, folder) = serve_a(&["--quiet"], "state");
    let said = serve.stdout.text();
    assert!(said.contains("Certificate: SHA-256 "), "{said}");
    let url = format!("https://{address}/a");
    assert_eq!(Tool::new("curl").args(["--silent", "--insecure", &url]).succeed(), "content");
    // The printed command reaches this server and trusts it, at an address that `localhost` does not stand for.
    let [file, url] = serve.advice();
    assert_eq!(folder.path("state/kettle/self-signed/self-signed.pem").display().to_string(), file);
    let trusting = Tool::new("curl").args(["--silent", "--cacert", &file, &format!("{url}a")]);
    assert_eq!(trusting.args(["--write-out", " %{http_version}"]).succeed(), "content 2");
}

#[test]
fn serve_starts_without_a_folder_for_its_certificate() {
    let _turn = Turn::shared();
    // No folder can be made there, even by root.
    let (serve, address, folder) = serve_a(&[], "/proc/nowhere");
    let said = serve.stdout.text();
    assert!(said.contains("Made for this run only") && said.contains("openssl x509"), "{said}");
    // The printed commands, as somebody would paste them.
    let commands = said.split("Trust it:").nth(1).unwrap().split("TLS: ").next().unwrap();
    let folder = folder.path("");
    let pasted = format!("cd '{}'; {}a", folder.display(), commands.trim_end());
    assert!(pasted.ends_with(&format!("https://{address}/a")), "{pasted}");
    assert_eq!(
        Tool::new("sh").args(["-c", &pasted.replace("curl ", "curl --silent ")]).succeed(),
        "content"
    );
}

#[test]
fn serve_writes_a_line_for_each_response_to_a_terminal_unless_it_is_to_be_quiet() {
    let _turn = Turn::shared();
    for (quiet, is_told) in [("", true), ("--quiet", false)] {
        let command = |server| format!("{server} {quiet} & echo process $!.; wait");
        let Some((serve, address, _folder)) = serve_in_a_terminal(command) else { return };
        let url = format!("https://{address}/a");
        assert_eq!(Tool::new("curl").args(["--silent", "--insecure", &url]).succeed(), "content");
        if is_told {
            serve.stdout.wait_for(" 200 GET /a 7 B ");
            continue;
        }
        // All lines are written when it has ended.
        let said = serve.stdout.text();
        let process = said.split("process ").nth(1).and_then(|rest| rest.split('.').next());
        assert_eq!(Tool::new("kill").args(["-TERM", process.unwrap()]).succeed(), "");
        assert!(serve.stdout.has_ended_in_time());
        let said = serve.stdout.text();
        assert!(!said.contains("GET /a"), "{said}");
    }
}

#[test]
fn a_server_ends_with_the_terminal_in_front_of_it() {
    let _turn = Turn::shared();
    // Where the tests are run by nohup they would all have SIGHUP ignored.
    let command = |server| format!("exec env --default-signal=HUP {server}");
    let Some((terminal, address, _folder)) = serve_in_a_terminal(command) else { return };
    drop(terminal);
    wait_until("nobody listens", || std::net::TcpStream::connect(&address).is_err());
}

#[test]
fn serve_sends_what_was_saved_a_moment_ago() {
    let (_serve, address, folder) = serve_a(&[], "state");
    let url = format!("https://{address}/a");
    let ask = || Tool::new("curl").args(["--silent", "--insecure", &url]).succeed();
    for text in ["one", "two", "six"] {
        folder.write("www/a", text);
        assert_eq!(ask(), text);
        assert_eq!(ask(), text);
    }
    std::fs::remove_file(folder.path("www/a")).unwrap();
    assert!(ask().contains("<h1>404</h1>"));
}

/// A shell with `kettle serve` in a terminal of its own, once it serves; none where nothing makes terminals.
fn serve_in_a_terminal(
    command: impl FnOnce(String) -> String,
) -> Option<(Running, String, Folder)> {
    if std::process::Command::new("script").arg("--version").output().is_err() {
        skip("there is no `script`, which makes a terminal");
        return None;
    }
    let (_, folder) = Setup::default().file("www/a", "content").lay_out();
    let address = unused_port();
    let words = [kettle_program(), "serve".into(), folder.path("www"), "--listen".into()];
    let words: Vec<_> = words.iter().map(|word| word.display().to_string()).collect();
    let command = command(format!("{} {address} --workers 1", words.join(" ")));
    let terminal = Tool::new("script")
        .args(["--quiet", "--flush", "--command", &command, "/dev/null"])
        .environment("XDG_STATE_HOME", folder.path("state"))
        .start();
    terminal.stdout.wait_for("TLS: ");
    Some((terminal, address, folder))
}

/// `kettle serve` on a folder with a file `a`, once it serves, with its address.
fn serve_a(words: &[&str], state: &str) -> (Running, String, Folder) {
    let (_, folder) = Setup::default().file("www/a", "content").lay_out();
    let address = unused_port();
    let serve = Tool::kettle(["serve", "--listen", &address, "--workers", "1"])
        .args(words)
        .args([folder.path("www")])
        .environment("XDG_STATE_HOME", folder.path(state))
        .environment("HOME", folder.path("home"))
        .start();
    serve.stdout.wait_for("TLS: ");
    (serve, address, folder)
}

/// The port of no other server here.
fn unused_port() -> String {
    let free = std::net::TcpListener::bind((kettle_tests::setup::unused_ip(), 0)).unwrap();
    free.local_addr().unwrap().to_string()
}

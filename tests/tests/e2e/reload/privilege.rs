//! A server that started as root and became somebody else.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use rustix::process::{Pid, geteuid, kill_process};

use super::*;

/// A server that became somebody else; none where this is not root.
fn started_as_nobody(setup: Setup) -> Option<Kettle> {
    if !geteuid().is_root() {
        skip("only root can become somebody else");
        return None;
    }
    Some(Kettle::start(setup.set("server", "user = \"nobody\"")))
}

/// The same, in a folder that others may look into.
fn open_to_others() -> Option<Kettle> {
    let kettle = started_as_nobody(Setup::default())?;
    fs::set_permissions(kettle.folder.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    Some(kettle)
}

#[test]
fn a_server_that_gave_up_root_takes_every_path() {
    let setup = Setup::paths(paths_here()).sizes(&[70_000]);
    let Some(kettle) = started_as_nobody(setup) else { return };
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
fn a_keeper_reads_and_binds_for_reloads_what_only_root_may() {
    let Some(kettle) = open_to_others() else { return };
    let mode = fs::metadata(kettle.folder.path("localhost.key")).unwrap().mode();
    assert_eq!(mode & 0o077, 0, "a key that only root may read");
    let said = kettle.messages().text();
    assert!(!said.contains("may not read"), "{said}");

    kettle.folder.write_certificate("localhost", &issue(&["localhost"], Kind::Ecdsa));
    let before = served_certificate(kettle.address());
    assert!(kettle.ctl(&["reload"]).succeed().contains("reloaded"));
    assert_ne!(served_certificate(kettle.address()), before);

    let low = format!("{}:443", kettle_tests::setup::unused_ip());
    let listener = format!("[[listener]]\naddress = {low:?}\n[[listener]]\n");
    kettle.folder.change_config("[[listener]]\n", &listener);
    assert!(kettle.ctl(&["reload"]).succeed().contains("reloaded"));
    served_certificate(low.parse().unwrap());

    // It is root still, and has none of root's powers but two.
    let keeper = keeper_of(&kettle);
    let status = fs::read_to_string(format!("/proc/{keeper}/status")).unwrap();
    let line = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim();
    assert_eq!(line("Uid:").split_whitespace().next(), Some("0"));
    assert_eq!(u64::from_str_radix(line("CapEff:"), 16), Ok(1 << 2 | 1 << 10));
    assert_eq!(line("NoNewPrivs:"), "1");
    let is_filtered = kettle.status("/sandbox").as_str().unwrap().contains("seccomp");
    assert_eq!(line("Seccomp:"), if is_filtered { "2" } else { "0" });

    Tool::new("kill").args(["-KILL", &keeper.to_string()]).run();
    // Nobody asks how it ended, and it does not stay for that.
    let is_left = || fs::exists(format!("/proc/{keeper}")).unwrap();
    wait_until("nothing is left of the keeper", || !is_left());
    kettle.ctl(&["reload"]).fail("the keeper");
    served_certificate(kettle.address());
    let key = kettle.folder.path("localhost.key");
    fs::set_permissions(key, fs::Permissions::from_mode(0o644)).unwrap();
    fs::set_permissions(kettle.folder.config(), fs::Permissions::from_mode(0o644)).unwrap();
    assert!(kettle.ctl(&["reload"]).succeed().contains("reloaded"));
}

#[test]
fn a_keeper_makes_and_removes_unix_sockets_where_only_root_may() {
    if !geteuid().is_root() {
        return skip("only root can become somebody else");
    }
    // Below /tmp somebody else may choose what a name leads to.
    let sockets = tempfile::tempdir_in("/run").unwrap();
    fs::set_permissions(sockets.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let path = |name: &str| sockets.path().join(name);
    let listener = |name: &str| {
        let address = format!("address = \"unix:{}\"", path(name).display());
        format!("\n[[listener]]\n{address}\ngroup = \"0\"\n")
    };
    let setup = Setup::default().set("server", "user = \"nobody\"").more(&listener("first"));
    let mut kettle = Kettle::start(setup);
    let owner = |name: &str| {
        let file = fs::symlink_metadata(path(name)).unwrap();
        (file.uid(), file.gid(), file.mode() & 0o7777)
    };
    assert_eq!((owner("first").1, owner("first").2), (0, 0o660));
    assert_ne!(owner("first").0, 0, "it is the serving user's");

    let keeper = keeper_of(&kettle);
    let status = fs::read_to_string(format!("/proc/{keeper}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap().trim();
    assert_eq!(u64::from_str_radix(line, 16), Ok(1 | 1 << 2 | 1 << 10), "and CAP_CHOWN");

    let both = listener("first") + &listener("second");
    kettle.folder.change_config(&listener("first"), &both);
    assert!(kettle.ctl(&["reload"]).succeed().contains("reloaded"));
    assert_eq!(owner("second"), owner("first"));
    std::os::unix::net::UnixStream::connect(path("second")).unwrap();
    kettle.folder.change_config(&both, &listener("second"));
    assert!(kettle.ctl(&["reload"]).succeed().contains("reloaded"));
    assert!(!path("first").exists());

    // Of another folder it was not told at the start.
    let other = tempfile::tempdir_in("/run").unwrap();
    let elsewhere = other.path().join("second");
    let [second, moved] =
        [path("second"), elsewhere.clone()].map(|path| format!("unix:{}\"", path.display()));
    kettle.folder.change_config(&second, &moved);
    let refused = kettle.ctl(&["reload"]).output();
    let why = if is_confined(&kettle) { "since its start it is confined" } else { "reloaded" };
    assert!(refused.text().contains(why), "{}", refused.text());

    kettle.stop();
    assert!(!path("second").exists() && !elsewhere.exists());
}

#[test]
fn a_folder_that_only_root_may_look_into_is_not_missing() {
    let Some(mut kettle) = open_to_others() else { return };
    let socket = kettle.folder.path("private/in/admin.sock");
    fs::create_dir_all(socket.parent().unwrap()).unwrap();
    let private = kettle.folder.path("private");
    fs::set_permissions(private, fs::Permissions::from_mode(0o700)).unwrap();
    kettle.folder.change_config("\"admin.sock\"", "\"private/in/admin.sock\"");
    kettle.restart();
    let reload = Tool::kettle(["ctl", "--socket"]).args([socket]).args(["reload"]);
    assert!(reload.succeed().contains("reloaded"));
}

#[test]
fn a_keeper_is_heard_though_its_server_was_stopped_meanwhile() {
    let Some(kettle) = open_to_others() else { return };
    let server = Pid::from_raw(kettle.process().cast_signed()).unwrap();
    let keeper = Pid::from_raw(keeper_of(&kettle).cast_signed()).unwrap();
    kill_process(keeper, Signal::STOP).unwrap();
    std::thread::scope(|scope| {
        let reload = kettle.ctl(&["reload"]);
        let reload = scope.spawn(|| reload.output());
        // More than one question is asked; none may be given up.
        for _ in 0..2 {
            wait_for_thread(&kettle, "syscall", |it| it.starts_with(RECVMSG));
            kill_process(server, Signal::STOP).unwrap();
            wait_for_thread(&kettle, "stat", |it| it.contains(") T "));
            kill_process(server, Signal::CONT).unwrap();
        }
        wait_for_thread(&kettle, "syscall", |it| it.starts_with(RECVMSG));
        kill_process(keeper, Signal::CONT).unwrap();
        let reloaded = reload.join().unwrap();
        assert!(reloaded.text().contains("reloaded"), "{}", reloaded.text());
    });
}

/// Waits until this file in /proc says it of one of the server's threads.
fn wait_for_thread(kettle: &Kettle, file: &str, says: fn(&str) -> bool) {
    let is_so = |thread: fs::DirEntry| {
        fs::read_to_string(thread.path().join(file)).is_ok_and(|content| says(&content))
    };
    let threads = || fs::read_dir(format!("/proc/{}/task", kettle.process())).unwrap();
    wait_until(file, || threads().filter_map(Result::ok).any(is_so));
}

/// The number of recvmsg(2), as `syscall` in /proc says it.
const RECVMSG: &str = if cfg!(target_arch = "x86_64") { "47 " } else { "212 " };

#[test]
fn a_reload_without_a_keeper_says_that_there_is_none() {
    let Some(mut kettle) = started_as_nobody(Setup::default()) else { return };
    // A user who may write the configuration could have root open anything.
    std::os::unix::fs::chown(kettle.folder.path(""), Some(NOBODY), None).unwrap();
    kettle.restart();
    kettle.messages().wait_for("there will be no keeper");
    kettle.ctl(&["reload"]).fail("started without the keeper");
    served_certificate(kettle.address());
}

#[test]
fn a_keeper_ends_with_its_server() {
    for signal in [Signal::KILL, Signal::TERM] {
        let Some(mut kettle) = started_as_nobody(Setup::default()) else { return };
        let keeper = keeper_of(&kettle);
        // A stop of the whole service ends the server, and that its keeper: a signal of its own does not.
        let pid = Pid::from_raw(keeper.cast_signed()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        assert!(kettle.ctl(&["reload"]).succeed().contains("reloaded"));
        kettle.signal(signal);
        let _ = kettle.ended();
        wait_until("the keeper has ended with its server", || !is_running(keeper));
    }
}

#[test]
fn a_keeper_that_has_gone_is_said_before_a_reload_needs_it() {
    let listen = unused_address();
    let Some(kettle) = started_as_nobody(Setup::default().metrics(listen)) else { return };
    let keeper = Pid::from_raw(keeper_of(&kettle).cast_signed()).unwrap();
    // Its answer is not taken for its end.
    assert!(kettle.ctl(&["reload"]).succeed().contains("reloaded"));
    assert!(scrape(listen).contains("kettle_keeper_up 1"));
    assert!(!kettle.ctl(&["status"]).succeed().contains("keeper"));
    kill_process(keeper, Signal::KILL).unwrap();
    kettle.messages().wait_for("the keeper has gone");
    assert!(scrape(listen).contains("kettle_keeper_up 0"));
    let status = kettle.ctl(&["status"]).succeed();
    assert!(status.contains("keeper       gone: "), "{status}");
}

/// One that has ended and that nobody has waited for yet does not run.
fn is_running(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

/// The server's only child.
fn keeper_of(kettle: &Kettle) -> u32 {
    let server = kettle.process();
    let its_child = format!("PPid:\t{server}\n");
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let mut keepers = processes.filter_map(|process| {
        let status = fs::read_to_string(process.path().join("status")).ok()?;
        let is_keeper = status.starts_with("Name:\tkettle-keeper\n");
        (is_keeper && status.contains(&its_child)).then(|| process.file_name())
    });
    keepers.next().unwrap().to_str().unwrap().parse().unwrap()
}

fn served_certificate(address: SocketAddr) -> Vec<u8> {
    let client = Dialer::suite(TLS13_AES_128).connect(address);
    client.tls.peer_certificates().unwrap()[0].to_vec()
}

#[test]
fn what_the_user_may_not_read_is_said_before_a_reload_needs_it() {
    let Some(kettle) = open_to_others() else { return };
    // The keeper opens nothing that others than root choose.
    std::os::unix::fs::chown(kettle.folder.path(""), Some(NOBODY), None).unwrap();
    kettle.ctl(&["reload"]).fail("localhost.key");

    // The advice of check is followed, until it has no more.
    for step in 0.. {
        let said = kettle.folder.kettle("check").output();
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

const NOBODY: u32 = 65_534;

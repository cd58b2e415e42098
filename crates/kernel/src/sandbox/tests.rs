//! Landlock holds for a thread and what that starts, so a thread of the test is confined. System calls end processes: these
//! tests start this program again, as the one test that they name.

use std::fs;
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output};
use std::thread;

use kettle_skip::skip;

use super::*;

mod cost;

#[test]
fn what_is_confined_reads_writes_executes_and_connects_only_as_listed() {
    if let Err(error) = landlock_version() {
        skip(&error.to_string());
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    for name in ["read", "write", "sockets", "neither"] {
        fs::create_dir(folder.path().join(name)).unwrap();
        fs::write(folder.path().join(name).join("file"), name).unwrap();
    }
    thread::scope(|scope| scope.spawn(|| as_confined(folder.path())).join().unwrap());
    assert_eq!(fs::read(folder.path().join("neither/file")).unwrap(), b"neither");
}

#[test]
fn a_process_with_several_threads_is_not_confined_in_one_of_them() {
    let refused = confine_files(&Files::default());
    assert!(matches!(refused, Err(SandboxError::OtherThreads)), "{refused:?}");
}

fn as_confined(folder: &Path) {
    let path = |name: &str| folder.join(name);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let files = Files {
        read: vec![path("read"), path("missing")],
        write: vec![path("write")],
        remove: Vec::new(),
        sockets: vec![path("sockets")],
        connect: false,
    };
    files::restrict(&files).unwrap();
    let is_refused = |outcome: io::Result<()>| {
        let error = outcome.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    };
    assert_eq!(fs::read(path("read/file")).unwrap(), b"read");
    assert_eq!(fs::read_dir(path("read")).unwrap().count(), 1);
    is_refused(fs::write(path("read/file"), ""));
    is_refused(fs::write(path("read/new"), ""));
    is_refused(fs::remove_file(path("read/file")));

    fs::write(path("write/new"), "new").unwrap();
    fs::create_dir(path("write/folder")).unwrap();
    fs::rename(path("write/new"), path("write/folder/old")).unwrap();
    fs::remove_file(path("write/folder/old")).unwrap();

    drop(UnixListener::bind(path("sockets/new")).unwrap());
    fs::rename(path("sockets/new"), path("sockets/moved")).unwrap();
    fs::remove_file(path("sockets/moved")).unwrap();
    is_refused(fs::write(path("sockets/file"), ""));
    is_refused(UnixListener::bind(path("write/socket")).map(drop));

    is_refused(fs::read("/etc/passwd").map(drop));
    is_refused(fs::read(path("neither/file")).map(drop));
    is_refused(fs::write(path("neither/file"), ""));
    is_refused(fs::rename(path("write/file"), path("neither/moved")));
    // The type of a name may be looked at.
    assert!(path("neither/file").metadata().is_ok());
    is_refused(Command::new("/bin/true").status().map(drop));
    if landlock_version().unwrap() >= 4 {
        is_refused(TcpStream::connect(address).map(drop));
    }
}

/// Tells the process that this program starts anew what it is for.
const ROLE: &str = "KETTLE_TEST_CONFINED";

/// Runs the test below in a process of its own.
fn in_another_process(role: &str) -> Output {
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", "sandbox::tests::in_a_process_of_its_own", "--nocapture"]);
    again.env(ROLE, role).output().unwrap()
}

#[test]
fn in_a_process_of_its_own() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let confined = if role == "keeper" { Confined::Keeper } else { Confined::Server };
    confine_calls(confined, false).unwrap();
    match (role.as_str(), role.parse()) {
        (_, Ok(call)) => drop(ask(call, 0)),
        ("server", _) => as_server(),
        _ => as_keeper(),
    }
    eprintln!("it held");
}

/// Makes a system call, with a first argument and zeroes behind it, and returns its error.
fn ask(call: libc::c_long, first: i32) -> i32 {
    // SAFETY: whatever the call is, it gets no pointer but null.
    let status = unsafe { libc::syscall(call, first, 0, 0, 0, 0, 0) };
    if status == -1 { io::Error::last_os_error().raw_os_error().unwrap() } else { 0 }
}

fn as_server() {
    for missing in [
        libc::SYS_kill,
        libc::SYS_fchmod,
        libc::SYS_fchown,
        libc::SYS_mknodat,
        libc::SYS_clone3,
        libc::SYS_memfd_create,
        libc::SYS_setsid,
        libc::SYS_seccomp,
        libc::SYS_landlock_restrict_self,
    ] {
        assert_eq!(ask(missing, 0), libc::ENOSYS, "{missing}");
    }
    // No process, no socket that sees what others send, no key by the kernel's own cryptography.
    assert_eq!(ask(libc::SYS_clone, 0), libc::ENOSYS);
    for domain in [libc::AF_PACKET, libc::AF_ALG, libc::AF_VSOCK] {
        assert_eq!(ask(libc::SYS_socket, domain), libc::ENOSYS, "{domain}");
    }
    thread::spawn(|| TcpListener::bind("127.0.0.1:0").unwrap()).join().unwrap();
    std::net::ToSocketAddrs::to_socket_addrs("localhost:80").unwrap();
    thread::spawn(|| panic!("a panic still says where it was")).join().unwrap_err();
    let folder = std::env::temp_dir().join(format!("kettle-confined-{}", std::process::id()));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("file"), "").unwrap();
    fs::rename(folder.join("file"), folder.join("renamed")).unwrap();
    fs::remove_dir_all(&folder).unwrap();
}

fn as_keeper() {
    assert!(fs::read("/etc/passwd").is_ok());
    assert_eq!(fs::read_dir("/").unwrap().next().map(|entry| entry.is_ok()), Some(true));
    let file = std::env::temp_dir().join("kettle-confined-keeper");
    for outcome in [
        fs::write(&file, ""),
        fs::OpenOptions::new().write(true).open("/dev/null").map(drop),
        fs::rename("/etc/passwd", &file),
        fs::remove_file("/nowhere"),
        TcpListener::bind("127.0.0.1:0").map(drop),
    ] {
        assert_eq!(outcome.unwrap_err().raw_os_error(), Some(libc::ENOSYS));
    }
    for missing in [libc::SYS_fchmod, libc::SYS_fchown, libc::SYS_ftruncate, libc::SYS_clone] {
        assert_eq!(ask(missing, 0), libc::ENOSYS, "{missing}");
    }
}

#[test]
fn a_process_makes_the_calls_on_its_list_and_no_others() {
    if let Err(error) = seccomp_here() {
        skip(&error.to_string());
        return;
    }
    for role in ["server", "keeper"] {
        let output = in_another_process(role);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && text.contains("it held"), "{role}: {text}");
    }
}

#[test]
fn what_only_an_attacker_asks_for_ends_the_process() {
    if let Err(error) = seccomp_here() {
        skip(&error.to_string());
        return;
    }
    for call in [libc::SYS_execve, libc::SYS_ptrace, libc::SYS_bpf, libc::SYS_io_uring_setup] {
        let output = in_another_process(&call.to_string());
        assert_eq!(output.status.signal(), Some(libc::SIGSYS), "{call}: {output:?}");
    }
}

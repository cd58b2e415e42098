use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::thread;

use kettle_skip::skip;
use socket2::{Domain, Socket, Type};

use super::*;

/// Lets one file and one address.
struct One(PathBuf, SocketAddr);

impl Permits for One {
    fn renew(&mut self) {
        self.0.set_extension("renewed");
    }

    fn file(&self, path: &Path) -> bool {
        self.0 == path
    }

    fn address(&self, address: SocketAddr) -> bool {
        self.1 == address
    }

    fn socket_rights(&self, path: &Path) -> Option<Rights> {
        let rights = Rights { mode: 0o640, owner: Some(65_534), group: None };
        (path == self.0).then_some(rights)
    }
}

/// A server's end of a keeper that runs in a thread.
struct Running(Option<OwnedFd>, Option<thread::JoinHandle<()>>);

impl Running {
    fn of(permits: One) -> Self {
        let flags = SocketFlags::CLOEXEC;
        let (ours, its) =
            socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
        Self(Some(ours), Some(thread::spawn(move || serve(&its, permits))))
    }

    fn socket(&self) -> BorrowedFd<'_> {
        self.0.as_ref().unwrap().as_fd()
    }

    /// The number of the error, 0 for none, and what came with it.
    fn ask(&self, question: &[u8], with: Option<BorrowedFd<'_>>) -> (i32, Option<OwnedFd>) {
        match exchange(self.socket(), 7, question, with).unwrap() {
            Ok(answer) => (0, answer.descriptor),
            Err(error) => (error.raw_os_error().unwrap(), None),
        }
    }

    /// The names in a folder, as many pieces as they take.
    fn list(&self, folder: &Path) -> io::Result<Vec<listing::Listed>> {
        let mut bytes = Vec::new();
        loop {
            let at = u32::try_from(bytes.len()).unwrap().to_ne_bytes();
            let question = [&[LIST], &at[..], folder.as_os_str().as_bytes()].concat();
            let answer = exchange(self.socket(), 7, &question, None).unwrap()?;
            if answer.bytes.is_empty() {
                return Ok(listing::decode(&bytes));
            }
            bytes.extend(answer.bytes);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Without its server a keeper ends.
        drop(self.0.take());
        self.1.take().unwrap().join().unwrap();
    }
}

fn open_question(path: &Path) -> Vec<u8> {
    [&[OPEN], path.as_os_str().as_bytes()].concat()
}

fn is_root_here() -> bool {
    let is_root = process::is_root();
    if !is_root {
        skip("only root has files that others may not choose");
    }
    is_root
}

#[test]
fn a_keeper_opens_what_it_may_and_nothing_else() {
    if !is_root_here() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let named = folder.path().join("named");
    let other = folder.path().join("other");
    for file in [&named, &other] {
        fs::write(file, file.to_str().unwrap()).unwrap();
    }
    let keeper = Running::of(One(named.clone(), ([127, 0, 0, 1], 1).into()));
    let (number, file) = keeper.ask(&open_question(&named), None);
    assert_eq!(number, 0);
    let mut text = String::new();
    File::from(file.unwrap()).read_to_string(&mut text).unwrap();
    assert_eq!(text, named.to_str().unwrap());

    let long = vec![b'a'; 3 * PATH_BYTES_MAX];
    let around = folder.path().join(".").join("..").join(folder.path()).join("other");
    for question in [open_question(&other), open_question(&around), vec![OPEN], long, vec![0]] {
        let (number, file) = keeper.ask(&question, None);
        assert_ne!(number, 0, "{question:?}");
        assert!(file.is_none());
    }
    // Somebody else may choose what the name leads to.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(keeper.ask(&open_question(&named), None).0, libc::EACCES);
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    fs::remove_file(&named).unwrap();
    assert_ne!(keeper.ask(&open_question(&named), None).0, 0);

    // A file named anew counts, and what was named before does not.
    let renewed = named.with_extension("renewed");
    fs::write(&renewed, "").unwrap();
    fs::write(&named, "").unwrap();
    assert_eq!(keeper.ask(&[RENEW], None).0, 0);
    assert_eq!(keeper.ask(&open_question(&renewed), None).0, 0);
    assert_eq!(keeper.ask(&open_question(&named), None).0, libc::EACCES);
}

#[test]
fn a_keeper_tells_the_names_in_a_folder_and_does_not_hand_it_over() {
    if !is_root_here() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let named = folder.path().join("named");
    fs::create_dir(&named).unwrap();
    let keeper = Running::of(One(named.clone(), ([127, 0, 0, 1], 1).into()));
    assert_eq!(keeper.list(&named).unwrap(), []);
    // More than one message holds.
    let names: Vec<String> = (0..1000).map(|number| format!("{number:0100}.pem")).collect();
    for name in &names {
        fs::write(named.join(name), "").unwrap();
    }
    fs::create_dir(named.join("a folder")).unwrap();
    let mut listed = keeper.list(&named).unwrap();
    listed.sort_by(|one, other| one.0.cmp(&other.0));
    assert_eq!(listed.pop(), Some(("a folder".into(), FileType::Directory)));
    let files = names.iter().map(|name| (name.into(), FileType::RegularFile));
    assert_eq!(listed, files.collect::<Vec<_>>());

    assert_eq!(keeper.ask(&open_question(&named), None).0, libc::EACCES);
    assert!(keeper.list(folder.path()).is_err());
    assert!(keeper.list(&named.join("a folder")).is_err());
    // A piece of what was not listed, and no number at all.
    let elsewhere = [&[LIST], &5_u32.to_ne_bytes()[..], b"/"].concat();
    for question in [elsewhere, vec![LIST], vec![LIST, 0, 0]] {
        assert_ne!(keeper.ask(&question, None).0, 0, "{question:?}");
    }
}

#[test]
fn a_keeper_binds_the_sockets_it_is_given_where_it_may() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let keeper = Running::of(One(PathBuf::new(), free));
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    let bind = |address: &str| [&[BIND], address.as_bytes()].concat();
    for refused in ["127.0.0.1:1", "127.0.0.1", "", "\u{e4}"] {
        assert_eq!(keeper.ask(&bind(refused), Some(socket.as_fd())).0, libc::EACCES, "{refused}");
    }
    assert_eq!(keeper.ask(&bind(&free.to_string()), None).0, libc::EACCES);
    // A file is no socket.
    let file = tempfile::tempfile().unwrap();
    assert_eq!(keeper.ask(&bind(&free.to_string()), Some(file.as_fd())).0, libc::ENOTSOCK);
    assert_eq!(keeper.ask(&bind(&free.to_string()), Some(socket.as_fd())).0, 0);
    assert_eq!(socket.local_addr().unwrap().as_socket(), Some(free));
    assert_eq!(keeper.ask(&bind(&free.to_string()), Some(socket.as_fd())).0, libc::EINVAL);
}

#[test]
fn an_answer_that_came_too_late_is_not_taken_for_the_next() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let keeper = Running::of(One(PathBuf::new(), free));
    // Two that nobody waited for.
    for number in [1_u32, 2] {
        send(keeper.socket(), &[&number.to_ne_bytes()[..], &[RENEW]].concat(), None).unwrap();
    }
    assert_eq!(keeper.ask(&[0], None).0, libc::EACCES);
    assert_eq!(keeper.ask(&[RENEW], None).0, 0);
    // A message that is too short for a number is no question.
    send(keeper.socket(), b"abc", None).unwrap();
    assert!(exchange(keeper.socket(), 8, &[RENEW], None).is_err());
}

#[test]
fn root_chooses_where_nobody_else_may_change_a_step_of_the_way() {
    if !is_root_here() {
        return;
    }
    const NOBODY: u32 = 65_534;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let make = |name: &str, mode, owner| {
        fs::create_dir(path(name)).unwrap();
        fs::write(path(name).join("file"), "").unwrap();
        fs::set_permissions(path(name), fs::Permissions::from_mode(mode)).unwrap();
        chown(path(name), Some(owner), None).unwrap();
    };
    make("roots", 0o755, 0);
    make("private", 0o700, 0);
    make("group", 0o775, 0);
    make("anybody", 0o777, 0);
    make("sticky", 0o1777, 0);
    make("others", 0o755, NOBODY);
    fs::write(path("sticky/theirs"), "").unwrap();
    chown(path("sticky/theirs"), Some(NOBODY), None).unwrap();
    fs::write(path("sticky/once-more"), "").unwrap();
    fs::hard_link(path("sticky/once-more"), path("others/once-more")).unwrap();
    symlink("../roots/file", path("private/near")).unwrap();
    symlink(path("roots/file"), path("private/far")).unwrap();
    symlink("../others/link", path("private/by-others")).unwrap();
    symlink("../roots/file", path("others/link")).unwrap();
    symlink("round", path("private/round")).unwrap();
    for (name, is_roots) in [
        ("roots/file", true),
        ("private/file", true),
        ("private/near", true),
        ("private/far", true),
        ("roots/../private/file", true),
        ("sticky/file", true),
        // The group is root's.
        ("group/file", true),
        ("anybody/file", false),
        ("sticky/theirs", false),
        // Somebody may have given a file of root's this name.
        ("sticky/once-more", false),
        ("others/file", false),
        ("others/../roots/file", true),
        ("private/by-others", false),
        ("private/round", false),
        ("roots/missing", false),
    ] {
        assert_eq!(is_chosen_by_root(&path(name)), is_roots, "{name}");
    }
    chown(path("group"), None, Some(NOBODY)).unwrap();
    assert!(!is_chosen_by_root(&path("group/file")));
}

#[test]
fn without_a_keeper_the_kernels_word_holds() {
    let error = open(Path::new("/nowhere/at/all")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    renew();
}

#[test]
fn a_keeper_reads_only_what_root_wrote_and_waits_for_no_pipe() {
    if !is_root_here() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for name in ["roots", "anybodys"] {
        fs::write(path(name), name).unwrap();
    }
    fs::set_permissions(path("anybodys"), fs::Permissions::from_mode(0o666)).unwrap();
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, path("pipe"), FileType::Fifo, mode, 0).unwrap();
    let all = ["roots", "anybodys", "pipe", "missing"];
    let (read, opened) = opened_by(|| all.map(|name| read(&path(name), 100).ok()));
    assert_eq!(read, [Some(b"roots".to_vec()), None, None, None]);
    assert_eq!(opened, [path("roots")]);
}

#[test]
fn a_keeper_makes_and_removes_the_sockets_it_may_with_rights_of_its_own() {
    use std::os::unix::fs::MetadataExt;

    if !is_root_here() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let named = folder.path().join("named");
    let other = folder.path().join("other");
    let keeper = Running::of(One(named.clone(), ([127, 0, 0, 1], 1).into()));
    let socket = || Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
    let place = |path: &Path, socket: &Socket| {
        let question = [&[PLACE], path.as_os_str().as_bytes()].concat();
        keeper.ask(&question, Some(socket.as_fd())).0
    };
    assert_eq!(place(&other, &socket()), libc::EACCES);
    let of_ip = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    assert_eq!(place(&named, &of_ip), libc::EACCES);
    let datagrams = Socket::new(Domain::UNIX, Type::DGRAM, None).unwrap();
    assert_eq!(place(&named, &datagrams), libc::EACCES);

    fs::write(&named, "").unwrap();
    assert_eq!(place(&named, &socket()), libc::EEXIST);
    fs::remove_file(&named).unwrap();
    let listening = socket();
    assert_eq!(place(&named, &listening), 0);
    let made = named.symlink_metadata().unwrap();
    assert_eq!((made.mode() & 0o7777, made.uid()), (0o640, 65_534));
    assert_eq!(place(&named, &socket()), libc::EADDRINUSE);

    let remove = |path: &Path, inode: u64| {
        let file = [made.dev().to_ne_bytes(), inode.to_ne_bytes()].concat();
        keeper.ask(&[&[REMOVE], &file[..], path.as_os_str().as_bytes()].concat(), None).0
    };
    assert_eq!(remove(&other, made.ino()), libc::EACCES);
    assert_eq!(remove(&named, made.ino() + 1), 0);
    assert!(named.exists(), "it was another file");
    assert_eq!(remove(&named, made.ino()), 0);
    assert!(!named.exists());

    // Somebody else may choose what the name leads to.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(place(&named, &socket()), libc::EACCES);
}

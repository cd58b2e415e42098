use std::fs;
use std::os::unix::fs::symlink;

use super::*;

const READING: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK);

/// A folder with a root in it, a file beside the root, and links of every kind inside.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    fs::create_dir_all(root.join("sub")).unwrap();
    fs::write(folder.path().join("secret"), "secret").unwrap();
    fs::write(root.join("file"), "file").unwrap();
    symlink("../secret", root.join("out")).unwrap();
    symlink("..", root.join("up")).unwrap();
    symlink(root.join("file"), root.join("absolute")).unwrap();
    symlink("../file", root.join("sub/inside")).unwrap();
    folder
}

fn open(folder: &tempfile::TempDir, symlinks: Symlinks, path: &str) -> Result<OwnedFd, Errno> {
    let root = Root::open(&folder.path().join("root"), symlinks, Dotfiles::Hidden).unwrap();
    root.open_below(path, READING, Reach::Anywhere)
}

#[test]
fn symlinks_below_the_root_are_followed_by_default() {
    let folder = folder();
    for path in ["sub/inside", "file", "absolute"] {
        assert!(open(&folder, Symlinks::Beneath, path).is_ok(), "{path}");
    }
}

#[test]
fn absolute_symlinks_are_followed_to_what_lies_below_the_root() {
    let folder = folder();
    let root = folder.path().join("root");
    let link = |target: &std::path::Path, name: &str| symlink(target, root.join(name)).unwrap();
    symlink(&root, folder.path().join("alias")).unwrap();
    link(&root, "itself");
    link(&root.join("sub"), "folder");
    link(&root.join("absolute"), "chain");
    link(&root.join("../root/file"), "roundabout");
    link(&folder.path().join("alias/file"), "by-another-name");
    link("../root/file".as_ref(), "out-and-in");
    for (path, expected) in [
        ("chain", "file"),
        ("roundabout", "file"),
        ("by-another-name", "file"),
        ("out-and-in", "file"),
        ("folder/inside", "file"),
        ("itself/file", "file"),
        ("itself/itself/folder/inside", "file"),
    ] {
        let fd = open(&folder, Symlinks::Beneath, path).unwrap();
        assert_eq!(std::io::read_to_string(fs::File::from(fd)).unwrap(), expected, "{path}");
    }
    assert!(open(&folder, Symlinks::Beneath, "itself").is_ok());
}

#[test]
fn absolute_symlinks_out_of_the_root_look_like_nothing() {
    let folder = folder();
    let root = folder.path().join("root");
    fs::create_dir(folder.path().join("root-not")).unwrap();
    fs::write(folder.path().join("root-not/file"), "secret").unwrap();
    let targets = [
        ("secret", folder.path().join("secret")),
        ("neighbour", folder.path().join("root-not/file")),
        ("folder-above", folder.path().to_owned()),
        ("nothing", folder.path().join("nothing")),
        ("dangling", root.join("nothing")),
        ("loop", root.join("loop")),
        ("chain-out", root.join("out")),
        ("there", root.join("back")),
        ("back", root.join("there")),
        ("magic", "/proc/self/root".into()),
    ];
    for (name, target) in &targets {
        symlink(target, root.join(name)).unwrap();
    }
    for (name, _) in &targets {
        for path in [(*name).to_owned(), format!("{name}/secret"), format!("{name}/file")] {
            let outcome = open(&folder, Symlinks::Beneath, &path).err();
            assert!(matches!(outcome, Some(Errno::XDEV | Errno::LOOP)), "{path}: {outcome:?}");
        }
    }
}

#[test]
fn an_absolute_link_that_changes_all_the_time_lets_nothing_out() {
    let folder = folder();
    let path = folder.path().join("root");
    let root = Root::open(&path, Symlinks::Beneath, Dotfiles::Hidden).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                for target in [folder.path(), &path] {
                    symlink(target, path.join("next")).unwrap();
                    fs::rename(path.join("next"), path.join("changing")).unwrap();
                }
            }
        });
        for _ in 0..2_000 {
            let secret = root.open_below("changing/secret", READING, Reach::Anywhere);
            assert!(secret.is_err(), "what lies beside the root was opened");
        }
        is_over.store(true, Ordering::Relaxed);
    });
}

#[test]
fn symlinks_out_of_the_root_are_not_followed_by_default() {
    let folder = folder();
    for path in ["out", "up/secret", "../secret", "/etc/hostname"] {
        assert_eq!(open(&folder, Symlinks::Beneath, path).err(), Some(Errno::XDEV), "{path}");
    }
}

#[test]
fn no_symlink_is_followed_with_the_policy_never() {
    let folder = folder();
    for path in ["out", "up/secret", "absolute", "sub/inside"] {
        assert_eq!(open(&folder, Symlinks::Never, path).err(), Some(Errno::LOOP), "{path}");
    }
    assert!(open(&folder, Symlinks::Never, "file").is_ok());
}

#[test]
fn symlinks_lead_anywhere_with_the_policy_follow() {
    let folder = folder();
    for path in ["out", "up/secret", "absolute", "sub/inside"] {
        assert!(open(&folder, Symlinks::Follow, path).is_ok(), "{path}");
    }
}

#[test]
fn magic_links_are_never_followed() {
    let folder = folder();
    symlink("/proc/self/root", folder.path().join("root/magic")).unwrap();
    let outcome = open(&folder, Symlinks::Follow, "magic/etc");
    assert_eq!(outcome.err(), Some(Errno::LOOP));
}

#[test]
fn opening_without_waiting_decides_like_opening_with_waiting() {
    let folder = folder();
    let root =
        Root::open(&folder.path().join("root"), Symlinks::Beneath, Dotfiles::Hidden).unwrap();
    for path in ["file", "out", "absolute", "sub/inside", "none", "", "sub"] {
        let waiting = root.open_below(path, READING, Reach::Anywhere).map(|_| ());
        let at_once = root.open_below(path, READING, Reach::Cached).map(|_| ());
        assert!(at_once == waiting || at_once == Err(Errno::AGAIN), "{path}: {at_once:?}");
    }
}

#[test]
fn hidden_names_are_refused_wherever_they_stand() {
    let folder = folder();
    let root = Root::open(folder.path(), Symlinks::Beneath, Dotfiles::WellKnown).unwrap();
    for path in [".git", ".git/config", "a/.env", "a/.git/config", "a/.well-known/x", "...", "a/."]
    {
        assert!(!root.allows(path), "{path}");
    }
    for path in ["", "a", "a.b/c.d", "a/b.", ".well-known/acme-challenge/x", ".well-known"] {
        assert!(root.allows(path), "{path}");
    }
    assert!(!root.allows(".well-known/.git/config"));
    assert!(!root.allows(".well-known-not"));
    let below_a_prefix = Root::open(folder.path(), Symlinks::Beneath, Dotfiles::Hidden).unwrap();
    assert!(below_a_prefix.allows("a") && !below_a_prefix.allows(".well-known/x"));
}

#[test]
fn hidden_names_are_allowed_where_the_route_says_so() {
    let folder = folder();
    let root = Root::open(folder.path(), Symlinks::Beneath, Dotfiles::Served).unwrap();
    assert!(root.allows("a/.git/config"));
}

#[test]
fn a_root_must_be_a_folder() {
    let folder = folder();
    let file = folder.path().join("secret");
    assert_eq!(Root::open(&file, Symlinks::Beneath, Dotfiles::Hidden).err(), Some(Errno::NOTDIR));
    let none = folder.path().join("none");
    assert_eq!(Root::open(&none, Symlinks::Beneath, Dotfiles::Hidden).err(), Some(Errno::NOENT));
}

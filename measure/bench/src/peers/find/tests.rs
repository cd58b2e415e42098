//! Places, versions, and what is said of what is not there.

use super::*;

#[test]
fn an_unpacked_nginx_runs_with_its_own_linker() {
    let tree = tempfile::tempdir().unwrap();
    assert!(unpacked(tree.path()).is_none());
    let libraries = tree.path().join("usr-lib/x86_64-linux-gnu");
    fs::create_dir_all(&libraries).unwrap();
    fs::write(libraries.join("ld-linux-x86-64.so.2"), "").unwrap();
    fs::write(tree.path().join("nginx"), "").unwrap();
    let found = from_place(Program::Nginx, tree.path()).unwrap();
    assert_eq!(found.executable, libraries.join("ld-linux-x86-64.so.2"));
    assert_eq!(found.arguments.last().unwrap(), tree.path().join("nginx").as_os_str());
    assert!(from_place(Program::Hitch, tree.path()).is_none());
}

#[test]
fn a_version_names_the_tls_library() {
    let mut found = bare(Program::Nginx, PathBuf::new());
    assert_eq!(describe(&found), "nginx of unknown version");
    found.release = Release::parse("1.22.1");
    found.openssl = Release::parse("3.0.19");
    assert_eq!(describe(&found), "nginx 1.22.1, OpenSSL 3.0.19");
}

#[test]
fn what_is_missing_says_how_to_get_it() {
    let missing = missing(Program::Hitch, "hitch is not installed");
    assert_eq!(missing, "hitch is not installed; apt-get install hitch");
}

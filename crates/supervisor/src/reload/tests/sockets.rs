//! Unix sockets whose files others remove, or take the place of.

use super::*;

#[test]
fn a_unix_socket_is_kept_and_made_anew_where_its_file_is_gone() {
    let mut fixture = Fixture::new();
    let path = fixture.directory.path().join("app.sock");
    let connects = || std::os::unix::net::UnixStream::connect(&path).is_ok();
    let held = |fixture: &Fixture| Arc::clone(&fixture.live.bound()[1].sockets[0]);
    fixture.write(&format!("[[listener]]\naddress = \"unix:{}\"\n", path.display()));
    fixture.reload().unwrap();
    let first = held(&fixture);
    fixture.reload().unwrap();
    assert!(connects() && Arc::ptr_eq(&first, &held(&fixture)));

    std::fs::remove_file(&path).unwrap();
    assert!(!connects());
    fixture.reload().unwrap();
    let second = held(&fixture);
    assert!(connects() && !Arc::ptr_eq(&first, &second));

    // A server that has taken its place keeps it, and all else goes on.
    std::fs::remove_file(&path).unwrap();
    let other = std::os::unix::net::UnixListener::bind(&path).unwrap();
    fixture.reload().unwrap();
    assert!(connects() && Arc::ptr_eq(&second, &held(&fixture)));
    drop((fixture.live, other));
    assert!(path.exists());
}

//! Sockets that stay over a reload: those of addresses, and Unix sockets whose files others remove, or take the place of.

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

#[test]
fn a_reload_keeps_sockets_that_stay_and_adds_new_ones() {
    let mut fixture = Fixture::new();
    let before = fixture.seen.borrow_and_update().listeners.clone();
    let added = free_address("127.0.0.1");
    fixture.write(&format!("[[listener]]\naddress = \"{added}\"\nkind = \"redirect\"\n"));
    fixture.reload().unwrap();
    assert!(fixture.seen.has_changed().unwrap());
    let after = fixture.seen.borrow_and_update().listeners.clone();
    assert_eq!(after.len(), 2);
    assert!(Arc::ptr_eq(&before[0].socket, &after[0].socket));
    assert_eq!(after[1].index, 1);
    assert_eq!(fixture.addresses()[1], added);

    fixture.write("");
    fixture.reload().unwrap();
    let last = fixture.seen.borrow_and_update().listeners.clone();
    assert_eq!(last.len(), 1);
    assert!(Arc::ptr_eq(&before[0].socket, &last[0].socket));
    assert_eq!(fixture.metrics.reloads_done.load(Relaxed), 2);
}

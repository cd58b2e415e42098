use super::*;

#[tokio::test]
async fn what_is_known_of_a_server_outlives_a_reload() {
    let listeners = some_listeners(2).await;
    let mut settings = settings(servers_of(&listeners));
    settings.servers[0].name = Some("one".to_owned());
    let before = Backends::new(std::slice::from_ref(&settings), None);
    before.set_draining("app", "one", true).unwrap();
    let connected = before.find("app").unwrap().connect(CLIENT).await.unwrap();
    // Another order, another name, another limit: the same servers by their addresses.
    settings.servers.reverse();
    settings.servers[1].name = Some("uno".to_owned());
    settings.servers[0].connections = Some(1);
    let after = Backends::new(std::slice::from_ref(&settings), Some(&before));
    after.put_in_force();
    let app = after.find("app").unwrap();
    assert!(Arc::ptr_eq(&app.servers[0].state, &connected.server.state));
    assert_eq!((app.status()[0].connections, app.status()[1].health), (1, Health::Draining));
    drop((before, connected));
    assert_eq!(app.status()[0].connections, 0);
    // Another address is another server, and so is one of another backend.
    settings.servers[0] = refusing().await;
    settings.name.value = "other".to_owned();
    let other = Backends::new(&[settings], Some(&after));
    assert!(other.find("app").is_none());
    assert!(!Arc::ptr_eq(&other.find("other").unwrap().servers[1].state, &app.servers[1].state));
}

#[test]
fn two_servers_at_one_address_stay_two() {
    let settings = settings(vec![at("127.0.0.1:9"), at("127.0.0.1:9")]);
    let before = Backends::new(std::slice::from_ref(&settings), None);
    let after = Backends::new(std::slice::from_ref(&settings), Some(&before));
    after.put_in_force();
    let servers = &after.find("app").unwrap().servers;
    assert!(!Arc::ptr_eq(&servers[0].state, &servers[1].state));
    let known = &before.find("app").unwrap().servers;
    assert!(servers.iter().all(|it| known.iter().any(|old| Arc::ptr_eq(&old.state, &it.state))));
}

#[test]
fn servers_at_one_address_are_told_apart_by_their_names() {
    let named = |name: &str| BackendServer { name: Some(name.to_owned()), ..at("127.0.0.1:9") };
    let mut settings = settings(["a", "b", "c"].map(named).into());
    let before = Backends::new(std::slice::from_ref(&settings), None);
    before.set_draining("app", "c", true).unwrap();
    settings.servers.rotate_left(1);
    let after = Backends::new(std::slice::from_ref(&settings), Some(&before));
    after.put_in_force();
    let is_draining = |name: &str| {
        let status = after.find("app").unwrap().status();
        status.iter().any(|it| &*it.name == name && it.health == Health::Draining)
    };
    assert_eq!(["a", "b", "c"].map(is_draining), [false, false, true]);
}

#[tokio::test(start_paused = true)]
async fn who_waits_is_served_by_the_room_a_reload_makes() {
    let listeners = some_listeners(1).await;
    let mut settings = settings(servers_of(&listeners));
    settings.servers[0].connections = Some(1);
    let before = Backends::new(std::slice::from_ref(&settings), None);
    let old = before.find("app").unwrap();
    let held = old.connect(CLIENT).await.unwrap();
    let mut waiting = Box::pin(old.connect(CLIENT));
    tokio::select! {
        biased;
        _ = &mut waiting => panic!("there is no slot"),
        () = tokio::task::yield_now() => {}
    }
    // The old one waits by its own limit; a new one behind it need not, and comes first.
    settings.servers[0].connections = Some(2);
    let after = Backends::new(std::slice::from_ref(&settings), Some(&before));
    after.put_in_force();
    let new = after.find("app").unwrap();
    assert_eq!(new.waiting(), 1);
    let connected = tokio::select! {
        biased;
        _ = &mut waiting => panic!("there is no slot"),
        connected = new.connect(CLIENT) => connected.unwrap(),
    };
    drop((connected, held));
    waiting.await.unwrap();
}

#[test]
fn what_checks_said_ends_with_them() {
    let mut settings = settings(vec![at("127.0.0.1:9")]);
    settings.check = Some(kettle_config::Check::default());
    settings.fails = 1;
    let before = Backends::new(std::slice::from_ref(&settings), None);
    let app = before.find("app").unwrap();
    let state = &app.servers[0].state;
    state.check_failed(&Failure::timed_out(), 1);
    state.connect_failed(&Failure::timed_out(), app.tolerance(), Instant::now());
    assert_eq!(app.status()[0].health, Health::Down);
    settings.check = None;
    let after = Backends::new(&[settings], Some(&before));
    assert_eq!(app.status()[0].health, Health::Down, "the reload may still be refused");
    assert!(!app.is_replaced());
    after.put_in_force();
    assert_eq!(after.find("app").unwrap().status()[0].health, Health::Up);
    assert!(app.is_replaced());
}

use std::cell::RefCell;

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

#[test]
fn a_new_server_takes_no_state_from_one_that_keeps_its_name() {
    let named = |name: &str| BackendServer { name: Some(name.to_owned()), ..at("127.0.0.1:9") };
    let mut settings = settings(vec![named("old")]);
    let before = Backends::new(std::slice::from_ref(&settings), None);
    before.set_draining("app", "old", true).unwrap();
    settings.servers.insert(0, named("new"));
    let after = Backends::new(std::slice::from_ref(&settings), Some(&before));
    let health: Vec<_> = after.find("app").unwrap().status().iter().map(|it| it.health).collect();
    assert_eq!(health, [Health::Up, Health::Draining]);
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
    pends(&mut waiting).await;
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

/// Backends whose reloads clients follow.
struct Reloaded(RefCell<Arc<Backends>>);

impl Reloaded {
    fn new(settings: &kettle_config::Backend) -> Self {
        Self(RefCell::new(Arc::new(Backends::new(std::slice::from_ref(settings), None))))
    }

    fn reload(&self, settings: &[kettle_config::Backend]) {
        let next = Arc::new(Backends::new(settings, Some(&self.0.borrow())));
        self.0.replace(Arc::clone(&next));
        next.put_in_force();
    }

    fn app(&self) -> Arc<Backend> {
        Arc::clone(self.0.borrow().find("app").unwrap())
    }

    /// A slot for a client of the backend in force now.
    async fn slot(&self) -> Result<Attempt, ConnectError> {
        let first = self.app();
        let successor = || {
            let next = self.0.borrow().find("app").cloned();
            next.filter(|next| next.is_successor_of(&first))
        };
        first.attempts(CLIENT).next(successor).await
    }
}

fn limited(address: &str) -> kettle_config::Backend {
    let mut settings = settings(vec![at(address)]);
    settings.servers[0].connections = Some(1);
    settings.queue_timeout = Duration::from_secs(10);
    settings
}

#[tokio::test(start_paused = true)]
async fn who_waits_goes_on_with_the_servers_of_a_reload_in_its_place() {
    let mut settings = limited("127.0.0.1:1");
    let reloaded = Reloaded::new(&settings);
    let _held = reloaded.slot().await.unwrap();
    let mut first = Box::pin(reloaded.slot());
    let mut second = Box::pin(reloaded.slot());
    pends(&mut first).await;
    pends(&mut second).await;
    // Another server, and then yet another: who waits has a place however short the queue is now.
    settings.queue = 1;
    for address in ["127.0.0.1:2", "127.0.0.1:3"] {
        settings.servers[0].address = at(address).address;
        reloaded.reload(std::slice::from_ref(&settings));
    }
    assert_eq!(reloaded.slot().await.unwrap_err(), ConnectError::QueueFull);
    pends(&mut second).await;
    let first = first.await.unwrap();
    assert_eq!(&*first.server().name, "127.0.0.1:3");
    pends(&mut second).await;
    drop(first);
    assert_eq!(&*second.await.unwrap().server().name, "127.0.0.1:3");
    assert_eq!(reloaded.app().waiting(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_reload_gives_nobody_more_time_to_wait() {
    let mut settings = limited("127.0.0.1:1");
    let reloaded = Reloaded::new(&settings);
    let _held = reloaded.slot().await.unwrap();
    let begun = Instant::now();
    let mut waiting = Box::pin(reloaded.slot());
    pends(&mut waiting).await;
    tokio::time::advance(Duration::from_secs(6)).await;
    settings.queue_timeout = Duration::from_secs(60);
    reloaded.reload(&[settings]);
    assert_eq!(waiting.await.unwrap_err(), ConnectError::QueueTimeout);
    assert_eq!(begun.elapsed().as_secs(), 10);
}

#[tokio::test(start_paused = true)]
async fn who_leaves_over_a_reload_leaves_its_place() {
    let mut settings = limited("127.0.0.1:1");
    let reloaded = Reloaded::new(&settings);
    let _held = reloaded.slot().await.unwrap();
    let mut first = Box::pin(reloaded.slot());
    let mut second = Box::pin(reloaded.slot());
    pends(&mut first).await;
    pends(&mut second).await;
    settings.servers[0].address = at("127.0.0.1:2").address;
    reloaded.reload(&[settings]);
    drop(first);
    assert_eq!(&*second.await.unwrap().server().name, "127.0.0.1:2");
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_backend_that_is_gone_is_served_by_its_servers() {
    let settings = limited("127.0.0.1:1");
    let reloaded = Reloaded::new(&settings);
    let held = reloaded.slot().await.unwrap();
    let mut waiting = Box::pin(reloaded.slot());
    pends(&mut waiting).await;
    reloaded.reload(&[]);
    pends(&mut waiting).await;
    // A backend that has no more than its name in common is another.
    reloaded.reload(&[limited("127.0.0.1:2")]);
    pends(&mut waiting).await;
    drop(held);
    assert_eq!(&*waiting.await.unwrap().server().name, "127.0.0.1:1");
}

#[tokio::test]
async fn a_server_that_failed_a_client_fails_it_after_a_reload_too() {
    let mut settings = limited("127.0.0.1:1");
    settings.servers.push(at("127.0.0.1:2"));
    settings.balance = kettle_config::Balance::First;
    let reloaded = Reloaded::new(&settings);
    let mut attempts = reloaded.app().attempts(CLIENT);
    let attempt = attempts.next(nobody_else).await.unwrap();
    attempts.failed(attempt, Failure::timed_out());
    settings.servers.reverse();
    reloaded.reload(&[settings]);
    let successor = || Some(reloaded.app());
    let attempt = attempts.next(successor).await.unwrap();
    assert_eq!(&*attempt.server().name, "127.0.0.1:2");
    attempts.failed(attempt, Failure::timed_out());
    assert!(matches!(attempts.next(successor).await, Err(ConnectError::AllFailed(_))));
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

#[tokio::test(start_paused = true)]
async fn a_connect_that_fails_after_checks_were_given_up_is_out_for_a_while_only() {
    let mut settings = settings(vec![refusing().await]);
    (settings.fails, settings.check) = (1, Some(kettle_config::Check::default()));
    let before = Backends::new(std::slice::from_ref(&settings), None);
    before.put_in_force();
    let old = before.find("app").unwrap();
    let state = Arc::clone(&old.servers[0].state);
    let mut attempts = old.attempts(CLIENT);
    let attempt = attempts.next(|| None).await.unwrap();
    settings.check = None;
    let after = Backends::new(std::slice::from_ref(&settings), Some(&before));
    after.put_in_force();
    attempts.failed(attempt, Failure::new(Outcome::Refused, "no"));
    assert!(state.is_out(Instant::now()));
    assert!(!state.is_out(Instant::now() + settings.fail_time + Duration::from_secs(1)));
}

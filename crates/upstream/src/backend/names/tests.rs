use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};

use tokio::task::LocalSet;
use tokio::time::{Instant, advance};

use super::*;
use crate::backend::Health;
use crate::backend::tests::{app, at, settings};

fn backend() -> Arc<Backend> {
    app(&settings(vec![at("db.example:5432")]))
}

type LookUp = fn(&str, u16) -> io::Result<Vec<SocketAddr>>;

fn begin(local: &LocalSet, backend: &Arc<Backend>, look_up: LookUp) {
    let lookups = Box::leak(Box::new(Semaphore::new(1)));
    begin_among(local, backend, Resolver { look_up, lookups });
}

fn begin_among(local: &LocalSet, backend: &Arc<Backend>, resolver: Resolver) {
    let server = Arc::clone(&backend.servers[0]);
    let backend = Arc::clone(backend);
    let interval = backend.settings.resolve_interval;
    let watched = Watched { backend, server, handshake: Rc::new(()) };
    let watched = move || watched.clone();
    let name = "db.example".to_owned();
    local.spawn_local(keep_looking_up(watched, name, 5432, interval, resolver));
}

/// Waits until a server's state is such: lookups end on other threads, at no fixed moment.
async fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        tokio::task::yield_now().await;
    }
}

fn found(backend: &Backend) -> Vec<SocketAddr> {
    backend.servers[0].state.addresses().to_vec()
}

#[tokio::test(start_paused = true)]
async fn names_are_looked_up_again_and_stay_known_when_that_fails() {
    static ANSWERS: Mutex<Vec<&[&str]>> = Mutex::new(Vec::new());
    // The last one first.
    *ANSWERS.lock().unwrap() = vec![&["192.0.2.9:1"], &[], &["192.0.2.1:1", "192.0.2.2:1"]];
    fn look_up(name: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        assert_eq!((name, port), ("db.example", 5432));
        let answer = ANSWERS.lock().unwrap().pop().unwrap_or(&["192.0.2.9:1"]);
        Ok(answer.iter().map(|address| address.parse().unwrap()).collect())
    }
    let backend = backend();
    let local = LocalSet::new();
    assert_eq!(backend.status()[0].health, Health::Resolving);
    begin(&local, &backend, look_up);
    let story = async {
        until(|| found(&backend).len() == 2).await;
        assert_eq!(backend.status()[0].health, Health::Up);
        sleep(backend.settings.resolve_interval * 2).await;
        until(|| found(&backend).len() == 1).await;
        assert!(backend.status()[0].last_failure.is_some(), "once it was not found");
        assert_eq!(backend.status()[0].health, Health::Up);
    };
    local.run_until(story).await;
}

#[tokio::test(start_paused = true)]
async fn a_name_that_was_never_found_is_looked_up_again_soon() {
    static LOOKUPS: AtomicUsize = AtomicUsize::new(0);
    fn look_up(_: &str, _: u16) -> io::Result<Vec<SocketAddr>> {
        let is_found = LOOKUPS.fetch_add(1, Relaxed) == 2;
        Ok(is_found.then(|| "192.0.2.1:1".parse().unwrap()).into_iter().collect())
    }
    let backend = backend();
    let local = LocalSet::new();
    begin(&local, &backend, look_up);
    let story = async {
        let health = || backend.status()[0].health;
        until(|| health() == Health::NoAddress).await;
        let begun = Instant::now();
        while health() != Health::Up {
            sleep(Duration::from_secs(1)).await;
        }
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        assert_eq!(LOOKUPS.load(Relaxed), 3);
    };
    local.run_until(story).await;
}

#[tokio::test(start_paused = true)]
async fn a_lookup_that_hangs_is_given_up_and_its_answer_taken_all_the_same() {
    type Gate = (SyncSender<()>, Mutex<Receiver<()>>);
    static GATE: std::sync::LazyLock<Gate> = std::sync::LazyLock::new(|| {
        let (open, opened) = sync_channel(1);
        (open, Mutex::new(opened))
    });
    static BEGUN: AtomicBool = AtomicBool::new(false);
    fn look_up(_: &str, _: u16) -> io::Result<Vec<SocketAddr>> {
        BEGUN.store(true, Relaxed);
        GATE.1.lock().unwrap().recv().unwrap();
        Ok(vec!["192.0.2.1:1".parse().unwrap()])
    }
    let backend = backend();
    let local = LocalSet::new();
    begin(&local, &backend, look_up);
    let story = async {
        let health = || backend.status()[0].health;
        until(|| BEGUN.load(Relaxed)).await;
        assert_eq!(health(), Health::Resolving);
        advance(LOOKUP_TIME_MAX + Duration::from_millis(1)).await;
        until(|| health() == Health::NoAddress).await;
        assert_eq!(backend.servers[0].state.last_failure().unwrap().outcome, Outcome::TimedOut);
        GATE.0.send(()).unwrap();
        until(|| health() == Health::Up).await;
        // The next lookup of the watch that is dropped now must not wait for ever.
        GATE.0.send(()).unwrap();
    };
    local.run_until(story).await;
}

#[tokio::test(start_paused = true)]
async fn a_name_that_waits_for_other_lookups_is_not_found_in_time_either() {
    static LOOKUPS: Semaphore = Semaphore::const_new(1);
    fn look_up(_: &str, _: u16) -> io::Result<Vec<SocketAddr>> {
        Ok(vec!["192.0.2.1:1".parse().unwrap()])
    }
    let backend = backend();
    let local = LocalSet::new();
    let other = LOOKUPS.acquire().await.unwrap();
    begin_among(&local, &backend, Resolver { look_up, lookups: &LOOKUPS });
    let story = async {
        let health = || backend.status()[0].health;
        sleep(LOOKUP_TIME_MAX + Duration::from_millis(1)).await;
        assert_eq!(health(), Health::NoAddress);
        assert_eq!(backend.servers[0].state.last_failure().unwrap().outcome, Outcome::TimedOut);
        drop(other);
        until(|| health() == Health::Up).await;
    };
    local.run_until(story).await;
}

#[test]
fn a_name_that_no_thread_can_look_up_is_not_given_up() {
    static LOOKUPS: Semaphore = Semaphore::const_new(1);
    let backend = backend();
    let local = LocalSet::new();
    begin_among(&local, &backend, Resolver { look_up, lookups: &LOOKUPS });
    let story = async {
        let failure = || backend.servers[0].state.last_failure().map(|it| it.outcome);
        until(|| failure() == Some(Outcome::NoResources)).await;
        // No call that was not made holds up other lookups, and the next is only a pause away.
        assert_eq!(LOOKUPS.available_permits(), 1);
        backend.servers[0].state.not_found(&Failure::timed_out());
        // The rest of the call in the runtime's queue keeps time from passing by itself.
        advance(2 * PAUSE_MIN).await;
        until(|| failure() == Some(Outcome::NoResources)).await;
    };
    // It has no thread for what may wait: the kernel has no room for a stack of this size.
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime =
        runtime.enable_all().start_paused(true).thread_stack_size(1 << 50).build().unwrap();
    local.block_on(&runtime, story);
}

#[test]
fn of_more_addresses_than_are_tried_those_known_stay_so() {
    let turned = |first: u8| {
        let addresses = (0..20).map(|it| SocketAddr::from(([192, 0, 2, (first + it) % 20], 1)));
        addresses.collect::<Vec<_>>()
    };
    let first = those_tried(turned(0), &[]);
    assert_eq!(first, turned(0)[..16]);
    let then = those_tried(turned(7), &first);
    let expected = turned(7).into_iter().filter(|it| first.contains(it)).collect::<Vec<_>>();
    assert_eq!((then.len(), &then), (16, &expected), "in the order of the resolver");
    // One is gone, and another comes in its place.
    let left = turned(7).into_iter().filter(|it| *it != first[0]).collect::<Vec<_>>();
    let then = those_tried(left, &first);
    assert_eq!(then.iter().filter(|it| !first.contains(it)).count(), 1);
    assert_eq!(then.len(), 16);
}

#[test]
fn the_system_knows_its_own_name() {
    let found = look_up("localhost", 80).unwrap();
    assert!(found.iter().all(|address| address.ip().is_loopback() && address.port() == 80));
    assert!(!found.is_empty());
}

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use tokio::time::timeout;

use super::*;
use crate::backend::balance::mix;

#[tokio::test(start_paused = true)]
async fn places_are_given_in_the_order_of_waiting() {
    let listeners = some_listeners(1).await;
    let mut settings = settings(servers_of(&listeners));
    settings.servers[0].connections = Some(1);
    let app = app(&settings);
    let held = app.connect(CLIENT).await.unwrap();
    let local = tokio::task::LocalSet::new();
    let (sender, mut served) = tokio::sync::mpsc::channel(8);
    for number in 0..3 {
        let app = Arc::clone(&app);
        let sender = sender.clone();
        local.spawn_local(async move {
            let connected = app.connect(CLIENT).await.unwrap();
            sender.send(number).await.unwrap();
            // Held for a while, so that the next one waits for this one.
            tokio::task::yield_now().await;
            drop(connected);
        });
    }
    local
        .run_until(async {
            while app.waiting() < 3 {
                tokio::task::yield_now().await;
            }
            drop(held);
            for expected in 0..3 {
                assert_eq!(served.recv().await, Some(expected));
            }
        })
        .await;
    local.await;
    assert_eq!((app.waiting(), app.servers[0].state.connections()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn who_comes_later_does_not_overtake() {
    let listeners = some_listeners(1).await;
    let mut settings = settings(servers_of(&listeners));
    settings.servers[0].connections = Some(1);
    let app = app(&settings);
    let held = app.connect(CLIENT).await.unwrap();
    let mut waiting = Box::pin(app.connect(CLIENT));
    pends(&mut waiting).await;
    drop(held);
    tokio::select! {
        biased;
        _ = app.connect(CLIENT) => panic!("the other was first"),
        connected = &mut waiting => drop(connected.unwrap()),
    }
}

#[tokio::test(start_paused = true)]
async fn the_queue_has_a_bound_and_an_end() {
    let listeners = some_listeners(1).await;
    let mut settings = settings(servers_of(&listeners));
    settings.servers[0].connections = Some(1);
    settings.queue = 1;
    let app = app(&settings);
    let held = app.connect(CLIENT).await.unwrap();
    let begun = Instant::now();
    let (first, second) = tokio::join!(app.connect(CLIENT), app.connect(CLIENT));
    assert_eq!(first.unwrap_err(), ConnectError::QueueTimeout);
    assert_eq!(begun.elapsed().as_secs(), settings.queue_timeout.as_secs());
    assert_eq!(second.unwrap_err(), ConnectError::QueueFull);
    drop(held);
    app.connect(CLIENT).await.unwrap();
}

/// As before a restart of the server: new clients find nobody, those that wait find it when it is ready.
#[tokio::test(start_paused = true)]
async fn who_waits_goes_on_waiting_while_the_server_is_drained() {
    let listeners = some_listeners(1).await;
    let mut settings = settings(servers_of(&listeners));
    settings.servers[0].connections = Some(1);
    settings.servers[0].name = Some("one".to_owned());
    let backends = Backends::new(&[settings.clone()], None);
    let app = Arc::clone(backends.find("app").unwrap());
    let held = app.connect(CLIENT).await.unwrap();
    let mut waiting = Box::pin(app.connect(CLIENT));
    let mut stays = async || {
        for _ in 0..3 {
            tokio::select! {
                biased;
                left = &mut waiting => panic!("{left:?}"),
                () = tokio::task::yield_now() => {}
            }
        }
    };
    stays().await;
    backends.set_draining("app", "one", true).unwrap();
    stays().await;
    drop(held);
    stays().await;
    assert_eq!(app.connect(CLIENT).await.unwrap_err(), ConnectError::NoServer);
    backends.set_draining("app", "one", false).unwrap();
    let held = waiting.await.unwrap();
    // One that is not ready in time was waited for as long as any other.
    let begun = Instant::now();
    let wait = async { app.connect(CLIENT).await.unwrap_err() };
    let drain = async { backends.set_draining("app", "one", true).unwrap() };
    assert_eq!(tokio::join!(wait, drain).0, ConnectError::QueueTimeout);
    assert_eq!(begun.elapsed().as_secs(), settings.queue_timeout.as_secs());
    drop(held);
}

#[tokio::test(start_paused = true)]
async fn who_has_tried_all_is_told_at_once_though_others_wait() {
    let listeners = some_listeners(1).await;
    let mut settings = settings(servers_of(&listeners));
    settings.servers[0].connections = Some(1);
    (settings.queue, settings.fails) = (1, 0);
    let app = app(&settings);
    let mut attempts = app.attempts(CLIENT);
    let only = attempts.next(nobody_else).await.unwrap();
    let mut waiting = Box::pin(app.connect(CLIENT));
    pends(&mut waiting).await;
    let failure = Failure::timed_out();
    attempts.failed(only, failure.clone());
    // The request that waits is called, and has not come yet.
    assert_eq!(app.waiting(), 1);
    let told = attempts.next(nobody_else).await.map(drop);
    assert_eq!(told.unwrap_err(), ConnectError::AllFailed(failure));
    drop(waiting.await.unwrap());
}

/// A backend whose first server takes one connection, as its second one does, which is a backup.
fn app_with_backup(queue: usize) -> Arc<Backend> {
    let mut settings = settings(vec![at("127.0.0.1:1"), at("127.0.0.1:2")]);
    settings.servers.iter_mut().for_each(|it| it.connections = Some(1));
    settings.servers[1].backup = true;
    (settings.queue, settings.fails) = (queue, 0);
    app(&settings)
}

#[tokio::test(start_paused = true)]
async fn who_has_had_its_turn_tries_the_next_server_though_others_wait() {
    let app = app_with_backup(1);
    let mut attempts = app.attempts(CLIENT);
    let mut other = app.attempts(CLIENT);
    let first = attempts.next(nobody_else).await.unwrap();
    let mut waiting = Box::pin(other.next(nobody_else));
    pends(&mut waiting).await;
    attempts.failed(first, Failure::timed_out());
    let second = attempts.next(nobody_else).await.expect("the backup is free");
    assert!(Arc::ptr_eq(second.server(), &app.servers[1]));
    assert!(Arc::ptr_eq(waiting.await.unwrap().server(), &app.servers[0]));
}

#[tokio::test(start_paused = true)]
async fn who_has_had_its_turn_waits_in_front() {
    let app = app_with_backup(2);
    let [mut first, mut second, mut third, mut fourth] = [(); 4].map(|()| app.attempts(CLIENT));
    let attempt = first.next(nobody_else).await.unwrap();
    first.failed(attempt, Failure::timed_out());
    let backup = first.next(nobody_else).await.unwrap();
    let attempt = second.next(nobody_else).await.unwrap();
    second.failed(attempt, Failure::timed_out());
    let _only = third.next(nobody_else).await.unwrap();
    // One has no use for the backup, the other for nothing else.
    let mut fourth = Box::pin(fourth.next(nobody_else));
    let mut second = Box::pin(second.next(nobody_else));
    pends(&mut fourth).await;
    pends(&mut second).await;
    drop(backup);
    let second = second.await.expect("nobody else has a use for it");
    assert!(Arc::ptr_eq(second.server(), &app.servers[1]));
}

#[tokio::test(start_paused = true)]
async fn what_is_sent_again_keeps_its_slot_though_others_wait() {
    let app = app_with_backup(1);
    let mut attempts = app.attempts(CLIENT);
    let mut other = app.attempts(CLIENT);
    let first = attempts.next(nobody_else).await.unwrap();
    let mut waiting = Box::pin(other.next(nobody_else));
    pends(&mut waiting).await;
    attempts.keep(first.without_connecting());
    let again = attempts.next(nobody_else).await.unwrap();
    assert!(Arc::ptr_eq(again.server(), &app.servers[0]));
    pends(&mut waiting).await;
    drop(again);
    assert!(waiting.await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn who_cannot_use_a_free_place_lets_the_next_one_have_it() {
    let listeners = some_listeners(1).await;
    let mut settings = settings(vec![refusing().await]);
    settings.servers.extend(servers_of(&listeners));
    settings.servers.iter_mut().for_each(|it| it.connections = Some(1));
    settings.balance = kettle_config::Balance::First;
    settings.fails = 0;
    let app = app(&settings);
    // The good server is full; the bad one refuses the first client, who then waits for the good one, in front.
    let mut attempts = app.attempts(CLIENT);
    let bad = attempts.next(nobody_else).await.unwrap();
    let held = app.connect(CLIENT).await.unwrap();
    assert!(Arc::ptr_eq(&held.server, &app.servers[1]));
    attempts.failed(bad, Failure::timed_out());
    let mut waiting = Box::pin(attempts.next(nobody_else));
    pends(&mut waiting).await;
    let mut other = app.attempts(CLIENT);
    let slot = tokio::time::timeout(Duration::from_millis(1), async {
        tokio::select! {
            biased;
            _ = &mut waiting => panic!("there is no slot"),
            slot = other.next(nobody_else) => slot,
        }
    });
    let attempt = slot.await.expect("the bad server has room").unwrap();
    assert!(Arc::ptr_eq(attempt.server(), &app.servers[0]));
    drop(held);
    assert!(Arc::ptr_eq(waiting.await.unwrap().server(), &app.servers[1]));
}

#[tokio::test(start_paused = true)]
async fn who_waits_is_served_by_a_server_that_is_taken_back() {
    let listeners = some_listeners(2).await;
    let mut settings = settings(servers_of(&listeners));
    settings.servers[0].connections = Some(1);
    settings.queue_timeout = Duration::from_secs(60);
    settings.fails = 1;
    let app = app(&settings);
    app.servers[1].state.connect_failed(&Failure::timed_out(), app.tolerance(), Instant::now());
    let begun = Instant::now();
    let _held = app.connect(CLIENT).await.unwrap();
    let connected = app.connect(CLIENT).await.unwrap();
    assert!(Arc::ptr_eq(&connected.server, &app.servers[1]));
    assert_eq!(begun.elapsed().as_secs(), settings.fail_time.as_secs());
}

#[tokio::test(start_paused = true)]
async fn who_waits_is_served_when_a_name_is_found() {
    let listeners = some_listeners(1).await;
    let app = app(&settings(vec![at("app.example:1")]));
    let (connected, ()) = tokio::join!(app.connect(CLIENT), async {
        assert_eq!(app.waiting(), 1);
        app.servers[0].state.found_at(&[listeners[0].local_addr().unwrap()]);
        app.shared.queue.call_front();
    });
    connected.unwrap();
}

#[tokio::test]
async fn a_name_without_an_address_is_no_server() {
    let app = app(&settings(vec![at("app.example:1")]));
    app.servers[0].state.not_found(&Failure::timed_out());
    assert_eq!(app.connect(CLIENT).await.unwrap_err(), ConnectError::NoServer);
}

/// Takes slots again and again, and gives up at random moments, in the middle of being called among them: by the queue's
/// deadline with a backend that has little patience, or because the client goes away.
async fn roam(patient: &Arc<Backend>, impatient: &Arc<Backend>, held: &AtomicU32, seed: u64) {
    for turn in 0..TURNS {
        let random = mix(seed ^ turn);
        let outcome = match random >> 62 {
            0 => impatient.attempts(CLIENT).next(nobody_else).await,
            1 => patient.attempts(CLIENT).next(nobody_else).await,
            _ => {
                let patience = Duration::from_micros(random % 300);
                let mut attempts = patient.attempts(CLIENT);
                timeout(patience, attempts.next(nobody_else))
                    .await
                    .unwrap_or(Err(ConnectError::QueueTimeout))
            }
        };
        if let Ok(attempt) = outcome {
            assert!(held.fetch_add(1, SeqCst) < PLACES, "more than the limit");
            if random & 1 == 0 {
                tokio::task::yield_now().await;
            }
            held.fetch_sub(1, SeqCst);
            drop(attempt);
        }
    }
    // Nobody gives up now: a slot that got lost shows here.
    assert!(patient.attempts(CLIENT).next(nobody_else).await.is_ok(), "a slot is lost");
}

#[test]
fn no_place_is_lost_to_those_who_leave_at_the_moment_they_are_called() {
    let mut settings = settings(vec![at("127.0.0.1:1"), at("127.0.0.1:2")]);
    settings.servers.iter_mut().for_each(|it| it.connections = Some(PLACES / 2));
    settings.queue_timeout = Duration::from_secs(60);
    let before = Backends::new(std::slice::from_ref(&settings), None);
    settings.queue_timeout = Duration::from_micros(50);
    let after = Backends::new(&[settings], Some(&before));
    after.put_in_force();
    let patient = before.find("app").unwrap();
    let impatient = after.find("app").unwrap();
    let held = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let held = &held;
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
                runtime.unwrap().block_on(async {
                    let roam =
                        |task: u64| roam(patient, impatient, held, (thread << 40) | (task << 32));
                    tokio::join!(roam(0), roam(1), roam(2), roam(3), roam(4), roam(5));
                });
            });
        }
    });
    assert_eq!(patient.waiting(), 0);
    assert!(patient.servers.iter().all(|it| it.state.connections() == 0));
}

const PLACES: u32 = 2;
const TURNS: u64 = 300;

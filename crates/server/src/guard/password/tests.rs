use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::*;

#[test]
fn threads_that_could_not_be_started_are_started_later() {
    let mut threads = Threads { queue: None, tried: None };
    assert!(threads.queue(|| None).is_none());
    assert!(threads.queue(|| panic!("at once")).is_none());
    threads.tried = None;
    let way = sync_channel(1).0;
    assert!(threads.queue(|| Some(way)).is_some());
    assert!(threads.queue(|| panic!("they run")).is_some());
}

/// Whichever workers its connections are on.
#[test]
fn one_client_does_not_take_all_turns_of_those_who_check_passwords() {
    let (client, other) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
    let workers: Vec<_> = (0..4)
        .map(|_| std::thread::spawn(move || (0..8).map(|_| Pending::begin(client)).collect()))
        .collect();
    let begun: Vec<Vec<Option<Pending>>> =
        workers.into_iter().map(|worker| worker.join().unwrap()).collect();
    assert_eq!(begun.iter().flatten().flatten().count(), 8);
    assert!(Pending::begin(client).is_none());
    assert!(Pending::begin(other).is_some());
    drop(begun);
    assert!(Pending::begin(client).is_some());
    assert!(!pending().contains_key(&client), "nobody is remembered for that");
}

/// Over HTTP/2 a request can be taken back at once, and the next one asked.
#[tokio::test]
async fn requests_taken_back_leave_room_for_the_checks_of_others() {
    let (client, other) = (IpAddr::from([192, 0, 2, 3]), IpAddr::from([192, 0, 2, 4]));
    // Nobody takes jobs out of it yet, as if the only thread were busy.
    let (queue, jobs) = sync_channel(QUEUE_MAX);
    let hash = Arc::new(Hash::Bcrypt("no hash".into()));
    let is_asked = |client| {
        let mut check = pin!(answer(&queue, Arc::clone(&hash), Zeroizing::default(), client));
        let mut context = Context::from_waker(Waker::noop());
        match check.as_mut().poll(&mut context) {
            Poll::Pending => true,
            Poll::Ready(answer) => {
                assert_eq!(answer, Err(Busy));
                false
            }
        }
    };
    let asked = (0..2 * QUEUE_MAX).filter(|_| is_asked(client)).count();
    assert_eq!(asked, PENDING_PER_CLIENT_MAX as usize);
    assert!(is_asked(other));
    drop(queue);
    run(&Mutex::new(jobs), &[]);
    assert!(!pending().contains_key(&client), "its jobs are done");
}

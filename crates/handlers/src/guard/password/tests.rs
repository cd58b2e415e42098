use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::queue::PENDING_PER_CLIENT_MAX;
use super::*;

#[test]
fn threads_that_could_not_be_started_are_started_later() {
    let mut threads = Threads { are_there: false, tried: None };
    assert!(!threads.are_there(|| false));
    assert!(!threads.are_there(|| panic!("at once")));
    threads.tried = None;
    assert!(threads.are_there(|| true));
    assert!(threads.are_there(|| panic!("they run")));
}

/// Over HTTP/2 a request can be taken back at once, and the next one asked.
#[test]
fn requests_taken_back_leave_room_for_the_checks_of_others() {
    let [client, other] = [3, 4].map(|last| ClientHost::Ip([192, 0, 2, last].into()));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let _inside = runtime.enter();
    // Nobody takes jobs out of it yet, as if the only thread were busy.
    let queue = Queue::new();
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
    let asked = (0..200).filter(|_| is_asked(client)).count();
    assert_eq!(asked, PENDING_PER_CLIENT_MAX);
    assert!(is_asked(other));
    for _ in 0..=PENDING_PER_CLIENT_MAX {
        check_next(&queue);
    }
    assert!(is_asked(client), "its jobs are done");
}

/// Eight clients, each with as many as it may have.
#[tokio::test]
async fn one_that_has_none_waiting_is_checked_though_others_take_all_places() {
    let hash = Arc::new(Hash::Bcrypt("no hash".into()));
    let queue = Queue::new();
    let ask = |client: u8| {
        let client = ClientHost::Ip([192, 0, 2, client].into());
        answer(&queue, Arc::clone(&hash), Zeroizing::default(), client)
    };
    let mut crowd: Vec<_> = (0..64).map(|job| Box::pin(ask(job % 8))).collect();
    let mut context = Context::from_waker(Waker::noop());
    for asked in &mut crowd {
        assert!(asked.as_mut().poll(&mut context).is_pending());
    }
    let mut newcomer = Box::pin(ask(100));
    assert!(newcomer.as_mut().poll(&mut context).is_pending());
    let displaced = crowd.iter_mut().filter_map(|asked| match asked.as_mut().poll(&mut context) {
        Poll::Ready(answer) => Some(answer),
        Poll::Pending => None,
    });
    assert_eq!(displaced.collect::<Vec<_>>(), [Err(Busy)]);
    for _ in 0..=8 {
        check_next(&queue);
    }
    assert_eq!(newcomer.await, Ok(false));
}

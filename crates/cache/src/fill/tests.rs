use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::AtomicUsize;
use std::task::Wake;
use std::thread;

use super::*;

fn fill() -> Fill {
    Fill::new(std::fs::File::open("/dev/null").unwrap().into(), 4_096, None)
}

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn whoever_waits_is_woken_once_for_what_is_new() {
    let fill = fill();
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    let mut context = Context::from_waker(&waker);
    let mut waiting = fill.wait();
    assert!(waiting.poll(&mut context, 0).is_pending());
    fill.add(10);
    fill.wake();
    fill.wake();
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
    let news = FillProgress { filled: 10, state: FillState::Growing };
    assert_eq!(waiting.poll(&mut context, 3), Poll::Ready(news));
    assert!(waiting.poll(&mut context, 10).is_pending());
    fill.end(FillState::Failed);
    let end = FillProgress { filled: 10, state: FillState::Failed };
    assert_eq!(waiting.poll(&mut context, 10), Poll::Ready(end));
    assert_eq!(count.0.load(Ordering::SeqCst), 2);
}

#[test]
fn whoever_went_away_is_not_woken_and_leaves_the_place() {
    let fill = fill();
    let count = Arc::new(Count::default());
    let waker = Waker::from(Arc::clone(&count));
    let mut gone = fill.wait();
    assert!(gone.poll(&mut Context::from_waker(&waker), 0).is_pending());
    drop(gone);
    fill.end(FillState::Complete);
    assert_eq!(count.0.load(Ordering::SeqCst), 0);
    let _next = fill.wait();
    assert_eq!(fill.lock().len(), 1);
}

/// A reader that joins in the moment in which nobody reads it any more either keeps it coming or
/// learns that it does not.
#[test]
fn what_somebody_reads_is_not_given_up_and_what_is_given_up_has_ended_for_all() {
    let fill = fill();
    let place = fill.wait();
    assert!(!fill.give_up());
    assert_eq!(fill.progress().state, FillState::Growing);
    drop(place);
    assert!(fill.give_up());
    let _late = fill.wait();
    assert_eq!(fill.progress().state, FillState::Failed);
}

struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// A lost waking would let this test hang.
#[test]
fn readers_of_other_threads_see_every_byte_and_the_end() {
    let fill = fill();
    let readers: Vec<_> = (0..4)
        .map(|_| {
            let fill = fill.clone();
            thread::spawn(move || {
                let waker = Waker::from(Arc::new(Unpark(thread::current())));
                let mut seen = 0;
                let mut waiting = fill.wait();
                loop {
                    let mut next = pin!(poll_fn(|context| waiting.poll(context, seen)));
                    let progress = loop {
                        match next.as_mut().poll(&mut Context::from_waker(&waker)) {
                            Poll::Ready(progress) => break progress,
                            Poll::Pending => thread::park(),
                        }
                    };
                    seen = progress.filled;
                    if progress.state == FillState::Complete {
                        return seen;
                    }
                }
            })
        })
        .collect();
    for _ in 0..20_000 {
        fill.add(1);
        fill.wake();
    }
    fill.end(FillState::Complete);
    for reader in readers {
        assert_eq!(reader.join().unwrap(), 20_000);
    }
}

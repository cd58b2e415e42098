use std::fs::File;
use std::os::fd::AsFd;
use std::rc::Rc;
use std::sync::mpsc;

use tokio::task::{LocalSet, spawn_local};

use super::*;

const LONG: Duration = Duration::from_mins(10);
const SHORT: Duration = Duration::from_millis(1);

fn remote() -> Arc<Device> {
    Arc::new(Device::new(FileSystem::default()))
}

/// Calls that say that they have begun, and end when told to.
struct Hanging {
    release: mpsc::Sender<()>,
    held: Arc<Mutex<mpsc::Receiver<()>>>,
    begun: tokio::sync::mpsc::Receiver<()>,
    begin: tokio::sync::mpsc::Sender<()>,
}

impl Hanging {
    fn new() -> Self {
        let (release, held) = mpsc::channel();
        let (begin, begun) = tokio::sync::mpsc::channel(2 * PERMITS);
        Self { release, held: Arc::new(Mutex::new(held)), begun, begin }
    }

    fn call(&self) -> impl FnOnce() + Send + 'static {
        let begin = self.begin.clone();
        let held = Arc::clone(&self.held);
        move || {
            begin.try_send(()).unwrap();
            held.lock().unwrap().recv().unwrap();
        }
    }

    /// Starts a wait with such a call on the worker.
    fn start(
        &self,
        disks: &Rc<Disks>,
        device: &Arc<Device>,
    ) -> tokio::task::JoinHandle<Result<(), WaitError>> {
        let disks = Rc::clone(disks);
        let device = Arc::clone(device);
        let call = self.call();
        spawn_local(async move { disks.wait_for(&device, call).await })
    }

    /// Lets all of them end. Which of them a word reaches is open, so all are said before one is waited for.
    async fn end(&self, calls: Vec<tokio::task::JoinHandle<Result<(), WaitError>>>) {
        for _ in &calls {
            self.release.send(()).unwrap();
        }
        for call in calls {
            assert_eq!(call.await.unwrap(), Ok(()));
        }
    }
}

async fn until_permits_are(device: &Device, permits: usize) {
    while device.permits.available_permits() != permits {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn calls_that_wait_for_a_device_are_bounded_and_hold_up_no_other_device() {
    let disks = Rc::new(Disks::new(LONG));
    let hung = remote();
    let other = remote();
    let mut hanging = Hanging::new();
    LocalSet::new()
        .run_until(async {
            let calls: Vec<_> = (0..=PERMITS).map(|_| hanging.start(&disks, &hung)).collect();
            for _ in 0..PERMITS {
                hanging.begun.recv().await.unwrap();
            }
            assert_eq!(disks.wait_for(&other, || 7).await, Ok(7));
            assert!(hanging.begun.try_recv().is_err(), "one more than there are permits");
            hanging.end(calls).await;
        })
        .await;
    until_permits_are(&hung, PERMITS).await;
}

#[tokio::test]
async fn calls_in_turn_leave_permits_to_others() {
    let disks = Rc::new(Disks::new(LONG));
    let device = remote();
    let mut hanging = Hanging::new();
    LocalSet::new()
        .run_until(async {
            let calls: Vec<_> = (0..=TURNS)
                .map(|_| {
                    let disks = Rc::clone(&disks);
                    let device = Arc::clone(&device);
                    let call = hanging.call();
                    let call = move |_: &Abandoned| call();
                    spawn_local(
                        async move { disks.wait_in_turn(&device, disks.deadline(), call).await },
                    )
                })
                .collect();
            for _ in 0..TURNS {
                hanging.begun.recv().await.unwrap();
            }
            assert_eq!(disks.wait_for(&device, || 7).await, Ok(7));
            assert!(hanging.begun.try_recv().is_err(), "one more than there are turns");
            hanging.end(calls).await;
        })
        .await;
    until_permits_are(&device, PERMITS).await;
    assert_eq!(device.turns.available_permits(), TURNS);
}

#[tokio::test]
async fn a_wait_ends_in_time_and_its_call_keeps_its_permit_until_it_returns() {
    let disks = Rc::new(Disks::new(SHORT));
    let device = remote();
    let mut hanging = Hanging::new();
    LocalSet::new()
        .run_until(async {
            let wait = || hanging.start(&disks, &device);
            assert_eq!(wait().await.unwrap(), Err(WaitError::TimedOut));
            while hanging.begun.is_empty() {
                // A call whose thread came too late is not made, and gives its permit back.
                match device.permits.available_permits() {
                    PERMITS => assert_eq!(wait().await.unwrap(), Err(WaitError::TimedOut)),
                    _ => tokio::task::yield_now().await,
                }
            }
        })
        .await;
    hanging.begun.recv().await.unwrap();
    assert_eq!(device.permits.available_permits(), PERMITS - 1);
    assert_eq!(device.waiting.load(Ordering::Relaxed), 0);
    hanging.release.send(()).unwrap();
    until_permits_are(&device, PERMITS).await;
}

#[tokio::test]
async fn a_wait_that_is_dropped_in_the_queue_never_begins() {
    let disks = Rc::new(Disks::new(LONG));
    let device = remote();
    let mut hanging = Hanging::new();
    LocalSet::new()
        .run_until(async {
            let running: Vec<_> = (0..PERMITS).map(|_| hanging.start(&disks, &device)).collect();
            for _ in 0..PERMITS {
                hanging.begun.recv().await.unwrap();
            }
            let queued = hanging.start(&disks, &device);
            tokio::task::yield_now().await;
            assert_eq!(device.waiting.load(Ordering::Relaxed), PERMITS + 1);
            queued.abort();
            assert!(queued.await.unwrap_err().is_cancelled());
            assert_eq!(device.waiting.load(Ordering::Relaxed), PERMITS);
            hanging.end(running).await;
        })
        .await;
    until_permits_are(&device, PERMITS).await;
    assert!(hanging.begun.try_recv().is_err());
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_any_more_is_told() {
    let disks = Disks::new(LONG);
    let device = remote();
    let (told, mut is_told) = tokio::sync::oneshot::channel();
    let (begin, begun) = tokio::sync::oneshot::channel();
    let call = move |abandoned: &Abandoned| {
        begin.send(()).unwrap();
        while !abandoned.is_so() {
            std::thread::yield_now();
        }
        told.send(()).unwrap();
    };
    tokio::select! {
        biased;
        _ = disks.wait_in_turn(&device, disks.deadline(), call) => panic!("it ended by itself"),
        begun = begun => begun.unwrap(),
    }
    (&mut is_told).await.unwrap();
    until_permits_are(&device, PERMITS).await;
    assert_eq!(device.turns.available_permits(), TURNS);
}

#[tokio::test]
async fn nobody_waits_for_a_disk_when_the_drain_is_over() {
    let disks = Rc::new(Disks::new(LONG));
    let of_a_store = Rc::new(disks.within(LONG));
    let device = remote();
    let mut hanging = Hanging::new();
    LocalSet::new()
        .run_until(async {
            let waits = [&disks, &of_a_store].map(|disks| hanging.start(disks, &device));
            for _ in &waits {
                hanging.begun.recv().await.unwrap();
            }
            disks.end_drain();
            for wait in waits {
                assert_eq!(wait.await.unwrap(), Err(WaitError::Ended));
                hanging.release.send(()).unwrap();
            }
        })
        .await;
    until_permits_are(&device, PERMITS).await;
}

#[tokio::test]
async fn waits_for_one_answer_share_its_time() {
    let disks = Disks::new(SHORT);
    let device = remote();
    let deadline = disks.deadline();
    tokio::time::sleep_until(deadline.0).await;
    let late = disks.wait_until(&device, deadline, std::thread::yield_now).await;
    assert_eq!(late, Err(WaitError::TimedOut));
}

#[tokio::test(start_paused = true)]
async fn what_a_late_answer_is_made_from_has_a_moment_and_no_second_time() {
    let disks = Disks::new(LONG);
    let deadline = disks.deadline();
    assert_eq!(disks.in_a_moment(deadline).0, deadline.0, "there is time enough");
    tokio::time::advance(LONG).await;
    assert_eq!(disks.in_a_moment(deadline).0, Instant::now() + MOMENT);
    let hasty = Disks::new(SHORT);
    assert_eq!(hasty.in_a_moment(deadline).0, Instant::now() + SHORT);
}

#[tokio::test]
async fn what_lies_behind_a_path_has_threads_of_its_own() {
    let disks = Disks::new(LONG);
    let known = disks.behind(1, "a");
    assert!(Arc::ptr_eq(&known, &disks.behind(1, "a")));
    for other in
        [disks.behind(1, "b"), disks.behind(2, "a"), disks.device(1, FileSystem::default())]
    {
        assert!(!Arc::ptr_eq(&known, &other));
    }
}

#[tokio::test]
async fn the_queue_of_a_device_has_an_end() {
    let disks = Disks::new(LONG);
    let device = remote();
    device.waiting.store(QUEUE_MAX, Ordering::Relaxed);
    assert_eq!(disks.wait_for(&device, || ()).await, Err(WaitError::Crowded));
    assert_eq!(device.waiting.load(Ordering::Relaxed), QUEUE_MAX);
    device.waiting.store(QUEUE_MAX - 1, Ordering::Relaxed);
    assert_eq!(disks.wait_for(&device, || ()).await, Ok(()));
}

#[tokio::test]
async fn files_of_a_remote_device_are_closed_by_threads() {
    let disks = Rc::new(Disks::new(LONG));
    let device = remote();
    let (reader, writer) = std::io::pipe().unwrap();
    let mut hanging = Hanging::new();
    LocalSet::new()
        .run_until(async {
            let running: Vec<_> = (0..PERMITS).map(|_| hanging.start(&disks, &device)).collect();
            for _ in 0..PERMITS {
                hanging.begun.recv().await.unwrap();
            }
            device.close(writer, 0);
            assert_eq!(device.left().len(), 1, "closed although every permit is taken");
            hanging.end(running).await;
            disks.wait_for(&device, || ()).await.unwrap();
        })
        .await;
    assert!(device.left().is_empty());
    // The end of the stream: nobody else holds the writing end.
    assert_eq!(std::io::read_to_string(reader).unwrap(), "");
}

/// Something whose end brings another one to be closed.
#[derive(Debug)]
struct Brings(Arc<Device>, Option<std::io::PipeWriter>);

impl Drop for Brings {
    fn drop(&mut self) {
        self.0.close(self.1.take(), 0);
    }
}

#[tokio::test]
async fn what_comes_while_the_last_permit_closes_others_is_closed_behind_them() {
    let device = remote();
    let (reader, writer) = std::io::pipe().unwrap();
    let _others = Arc::clone(&device.permits).acquire_many_owned(PERMITS as u32 - 1).await.unwrap();
    device.close(Brings(Arc::clone(&device), Some(writer)), 0);
    until_permits_are(&device, 1).await;
    while !device.left().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(std::io::read_to_string(reader).unwrap(), "");
}

#[tokio::test]
async fn large_files_are_closed_by_threads_and_small_ones_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let local = FileSystem::of(File::open(folder.path()).unwrap().as_fd()).unwrap();
    let device = Arc::new(Device::new(local));
    let _taken = Arc::clone(&device.permits).acquire_many_owned(PERMITS as u32).await.unwrap();
    for (bytes, left) in [(CLOSED_AT_ONCE_BYTES_MAX, 0), (CLOSED_AT_ONCE_BYTES_MAX + 1, 1)] {
        device.close(tempfile::tempfile().unwrap(), bytes);
        assert_eq!(device.left().len(), left);
    }
}

#[test]
fn what_a_device_says_decides_how_it_is_read() {
    let now = Duration::from_secs(1);
    let folder = tempfile::tempdir().unwrap();
    let local = FileSystem::of(File::open(folder.path()).unwrap().as_fd()).unwrap();
    let device = Device::new(local);
    assert_eq!(device.reading(now), ReadMode::IfResident);
    device.refused_to_say();
    let unproved = if local.is_memory() { ReadMode::AtOnce } else { ReadMode::OnThread };
    assert_eq!(device.reading(now), unproved, "nothing is known of it but where it is");
    for _ in 0..100 {
        device.took(Duration::ZERO);
    }
    assert_eq!(device.reading(now), ReadMode::AtOnce);
    device.held_up(Duration::from_secs(1), now);
    assert_eq!(device.reading(now), ReadMode::OnThread);
    assert_eq!(remote().reading(now), ReadMode::OnThread);
}

#[test]
fn devices_are_remembered_by_number_and_kind_up_to_a_bound() {
    let disks = Disks::new(LONG);
    let kind = FileSystem::default();
    let kept = disks.device(0, kind);
    for number in 1..=DEVICES_MAX as u64 {
        let _ = disks.device(number, kind);
    }
    assert!(Arc::ptr_eq(&kept, &disks.device(0, kind)), "it was in use");
    assert!(disks.devices.borrow().len() <= DEVICES_MAX);
}

#[test]
fn without_a_thread_waits_end_at_once_and_what_is_closed_waits_for_the_next() {
    let disks = Disks::new(LONG);
    let device = remote();
    let (reader, writer) = std::io::pipe().unwrap();
    runtime_without_threads().block_on(async {
        // More than there are permits: none is held by a call that was not made.
        for _ in 0..=2 * PERMITS {
            assert_eq!(disks.wait_for(&device, || ()).await, Err(WaitError::NoThread));
        }
        device.close(writer, 0);
    });
    assert_eq!((device.left().len(), device.permits.available_permits()), (1, PERMITS));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // Another thread than this, which asks for none for a while.
    std::thread::spawn(move || {
        runtime.block_on(async { disks.wait_for(&device, || ()).await.unwrap() });
    })
    .join()
    .unwrap();
    assert_eq!(std::io::read_to_string(reader).unwrap(), "");
}

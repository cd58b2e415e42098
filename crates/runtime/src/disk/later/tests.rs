use std::sync::mpsc;

use super::*;

fn device() -> Arc<Device> {
    Arc::new(Device::new(kettle_kernel::file_system::FileSystem::default()))
}

#[tokio::test]
async fn calls_are_made_in_their_order_and_their_end_can_be_waited_for() {
    let device = device();
    let made = Arc::<Mutex<Vec<u32>>>::default();
    device.later.has_run_all().await;
    for number in 0..100 {
        let made = Arc::clone(&made);
        device.run_later(1, move || made.lock().unwrap().push(number));
    }
    device.later.has_run_all().await;
    assert_eq!(*made.lock().unwrap(), (0..100).collect::<Vec<_>>());
    assert!(device.has_room(UNWRITTEN_BYTES_MAX));
}

#[tokio::test]
async fn what_hangs_holds_no_more_than_the_bound() {
    let device = device();
    let (release, held) = mpsc::channel::<()>();
    device.run_later(UNWRITTEN_BYTES_MAX - 1, move || held.recv().unwrap());
    assert!(device.has_room(1) && !device.has_room(2));
    for _ in 0..CALLS_MAX {
        device.run_later(0, || ());
    }
    release.send(()).unwrap();
    device.later.has_run_all().await;
    assert!(device.has_room(UNWRITTEN_BYTES_MAX) && !device.has_room(UNWRITTEN_BYTES_MAX + 1));
}

#[tokio::test]
async fn after_a_call_that_panics_others_are_made() {
    let (device, (made, is_made)) = (device(), mpsc::channel());
    device.run_later(UNWRITTEN_BYTES_MAX, || panic!("as a test wants it"));
    device.run_later(0, move || made.send(()).unwrap());
    device.later.has_run_all().await;
    is_made.try_recv().unwrap();
    assert!(device.has_room(UNWRITTEN_BYTES_MAX));
}

#[test]
fn calls_wait_for_a_thread_where_none_can_be_started() {
    let (device, (made, is_made)) = (device(), mpsc::channel());
    let keeps = Arc::clone(&device);
    crate::disk::runtime_without_threads().block_on(async move {
        keeps.run_later(UNWRITTEN_BYTES_MAX, move || made.send(()).unwrap());
        keeps.later.has_run_all().await;
        assert!(!keeps.has_room(1));
    });
    is_made.try_recv().unwrap_err();
    // Another thread than this, which asks for none for a while.
    let asking = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let _asked = device.has_room(1);
            device.later.has_run_all().await;
            assert!(device.has_room(UNWRITTEN_BYTES_MAX));
        });
    });
    asking.join().unwrap();
    is_made.try_recv().unwrap();
}

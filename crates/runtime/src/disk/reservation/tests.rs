use std::net::Ipv4Addr;
use std::sync::mpsc;

use tokio::time::Instant;

use super::super::UNWRITTEN_BYTES_MAX;
use super::*;

const MIB: usize = 1 << 20;

fn device() -> Arc<Device> {
    Arc::new(Device::new(kettle_kernel::file_system::FileSystem::default()))
}

fn client(number: usize) -> ClientHost {
    let address = Ipv4Addr::from_bits(u32::try_from(number).unwrap());
    ClientHost::Ip(address.into())
}

/// Something that holds this much until what this returns is told to let go.
fn hang(device: &Arc<Device>, bytes: usize) -> mpsc::Sender<()> {
    let (release, held) = mpsc::channel();
    device.run_later(bytes, move || held.recv().unwrap());
    release
}

/// Lets the device know what a fetch brings.
async fn bring(device: &Arc<Device>, bytes: usize) {
    device.reserve(client(0)).await.unwrap().used(bytes);
}

fn counts(device: &Arc<Device>) -> (usize, usize, usize) {
    let queue = device.later.lock();
    let Reservations { held, waiting, of_client, .. } = &queue.reservations;
    (*held, waiting.len(), of_client.len())
}

#[tokio::test(start_paused = true)]
async fn where_the_disk_is_not_behind_nobody_waits_however_many_are_under_way() {
    let device = device();
    bring(&device, MIB).await;
    let begun = Instant::now();
    let mut all = Vec::new();
    for _ in 0..1_000 {
        all.push(device.reserve(client(0)).await.unwrap());
    }
    assert_eq!((begun.elapsed(), counts(&device)), (Duration::ZERO, (1_000, 0, 0)));
    drop(all);
    assert_eq!(counts(&device), (0, 0, 0));
}

/// By the real clock: a paused one goes on only where no thread is at work.
#[tokio::test]
async fn behind_a_disk_that_hangs_a_fetch_waits_for_its_time_and_no_longer() {
    let device = device();
    bring(&device, MIB).await;
    let release = hang(&device, 30 * MIB);
    let begun = Instant::now();
    let reserved = [device.reserve(client(0)).await, device.reserve(client(0)).await];
    assert!(reserved.iter().all(Option::is_some));
    assert!(device.reserve(client(0)).await.is_none());
    assert!(begun.elapsed() >= WAIT_MAX);
    assert_eq!(counts(&device), (2, 0, 0));
    // Bytes that are here wait for nothing, and take nothing of what is reserved.
    assert!(device.has_room_for(MIB, reserved[0].as_ref()) && !device.has_room_for(1, None));
    release.send(()).unwrap();
}

#[tokio::test]
async fn those_that_wait_get_room_in_their_order_once_there_is_some() {
    let device = device();
    bring(&device, MIB).await;
    let release = hang(&device, 30 * MIB);
    let held = [device.reserve(client(0)).await, device.reserve(client(0)).await];
    let order = std::cell::RefCell::new(Vec::new());
    let wait = async |number| {
        let reserved = device.reserve(client(number)).await;
        order.borrow_mut().push(number);
        reserved.unwrap()
    };
    let let_go = async {
        tokio::task::yield_now().await;
        assert_eq!(counts(&device), (2, 3, 3));
        // One that is given back goes to the next.
        drop(held);
        tokio::task::yield_now().await;
        release.send(()).unwrap();
    };
    let (first, second, third, ()) = tokio::join!(wait(1), wait(2), wait(3), let_go);
    assert_eq!((&**order.borrow(), counts(&device)), (&[1, 2, 3][..], (3, 0, 0)));
    drop((first, second, third));
    assert_eq!(counts(&device), (0, 0, 0));
}

#[tokio::test]
async fn half_of_the_places_that_wait_are_left_to_other_clients() {
    let device = device();
    bring(&device, MIB).await;
    let release = hang(&device, UNWRITTEN_BYTES_MAX);
    let begin = |number| device.begin_waiting(client(number));
    let mut all: Vec<_> = (0..WAITING_MAX / 2).map(|_| begin(0).unwrap()).collect();
    assert!(begin(0).is_none());
    all.extend((0..WAITING_MAX / 2).map(|number| begin(number / 2 + 1).unwrap()));
    assert!(begin(WAITING_MAX).is_none());
    assert_eq!(counts(&device), (0, WAITING_MAX, WAITING_MAX / 4 + 1));
    // One that leaves makes room for another, whoever it is.
    drop(all.pop());
    all.push(begin(WAITING_MAX).unwrap());
    assert!(begin(0).is_none());
    drop(all);
    assert_eq!(counts(&device), (0, 0, 0));
    release.send(()).unwrap();
}

#[tokio::test]
async fn who_leaves_with_room_that_it_did_not_take_yet_gives_it_back() {
    let device = device();
    bring(&device, MIB).await;
    let release = hang(&device, UNWRITTEN_BYTES_MAX);
    let waiting = device.begin_waiting(client(0)).unwrap();
    release.send(()).unwrap();
    device.later.has_run_all().await;
    assert_eq!(counts(&device), (1, 0, 0));
    drop(waiting);
    assert_eq!(counts(&device), (0, 0, 0));
}

#[test]
fn what_one_brings_is_learned_at_once_and_forgotten_slowly() {
    let mut reservations = Reservations::default();
    let mut learned = Vec::new();
    for bytes in [1_000, 64_000, 1_000] {
        reservations.learn(bytes);
        learned.push(reservations.each_bytes);
    }
    assert_eq!(learned, [1_000, 64_000, 64_000 - 63_000 / FORGOTTEN_PART]);
    (0..1_000).for_each(|_| reservations.learn(1_000));
    assert!(reservations.each_bytes < 1_100);
}

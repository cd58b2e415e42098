use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc;
use std::time::Duration;

use super::*;

const MEMORY: usize = 1 << 20;

const CLIENT: ClientHost = ClientHost::Ip(IpAddr::V4(Ipv4Addr::LOCALHOST));

fn disks() -> Disks {
    Disks::new(Duration::from_secs(10))
}

async fn all_of(spooled: &mut Spooled) -> Vec<u8> {
    let mut all = Vec::new();
    while !spooled.is_at_end() {
        all.extend(spooled.next().await.unwrap());
    }
    assert!(spooled.next().await.unwrap().is_empty());
    all
}

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|place| u8::try_from(place * 7 % 251).unwrap()).collect()
}

#[tokio::test]
async fn a_body_comes_out_as_it_went_in_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let spool = Spool::new(&folder.path().join("state"), 1 << 20, MEMORY, 4);
    for bytes in [0, 1, 65_535, 65_536, 65_537, 131_072, 200_001] {
        for piece_bytes in [1_000, 65_536, 150_000] {
            let body = content(bytes);
            let mut spooled = spool.begin(CLIENT, &disks());
            for piece in body.chunks(piece_bytes) {
                spooled.push(piece).await.unwrap();
            }
            let is_short = bytes <= MEMORY_BYTES_MAX;
            assert_eq!(spooled.file.is_none(), is_short, "{bytes} by {piece_bytes}");
            assert_eq!((spooled.bytes(), spool.bytes()), (bytes as u64, bytes as u64));
            assert!(all_of(&mut spooled).await == body, "{bytes} by {piece_bytes}");
        }
    }
    assert_eq!((spool.bytes(), spool.memory_bytes.load(Ordering::Relaxed)), (0, 0));
    assert_eq!(spool.files(), 0);
    assert_eq!(std::fs::read_dir(folder.path().join("state")).unwrap().count(), 0);
}

#[tokio::test]
async fn what_all_bodies_take_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let spool = Spool::new(folder.path(), 200_000, MEMORY, 2);
    let mut first = spool.begin(CLIENT, &disks());
    first.push(&content(99_000)).await.unwrap();
    let mut second = spool.begin(CLIENT, &disks());
    assert!(matches!(second.push(&content(1_001)).await, Err(SpoolError::Full)));
    second.push(&content(1_000)).await.unwrap();
    drop(first);
    second.push(&content(99_000)).await.unwrap();
    // Files are bounded, too.
    spool.set_bytes_max(1 << 20);
    let mut third = spool.begin(CLIENT, &disks());
    assert!(matches!(third.push(&content(70_000)).await, Err(SpoolError::Full)));
    drop((second, third));
    assert_eq!((spool.bytes(), spool.files()), (0, 0));
}

#[tokio::test]
async fn where_no_memory_is_left_short_bodies_are_in_files_too() {
    let folder = tempfile::tempdir().unwrap();
    let spool = Spool::new(folder.path(), 1 << 20, MEMORY, 4);
    spool.memory_bytes.store(MEMORY - 10, Ordering::Relaxed);
    let mut spooled = spool.begin(CLIENT, &disks());
    for piece in content(100).chunks(8) {
        spooled.push(piece).await.unwrap();
    }
    assert!(spooled.file.is_some());
    assert_eq!(all_of(&mut spooled).await, content(100));
    drop(spooled);
    assert_eq!(spool.memory_bytes.load(Ordering::Relaxed), MEMORY - 10);
}

#[tokio::test]
async fn a_folder_that_cannot_be_used_is_an_error_of_long_bodies_only() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let spool = Spool::new(&folder.path().join("file"), 1 << 20, MEMORY, 4);
    spool.open().unwrap_err();
    let mut spooled = spool.begin(CLIENT, &disks());
    spooled.push(&content(65_536)).await.unwrap();
    assert!(matches!(spooled.push(b"x").await, Err(SpoolError::Disk(_))));
    drop(spooled);
    assert_eq!((spool.bytes(), spool.files()), (0, 0));
}

/// A server that takes nothing has them stay.
#[tokio::test]
async fn pieces_that_were_given_out_count_as_memory() {
    let folder = tempfile::tempdir().unwrap();
    let spool = Spool::new(folder.path(), 1 << 20, 200_000, 4);
    let in_memory = || spool.memory_bytes.load(Ordering::Relaxed);
    let mut bodies = Vec::new();
    for _ in 0..2 {
        let mut spooled = spool.begin(CLIENT, &disks());
        spooled.push(&content(262_144)).await.unwrap();
        bodies.push(spooled);
    }
    // The last piece of each is in memory, and there is room for one more.
    assert_eq!(in_memory(), 131_072);
    assert_eq!(bodies[0].next().await.unwrap().len(), 65_536);
    assert_eq!(in_memory(), 196_608);
    assert_eq!(bodies[1].next().await.unwrap().len(), PIECE_BYTES_MIN);
    assert_eq!(in_memory(), 196_608);
    drop(bodies.remove(0));
    assert_eq!(in_memory(), 65_536);
    let mut all = content(262_144)[..PIECE_BYTES_MIN].to_vec();
    while !bodies[0].is_at_end() {
        all.extend(bodies[0].next().await.unwrap());
        assert!(in_memory() <= 131_072);
    }
    assert!(all == content(262_144));
    drop(bodies);
    assert_eq!(in_memory(), 0);
}

#[tokio::test]
async fn a_body_takes_no_more_memory_than_is_counted_but_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let spool = Spool::new(folder.path(), 1 << 20, MEMORY, 4);
    let mut spooled = spool.begin(CLIENT, &disks());
    for _ in 0..65 {
        spooled.push(&content(1_001)).await.unwrap();
        assert!(spooled.memory.capacity() <= spooled.held.memory_bytes + PIECE_BYTES_MIN);
    }
}

/// To give back the blocks of a file takes the disk.
#[tokio::test]
async fn no_worker_closes_the_file_of_a_body() {
    let folder = tempfile::tempdir().unwrap();
    let spool = Spool::new(folder.path(), 1 << 20, MEMORY, 4);
    spool.open().unwrap();
    let disks = disks();
    let mut spooled = spool.begin(CLIENT, &disks);
    spooled.push(&content(100_000)).await.unwrap();
    let device = Arc::clone(&spooled.device);
    let file = Arc::downgrade(spooled.file.as_ref().unwrap());
    // All that may wait for this disk do.
    let (begun, mut began) = tokio::sync::mpsc::channel(4);
    let calls = [(); 4].map(|()| {
        let (go_on, waiting) = mpsc::channel::<()>();
        let disks = disks.again();
        let device = Arc::clone(&device);
        let begun = begun.clone();
        let call = async move {
            let wait = move || (begun.blocking_send(()).unwrap(), waiting.recv().unwrap());
            disks.wait_for(&device, wait).await.unwrap();
        };
        (go_on, call)
    });
    let local = tokio::task::LocalSet::new();
    local
        .run_until(async {
            let calls = calls.map(|(go_on, call)| (go_on, tokio::task::spawn_local(call)));
            for _ in &calls {
                began.recv().await.unwrap();
            }
            drop(spooled);
            assert!(file.upgrade().is_some());
            for (go_on, call) in calls {
                go_on.send(()).unwrap();
                call.await.unwrap();
            }
            assert!(file.upgrade().is_none());
        })
        .await;
}

#[tokio::test]
async fn no_client_takes_the_files_of_all_others() {
    let folder = tempfile::tempdir().unwrap();
    let spool = Spool::new(folder.path(), 1 << 20, 0, 16);
    let [other, third] = [1, 2].map(|last| ClientHost::Ip([192, 0, 2, last].into()));
    let mut bodies = Vec::new();
    for (client, files) in [(CLIENT, 8), (other, 4), (third, 2), (CLIENT, 0)] {
        let mut taken = 0;
        loop {
            let mut spooled = spool.begin(client, &disks());
            if spooled.push(b"x").await.is_err() {
                break;
            }
            taken += 1;
            bodies.push(spooled);
        }
        assert_eq!(taken, files, "{client}");
    }
    // A place that one has given back is there for a client that has fewer.
    bodies.drain(..6);
    spool.begin(CLIENT, &disks()).push(b"x").await.unwrap();
    drop(bodies);
    assert!(spool.files() == 0 && spool.shares().of_clients.is_empty());
}

#[tokio::test]
async fn no_client_takes_the_room_of_all_others() {
    let folder = tempfile::tempdir().unwrap();
    let spool = Spool::new(folder.path(), 160_000, MEMORY, 64);
    assert_eq!(spool.body_bytes_max(), 80_000);
    let [other, third] = [1, 2].map(|last| ClientHost::Ip([192, 0, 2, last].into()));
    let mut bodies = Vec::new();
    for (client, bytes) in [(CLIENT, 80_000), (other, 40_000), (third, 20_000), (CLIENT, 0)] {
        let mut spooled = spool.begin(client, &disks());
        while spooled.push(&content(1_000)).await.is_ok() {}
        assert_eq!(spooled.bytes(), bytes, "{client}");
        bodies.push(spooled);
    }
    // Room that one has given back is there for a client that has less.
    drop(bodies.remove(0));
    bodies[0].push(&content(20_000)).await.unwrap();
    drop(bodies);
    assert!(spool.bytes() == 0 && spool.shares().of_clients.is_empty());
}

/// Some file systems know no file without a name.
#[tokio::test]
async fn a_file_that_begins_with_a_name_leaves_none() {
    let folder = tempfile::tempdir().unwrap();
    let spool = Spool::new(folder.path(), 1 << 20, MEMORY, 4);
    spool.folder().unwrap();
    // A file that a process with this number left when it was killed.
    let left = folder.path().join(format!("body-{}-0", process::id()));
    std::fs::write(&left, "left").unwrap();
    let mut bodies = Vec::new();
    for _ in 0..2 {
        let mut spooled = spool.begin(CLIENT, &disks());
        let file = spool.open_named(&spool.folder().unwrap().directory).unwrap();
        let metadata = file.metadata().unwrap();
        assert_eq!((metadata.len(), metadata.permissions().mode() & 0o777), (0, 0o600));
        spooled.file = Some(Arc::new(file));
        spooled.push(&content(200_000)).await.unwrap();
        bodies.push(spooled);
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    for spooled in &mut bodies {
        assert!(all_of(spooled).await == content(200_000));
    }
}

use std::time::Duration;

use super::*;

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
    let spool = Spool::new(&folder.path().join("state"), 1 << 20, 4);
    for bytes in [0, 1, 65_535, 65_536, 65_537, 131_072, 200_001] {
        for piece_bytes in [1_000, 65_536, 150_000] {
            let body = content(bytes);
            let mut spooled = spool.begin(&disks());
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
    assert_eq!(spool.files.load(Ordering::Relaxed), 0);
    assert_eq!(std::fs::read_dir(folder.path().join("state")).unwrap().count(), 0);
}

#[tokio::test]
async fn what_all_bodies_take_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let spool = Spool::new(folder.path(), 100_000, 1);
    let mut first = spool.begin(&disks());
    first.push(&content(99_000)).await.unwrap();
    let mut second = spool.begin(&disks());
    assert!(matches!(second.push(&content(1_001)).await, Err(SpoolError::Full)));
    second.push(&content(1_000)).await.unwrap();
    drop(first);
    second.push(&content(99_000)).await.unwrap();
    // Files are bounded, too.
    spool.set_bytes_max(1 << 20);
    let mut third = spool.begin(&disks());
    assert!(matches!(third.push(&content(70_000)).await, Err(SpoolError::Full)));
    drop((second, third));
    assert_eq!((spool.bytes(), spool.files.load(Ordering::Relaxed)), (0, 0));
}

#[tokio::test]
async fn where_no_memory_is_left_short_bodies_are_in_files_too() {
    let folder = tempfile::tempdir().unwrap();
    let spool = Spool::new(folder.path(), 1 << 20, 4);
    spool.memory_bytes.store(ALL_MEMORY_BYTES_MAX - 10, Ordering::Relaxed);
    let mut spooled = spool.begin(&disks());
    for piece in content(100).chunks(8) {
        spooled.push(piece).await.unwrap();
    }
    assert!(spooled.file.is_some());
    assert_eq!(all_of(&mut spooled).await, content(100));
    drop(spooled);
    assert_eq!(spool.memory_bytes.load(Ordering::Relaxed), ALL_MEMORY_BYTES_MAX - 10);
}

#[tokio::test]
async fn a_folder_that_cannot_be_used_is_an_error_of_long_bodies_only() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let spool = Spool::new(&folder.path().join("file"), 1 << 20, 4);
    spool.open().unwrap_err();
    let mut spooled = spool.begin(&disks());
    spooled.push(&content(65_536)).await.unwrap();
    assert!(matches!(spooled.push(b"x").await, Err(SpoolError::Disk(_))));
    drop(spooled);
    assert_eq!((spool.bytes(), spool.files.load(Ordering::Relaxed)), (0, 0));
}

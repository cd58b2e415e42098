use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use kettle_kernel::transfer::{self, Wait};

use super::*;

const CLIENT: ClientHost = ClientHost::Ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
const MEMORY: usize = 16 << 20;
const PIECE: usize = 10_000;

fn flow(folder: &Path, bytes_max: u64, memory: usize, files: usize) -> (Arc<Spool>, Rc<SpoolFlow>) {
    let spool = Spool::new(folder, bytes_max, memory, files);
    let flow = spool.flow(CLIENT, &Disks::new(Duration::from_secs(10)));
    (spool, flow)
}

fn content(bytes: usize) -> Bytes {
    (0..bytes).map(|place| u8::try_from(place * 7 % 251).unwrap()).collect()
}

/// Stores pieces until one has no room, and says how many bytes were taken.
async fn fill(flow: &SpoolFlow, all: &Bytes) -> usize {
    for start in (0..all.len()).step_by(PIECE) {
        let piece = all.slice(start..all.len().min(start + PIECE));
        let mut push = std::pin::pin!(flow.push(piece));
        loop {
            let is_pushed = poll_fn(|context| Poll::Ready(push.as_mut().poll(context).is_ready()));
            if is_pushed.await {
                break;
            }
            if flow.is_full() {
                return start;
            }
            tokio::task::yield_now().await;
        }
    }
    all.len()
}

async fn next(flow: &SpoolFlow) -> Option<Vec<u8>> {
    match poll_fn(|context| flow.poll_next(context)).await {
        FlowNext::Memory(bytes) => Some(bytes),
        FlowNext::File(file, ByteRange { start, bytes }) => {
            let mut piece = vec![0; usize::try_from(bytes).unwrap()];
            let slices = &mut [io::IoSliceMut::new(&mut piece)];
            let read = transfer::read_at(file.file().as_fd(), slices, start, Wait::Allowed);
            piece.truncate(read.unwrap());
            flow.sent(piece.len() as u64);
            Some(piece)
        }
        FlowNext::End => None,
    }
}

async fn rest(flow: &SpoolFlow) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(piece) = next(flow).await {
        all.extend(piece);
    }
    all
}

fn taken(spool: &Spool) -> (u64, usize, usize) {
    (spool.bytes(), spool.files(), spool.memory_bytes.load(Ordering::Relaxed))
}

#[tokio::test]
async fn a_body_comes_out_as_it_went_in_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for bytes in [0, 1, BLOCK_BYTES, FLOW_MEMORY_BYTES_MAX, 3_000_001] {
        let (spool, flow) = flow(folder.path(), 64 << 20, MEMORY, 4);
        let all = content(bytes);
        assert_eq!(fill(&flow, &all).await, bytes);
        assert_eq!(spool.files(), usize::from(bytes > FLOW_MEMORY_BYTES_MAX), "{bytes}");
        assert!(taken(&spool).2 < FLOW_MEMORY_BYTES_MAX);
        flow.end();
        assert!(rest(&flow).await == all, "{bytes}");
        assert_eq!(taken(&spool), (0, 0, 0), "{bytes}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn what_was_sent_makes_room_and_a_file_that_is_over_is_not_written_again() {
    let folder = tempfile::tempdir().unwrap();
    let (spool, flow) = flow(folder.path(), 64 << 20, MEMORY, 4);
    let all = content(9_000_000);
    let mut out = Vec::new();
    let mut files = Vec::new();
    for start in (0..all.len()).step_by(3_000_000) {
        assert_eq!(fill(&flow, &all.slice(start..start + 3_000_000)).await, 3_000_000);
        let file = flow.state.borrow().file.as_ref().map(|it| Arc::clone(&it.file)).unwrap();
        assert!(files.iter().all(|earlier| !Arc::ptr_eq(earlier, &file)));
        files.push(file);
        while out.len() < start + 3_000_000 {
            out.extend(next(&flow).await.unwrap());
        }
        assert_eq!(taken(&spool), (0, 0, 0));
    }
    assert!(out == all);
}

/// One that is dropped in the middle gives all of it back.
#[tokio::test]
async fn all_flows_together_have_half_of_the_spool_and_each_goes_on_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let (spool, first) = flow(folder.path(), 8 << 20, MEMORY, 4);
    let second = spool.flow(CLIENT, &Disks::new(Duration::from_secs(10)));
    let all = content(8 << 20);
    let in_first = fill(&first, &all).await;
    // One client has at most half of what is for all responses.
    assert!((1_900_000..=(2 << 20) + BLOCK_BYTES).contains(&in_first), "{in_first}");
    let in_second = fill(&second, &all).await;
    assert!((BLOCK_BYTES - PIECE..=2 * BLOCK_BYTES).contains(&in_second), "{in_second}");
    assert!(spool.bytes() <= 4 << 20);
    drop(first);
    second.end();
    assert!(rest(&second).await.starts_with(&all[..in_second]));
    assert_eq!(taken(&spool), (0, 0, 0));
}

#[tokio::test]
async fn without_disk_or_memory_the_client_sets_the_speed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let all = content(5_000_000);
    for (folder, memory, files) in
        [(&*file, MEMORY, 4), (folder.path(), MEMORY, 0), (&file, 0, 4), (folder.path(), 0, 4)]
    {
        let (spool, flow) = flow(folder, 64 << 20, memory, files);
        let sending = async {
            for start in (0..all.len()).step_by(PIECE) {
                flow.push(all.slice(start..start + PIECE)).await;
            }
            flow.end();
        };
        let ((), out) = tokio::join!(sending, rest(&flow));
        assert!(out == all);
        assert_eq!(taken(&spool), (0, 0, 0));
    }
}

#[tokio::test]
async fn ten_thousand_that_wait_for_their_clients_stay_within_the_bounds_and_lose_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let memory_max = 4 << 20;
    let files_max = 64;
    let bytes_max = 8 << 20;
    let spool = Spool::new(folder.path(), bytes_max, memory_max, files_max);
    let disks = Disks::new(Duration::from_secs(60));
    let all = content(2 * BLOCK_BYTES);
    let tasks = tokio::task::LocalSet::new();
    let flows: Vec<Rc<SpoolFlow>> = (0..10_000_u32)
        .map(|number| {
            let client = ClientHost::Ip(IpAddr::V4((0x0a00_0000 + number).into()));
            let flow = spool.flow(client, &disks);
            let all = all.clone();
            let sending = Rc::clone(&flow);
            tasks.spawn_local(async move {
                sending.push(all).await;
                sending.end();
            });
            flow
        })
        .collect();
    let is_quiet = |flow: &Rc<SpoolFlow>| flow.is_full() || flow.state.borrow().has_ended;
    tasks
        .run_until(async {
            while !flows.iter().all(is_quiet) {
                tokio::task::yield_now().await;
            }
            let (bytes, files, memory) = taken(&spool);
            assert!(bytes <= bytes_max / 2 && files <= files_max / 2, "{bytes} {files}");
            assert!(memory <= memory_max && flows.iter().any(|it| it.is_full()), "{memory}");
            for flow in &flows {
                assert!(rest(flow).await == all);
            }
        })
        .await;
    drop(flows);
    assert_eq!(taken(&spool), (0, 0, 0));
}

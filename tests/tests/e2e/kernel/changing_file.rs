//! Files that change, or are not in memory, while they are sent.

use std::fs::File;

use kettle_tests::content::LARGE;
use rustix::fs::{Advice, fadvise};

use super::*;

#[test]
fn a_body_whose_file_was_truncated_ends_early_and_without_close_notify() {
    let kettle = Kettle::start(Setup::paths(paths_here()).without_memory());
    for (path, suite) in paths_and_versions() {
        kettle.folder.replace("www/large", content(LARGE));
        let mut client = Dialer::suite(suite).reading_slowly().connect(kettle.address_by(path));
        begin_download(&mut client);
        let file = File::options().write(true).open(kettle.folder.path("www/large")).unwrap();
        file.set_len(1 << 20).unwrap();

        assert_eq!(client.end(), End::Cut, "{path}");
        assert!(client.beyond().len() < LARGE, "{path}");
        assert!(!kettle.entry("/large").is_complete(), "{path}");
        let file = kettle.folder.path("www/large");
        let named = format!("file={file:?}");
        kettle.messages().wait_for(&named);
    }
    assert_eq!(kettle.status("/total/responses_truncated"), 2 * paths_here().len());
}

#[test]
fn the_head_of_a_file_that_was_emptied_arrives() {
    let sizes = [20_000, 20_001, 20_002, 20_003, 20_004];
    let setup = Setup::paths(paths_here()).sizes(&sizes).without_memory();
    let kettle = Kettle::start(setup.set("limits", "revalidate = \"1m\""));
    for (path, bytes) in paths_here().iter().zip(sizes) {
        let name = format!("/{bytes}");
        let mut client = kettle.connect_by(path, TLS13_AES_128);
        assert_same(&client.get(&name).body, &content(bytes), path);
        File::create(kettle.folder.path(&format!("www{name}"))).unwrap();
        client.send(&get(&name)).unwrap();
        assert_eq!(client.response_head().announced_bytes(), bytes, "{path}");
        assert_eq!(client.end(), End::Cut, "{path}");
    }
}

#[test]
fn a_file_replaced_by_another_is_sent_to_its_old_end() {
    let kettle = Kettle::start(
        Setup::paths(paths_here()).without_memory().set("limits", "revalidate = \"0s\""),
    );
    for path in paths_here() {
        kettle.folder.replace("www/large", content(LARGE));
        let address = kettle.address_by(path);
        let mut client = Dialer::suite(TLS13_AES_128).reading_slowly().connect(address);
        begin_download(&mut client);
        kettle.folder.replace("www/large", "the new content");

        assert_same(&client.receive_exactly(LARGE), &content(LARGE), path);
        assert_same(&client.get("/large").body, b"the new content", path);
    }
}

#[test]
fn a_file_that_is_not_in_the_page_cache_is_sent_all_the_same() {
    let sizes = [20_000, 3 << 20];
    let kettle = Kettle::start(Setup::paths(paths_here()).sizes(&sizes).without_memory());
    for path in paths_here() {
        let mut client = kettle.connect_by(path, TLS13_AES_128);
        for bytes in sizes {
            forget_content(&kettle, &format!("www/{bytes}"));
            assert_same(&client.get(&format!("/{bytes}")).body, &content(bytes), path);
        }
    }
}

/// All that is read of the file is counted: by sendfile, and by the thread that brings it back before.
#[test]
fn what_left_memory_while_a_client_took_nothing_is_brought_back_by_a_thread() {
    // So many are made sure of at once.
    const BYTES: usize = 1_000_000;
    let setup = Setup::path("kernel-sendfile").sizes(&[1, BYTES]).without_memory();
    let Some(kettle) = Kettle::start_in_kernel(setup.set("limits", "idle_timeout = \"1s\"")) else {
        return;
    };
    if rustix::fs::statfs(kettle.folder.path("www")).unwrap().f_type == TMPFS_MAGIC {
        return skip("what lies in tmpfs never leaves memory");
    }
    let begin = kettle.bytes_read();
    let dialer = Dialer::suite(TLS13_AES_128).reading_slowly().segments(1_400);
    let mut slow = dialer.connect(kettle.address());
    slow.send(&get(&format!("/{BYTES}"))).unwrap();
    assert_eq!(slow.response_head().announced_bytes(), BYTES);
    // The tick that ends this one has come after the file was looked at.
    let mut idle = kettle.connect(TLS13_AES_128);
    assert_same(&idle.get("/1").body, &content(1), "idle");
    assert_eq!(idle.end(), End::Orderly);
    forget_content(&kettle, &format!("www/{BYTES}"));
    let paused = kettle.bytes_read();
    let left_bytes = (BYTES as u64).saturating_sub(paused - begin);
    assert!(left_bytes > 300_000, "only {left_bytes} bytes wait for the client");
    assert_same(&slow.receive_exactly(BYTES), &content(BYTES), "slow");
    let read_bytes = kettle.bytes_read() - paused;
    // Without the thread it would be once. A page that shares a folio with one in the socket stays.
    assert!(read_bytes >= left_bytes / 4 * 5, "{read_bytes} bytes were read for {left_bytes}");
}

/// Takes a file out of the page cache.
fn forget_content(kettle: &Kettle, path: &str) {
    let file = File::open(kettle.folder.path(path)).unwrap();
    file.sync_all().unwrap();
    fadvise(&file, 0, None, Advice::DontNeed).unwrap();
}

/// Reads the head of a response that is too large for the buffers between server and client.
fn begin_download(client: &mut Client) {
    client.send(&get("/large")).unwrap();
    assert_eq!(client.response_head().announced_bytes(), LARGE);
}

/// The type of tmpfs in statfs(2).
const TMPFS_MAGIC: i64 = 0x0102_1994;

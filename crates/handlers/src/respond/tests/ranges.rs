//! RFC 9110 §14: some of a file's bytes, from memory and from disk alike.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use super::stage::{Server, Stage, set_modified};
use kettle_exchange::response::Body;

const BYTES: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// The same file twice: kept in memory, and too large for it.
fn servers() -> [Server; 2] {
    let in_memory = Stage::new().file("a.txt", BYTES).open();
    let mut on_disk = Stage::new().file("a.txt", BYTES);
    on_disk.config.limits.hot_file_bytes = 35;
    [in_memory, on_disk.open()]
}

#[tokio::test]
async fn one_range_gets_206_with_just_its_bytes() {
    for server in servers() {
        for (range, expected, content_range) in [
            ("bytes=0-0", "0", "bytes 0-0/36"),
            ("bytes=10-13", "abcd", "bytes 10-13/36"),
            ("bytes=33-", "xyz", "bytes 33-35/36"),
            ("bytes=-2", "yz", "bytes 34-35/36"),
            ("bytes=30-999", "uvwxyz", "bytes 30-35/36"),
        ] {
            let reply = server.get("/a.txt", &[&format!("Range: {range}")]).await;
            assert_eq!((reply.status, reply.text()), (206, expected), "{range}");
            assert_eq!(reply.header("content-range"), Some(content_range));
            assert_eq!(reply.header("content-length"), Some(&*expected.len().to_string()));
            assert_eq!(reply.header("content-type"), Some("text/plain; charset=utf-8"));
            assert!(reply.header("etag").is_some());
        }
    }
}

#[tokio::test]
async fn several_ranges_come_as_parts_in_the_order_asked_for() {
    for server in servers() {
        let reply = server.get("/a.txt", &["Range: bytes=-1,10-12,0-1"]).await;
        assert_eq!(reply.status, 206);
        assert_eq!(reply.header("content-length"), Some(&*reply.body.len().to_string()));
        assert_eq!(reply.header("content-range"), None);
        let boundary = reply
            .header("content-type")
            .and_then(|kind| kind.strip_prefix("multipart/byteranges; boundary="))
            .unwrap();
        let parts: Vec<&str> = reply.text().split(&format!("\r\n--{boundary}")).collect();
        assert_eq!(parts.len(), 5, "{}", reply.text());
        for (part, (content_range, bytes)) in parts[1..4].iter().zip([
            ("bytes 35-35/36", "z"),
            ("bytes 10-12/36", "abc"),
            ("bytes 0-1/36", "01"),
        ]) {
            let expected = format!(
                "\r\nContent-Type: text/plain; charset=utf-8\r\n\
                 Content-Range: {content_range}\r\n\r\n{bytes}"
            );
            assert_eq!(*part, expected);
        }
        assert_eq!(parts[4], "--\r\n");
    }
}

#[tokio::test]
async fn each_response_with_parts_has_its_own_boundary() {
    let [server, _] = servers();
    let fields = &["Range: bytes=0-1,10-12"];
    let first = server.get("/a.txt", fields).await;
    let second = server.get("/a.txt", fields).await;
    assert_ne!(first.header("content-type"), second.header("content-type"));
}

#[tokio::test]
async fn a_range_beyond_the_end_gets_416_with_the_length() {
    for server in servers() {
        let reply = server.get("/a.txt", &["Range: bytes=36-"]).await;
        assert_eq!(reply.status, 416);
        assert_eq!(reply.header("content-range"), Some("bytes */36"));
        let after = server.get("/a.txt", &[]).await;
        assert_eq!(after.body, BYTES, "the refusal leaves nothing behind");
    }
}

#[tokio::test]
async fn what_is_no_range_gets_the_whole_file() {
    for server in servers() {
        for range in ["bytes=2-1", "lines=0-1", "bytes", "bytes=x"] {
            let reply = server.get("/a.txt", &[&format!("Range: {range}")]).await;
            assert_eq!((reply.status, &*reply.body), (200, BYTES), "{range}");
        }
    }
}

/// Nobody has looked since, and the open file has the new bytes.
#[tokio::test]
async fn a_range_of_a_file_that_was_written_over_gets_the_whole_new_one() {
    for server in servers() {
        let etag = server.get("/a.txt", &[]).await.header("etag").unwrap().to_owned();
        let new: Vec<u8> = BYTES.iter().rev().copied().collect();
        fs::write(server.path("a.txt"), &new).unwrap();
        set_modified(&server.path("a.txt"), 784_111_777);
        let fields = ["Range: bytes=10-".to_owned(), format!("If-Range: {etag}")];
        let reply = server.get("/a.txt", &fields.each_ref().map(|it| it.as_str())).await;
        match reply.status {
            // The content in memory is the old one still, all of it.
            206 => assert_eq!((reply.header("etag"), &*reply.body), (Some(&*etag), &BYTES[10..])),
            status => {
                assert_eq!((status, &*reply.body), (200, &*new));
                assert_ne!(reply.header("etag"), Some(&*etag));
            }
        }
    }
}

#[tokio::test]
async fn a_range_of_an_older_file_gets_the_whole_new_one() {
    for server in servers() {
        let etag = server.get("/a.txt", &[]).await.header("etag").unwrap().to_owned();
        let fields = |tag: &str| ["Range: bytes=0-1".to_owned(), format!("If-Range: {tag}")];
        for (tag, status) in [(etag.as_str(), 206), ("\"old\"", 200), ("W/\"weak\"", 200)] {
            let [range, if_range] = fields(tag);
            let reply = server.get("/a.txt", &[&range, &if_range]).await;
            assert_eq!(reply.status, status, "{tag}");
        }
    }
}

#[tokio::test]
async fn a_date_that_a_program_set_proves_nothing() {
    for server in servers() {
        let part = async || {
            let modified =
                server.get("/a.txt", &[]).await.header("last-modified").unwrap().to_owned();
            let if_range = format!("If-Range: {modified}");
            server.get("/a.txt", &["Range: bytes=0-1", &if_range]).await.status
        };
        assert_eq!(part().await, 206, "the kernel set it");
        set_modified(&server.path("a.txt"), 784_111_777);
        server.clock.pass(Duration::from_secs(60));
        assert_eq!(part().await, 200);
    }
}

/// As in Nix's store and in reproducible images: each file has the same time.
#[tokio::test]
async fn a_download_is_not_resumed_with_other_content_of_the_same_time() {
    for server in servers() {
        let path = server.path("a.txt");
        set_modified(&path, 1);
        server.clock.pass(Duration::from_secs(60));
        let first = server.get("/a.txt", &[]).await;
        let tag = first.header("etag").unwrap().to_owned();
        assert_eq!(first.header("last-modified"), None, "it is no time");
        let changed = || fs::metadata(&path).unwrap().ctime_nsec();
        let before = changed();
        fs::write(&path, vec![b'x'; BYTES.len()]).unwrap();
        set_modified(&path, 1);
        // The kernel's own time goes by ticks.
        while changed() == before {
            set_modified(&path, 1);
        }
        server.clock.pass(Duration::from_secs(60));
        let none_match = format!("If-None-Match: {tag}");
        let if_range = format!("If-Range: {tag}");
        assert_eq!(server.get("/a.txt", &[&none_match]).await.status, 200);
        assert_eq!(server.get("/a.txt", &["Range: bytes=1-", &if_range]).await.status, 200);
        let date = "Thu, 01 Jan 1970 00:00:01 GMT";
        let since = format!("If-Modified-Since: {date}");
        let if_range = format!("If-Range: {date}");
        assert_eq!(server.get("/a.txt", &[&since]).await.status, 200);
        assert_eq!(server.get("/a.txt", &["Range: bytes=1-", &if_range]).await.status, 200);
    }
}

#[tokio::test]
async fn a_range_from_the_beginning_of_an_empty_file_gets_all_of_it() {
    let server = Stage::new().file("empty", "").open();
    for (range, status) in [("bytes=0-", 200), ("bytes=0-99", 200), ("bytes=1-", 416)] {
        let reply = server.get("/empty", &[&format!("Range: {range}")]).await;
        assert_eq!(reply.status, status, "{range}");
    }
}

#[tokio::test]
async fn head_ignores_ranges() {
    for server in servers() {
        let reply = server.ask("HEAD", "/a.txt", &["Range: bytes=0-1"]).await;
        assert_eq!(reply.status, 200);
        assert_eq!(reply.header("content-length"), Some("36"));
        assert!(matches!(reply.raw, Body::Empty));
    }
}

#[tokio::test]
async fn a_range_of_a_file_on_disk_stays_there() {
    let [_, server] = servers();
    let reply = server.get("/a.txt", &["Range: bytes=10-13"]).await;
    let Body::File { span, .. } = reply.raw else { panic!("not from the file") };
    assert_eq!((span.start, span.bytes), (10, 4));
}

//! Parts of files, by every path: their borders lie within records, on them and across.

use super::*;

#[test]
fn one_range_is_sent_by_every_path() {
    let kettle = Kettle::start(Setup::paths(paths_here()).sizes(&[BYTES]).without_memory());
    let content = content(BYTES);
    for path in paths_here() {
        let mut client = kettle.connect_by(path, TLS13_AES_128);
        for (range, start, end) in [
            ("0-0", 0, 1),
            ("0-16383", 0, 16_384),
            ("16383-16384", 16_383, 16_385),
            ("16384-32767", 16_384, 32_768),
            ("1-199998", 1, 199_999),
            ("65535-131072", 65_535, 131_073),
            ("199999-", 199_999, BYTES),
            ("-1", BYTES - 1, BYTES),
            ("-100000", 100_000, BYTES),
            ("150000-999999999", 150_000, BYTES),
        ] {
            let response = ask(&mut client, range);
            assert_eq!(response.status, 206, "{range}");
            let expected = format!("bytes {start}-{}/{BYTES}", end - 1);
            assert_eq!(response.header("content-range"), Some(expected.as_str()));
            assert_same(&response.body, &content[start..end], &format!("{path} {range}"));
        }
    }
}

#[test]
fn several_ranges_are_sent_by_every_path() {
    let kettle = Kettle::start(Setup::paths(paths_here()).sizes(&[BYTES]).without_memory());
    let content = content(BYTES);
    for path in paths_here() {
        let mut client = kettle.connect_by(path, TLS13_AES_128);
        let response = ask(&mut client, "0-9,16380-16390,50000-149999,-1");
        assert_eq!(response.status, 206);
        let content_type = response.header("content-type").unwrap();
        let boundary = content_type.strip_prefix("multipart/byteranges; boundary=").unwrap();
        let expected = [(0, 10), (16_380, 16_391), (50_000, 150_000), (BYTES - 1, BYTES)];
        let mut rest = response.body.as_slice();
        for (start, end) in expected {
            let head = take_until(&mut rest, b"\r\n\r\n");
            assert!(head.contains(&format!("--{boundary}\r\n")), "{head}");
            let range = format!("bytes {start}-{}/{BYTES}", end - 1);
            assert!(head.to_lowercase().contains(&format!("content-range: {range}")), "{head}");
            let (part, after) = rest.split_at(end - start);
            assert_same(part, &content[start..end], path);
            rest = after;
        }
        assert_eq!(rest, format!("\r\n--{boundary}--\r\n").as_bytes());
    }
}

fn ask(client: &mut Client, range: &str) -> Response {
    client.exchange(&request("GET", TARGET, &format!("Range: bytes={range}\r\n")))
}

fn take_until(rest: &mut &[u8], end: &[u8]) -> String {
    let position = rest.windows(end.len()).position(|window| window == end).unwrap() + end.len();
    let (taken, after) = rest.split_at(position);
    *rest = after;
    String::from_utf8(taken.to_vec()).unwrap()
}

const BYTES: usize = 200_000;
const TARGET: &str = "/200000";

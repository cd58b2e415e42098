//! The headers that proxies write of the clients that they speak for: nothing that stands in front of it changes how the end is
//! read.

#![no_main]

use std::fmt::Debug;
use std::net::IpAddr;

use kettle_http::forwarded::{Node, Scheme, forwarded, listed};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((at, text)) = data.split_first() else { return };
    let (front, end) = text.split_at(text.len().min(usize::from(*at)));
    begins_with(listed(&[front, end]), listed(&[end]));
    begins_with(forwarded(&[front, end]), forwarded(&[end]));
    // The same in one line, as a proxy appends to what a client has sent.
    let appended = [front, b",", end].concat();
    begins_with(listed(&[&appended]), listed(&[end]));
    begins_with(forwarded(&[&appended]), forwarded(&[end]));
    for node in listed(&[text]).chain(forwarded(&[text]).map(|(node, _)| node)) {
        assert_eq!(Node::parse(written(node).as_bytes()), Some(node));
    }
    if let Some(scheme) = Scheme::parse(text) {
        assert_eq!(Scheme::parse(scheme.as_str().as_bytes()), Some(scheme));
    }
});

fn begins_with<T: PartialEq + Debug>(all: impl Iterator<Item = T>, first: impl Iterator<Item = T>) {
    let first: Vec<T> = first.collect();
    let all: Vec<T> = all.take(first.len()).collect();
    assert_eq!(all, first);
}

fn written(node: Node) -> String {
    match (node.address, node.port) {
        (address, None) => address.to_string(),
        (IpAddr::V4(address), Some(port)) => format!("{address}:{port}"),
        (IpAddr::V6(address), Some(port)) => format!("[{address}]:{port}"),
    }
}

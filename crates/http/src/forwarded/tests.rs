use super::*;

fn node(text: &str) -> Option<(String, Option<u16>)> {
    Node::parse(text.as_bytes()).map(|node| (node.address.to_string(), node.port))
}

#[test]
fn addresses_are_read_with_and_without_a_port() {
    for (text, address, port) in [
        ("192.0.2.1", "192.0.2.1", None),
        (" 192.0.2.1\t", "192.0.2.1", None),
        ("192.0.2.1:567", "192.0.2.1", Some(567)),
        ("192.0.2.1:0", "192.0.2.1", None),
        ("2001:DB8::1", "2001:db8::1", None),
        ("[2001:db8::1]", "2001:db8::1", None),
        ("[::1]:1", "::1", Some(1)),
        ("::ffff:192.0.2.1", "192.0.2.1", None),
        ("[::ffff:192.0.2.1]:9", "192.0.2.1", Some(9)),
    ] {
        assert_eq!(node(text), Some((address.to_owned(), port)), "{text}");
    }
    for text in [
        "",
        "unknown",
        "_hidden",
        "192.0.2",
        "192.0.2.1:",
        "192.0.2.1:65536",
        "192.0.2.1:+1",
        "192.0.2.1:1:2",
        "[::1",
        "[::1]1",
        "[::1]:",
        "[192.0.2.1]",
        "fe80::1%eth0",
        "192.0.2.1 192.0.2.2",
        "a.example",
        "192.0.2.01",
        "\u{e4}",
    ] {
        assert_eq!(node(text), None, "{text}");
    }
    assert_eq!(Node::parse(&[b'1'; 100_000]), None);
    assert_eq!(Node::parse(b"\xff"), None);
}

fn addresses<'n>(nodes: impl Iterator<Item = Node> + 'n) -> Vec<String> {
    nodes.map(|node| node.address.to_string()).collect()
}

#[test]
fn lists_are_read_from_their_end() {
    for (lines, expected) in [
        (&["1.1.1.1, 2.2.2.2"][..], &["2.2.2.2", "1.1.1.1"][..]),
        (&["1.1.1.1", "2.2.2.2:9,3.3.3.3"], &["3.3.3.3", "2.2.2.2", "1.1.1.1"]),
        (&["1.1.1.1,, ,2.2.2.2,"], &["2.2.2.2", "1.1.1.1"]),
        (&["1.1.1.1, unknown, 2.2.2.2"], &["2.2.2.2"]),
        (&["1.1.1.1", "x"], &[]),
        (&[""], &[]),
        (&[], &[]),
    ] {
        let lines: Vec<_> = lines.iter().map(|line| line.as_bytes()).collect();
        assert_eq!(addresses(listed(&lines)), expected, "{lines:?}");
    }
}

#[test]
fn elements_of_forwarded_are_read_from_their_end() {
    for (lines, expected) in [
        (&["for=1.1.1.1, for=2.2.2.2;proto=http"][..], &["2.2.2.2", "1.1.1.1"][..]),
        (&["For=\"[2001:db8::1]:47\" ; Proto=https;by=3.3.3.3"], &["2001:db8::1"]),
        (&["for=1.1.1.1", "for=\"2.2.2.2:9\""], &["2.2.2.2", "1.1.1.1"]),
        // Nobody in front reaches into what the last one says.
        (&["for=\", for=2.2.2.2"], &["2.2.2.2"]),
        (&["for=1.1.1.1, x=\"for=6.6.6.6\", for=2.2.2.2"], &["2.2.2.2"]),
        (&["host=\"a;for=6.6.6.6;b\";for=2.2.2.2"], &["2.2.2.2"]),
        (&["host=\"a, for=6.6.6.6\";for=2.2.2.2"], &["2.2.2.2"]),
        (&["host=\"a\\\";for=6.6.6.6\";for=2.2.2.2"], &[]),
        (&["for=1.1.1.1, for=3.3.3.3;host=\"a\", for=2.2.2.2"], &["2.2.2.2", "3.3.3.3", "1.1.1.1"]),
        // Nor does a name that is none have a quote, by which it would.
        (&["for=1.1.1.1;a\"b=c"], &[]),
        (&["for=1.1.1.1;for=2.2.2.2"], &[]),
        (&["proto=https"], &[]),
        (&["for=_hidden"], &[]),
        (&["for=unknown, for=2.2.2.2"], &["2.2.2.2"]),
        (&["for"], &[]),
        (&[" , ,"], &[]),
    ] {
        let lines: Vec<_> = lines.iter().map(|line| line.as_bytes()).collect();
        let nodes = forwarded(&lines).map(|(node, _)| node);
        assert_eq!(addresses(nodes), expected, "{lines:?}");
    }
    let scheme = |line: &str| forwarded(&[line.as_bytes()]).next().and_then(|(_, scheme)| scheme);
    assert_eq!(scheme("for=1.1.1.1;proto=HTTP"), Some(Scheme::Http));
    assert_eq!(scheme("for=1.1.1.1;proto=\"https\""), Some(Scheme::Https));
    assert_eq!(scheme("for=1.1.1.1;proto=gopher"), None);
    assert_eq!(scheme("for=1.1.1.1"), None);
    let told = [Scheme::Https, Scheme::Http].map(|it| (it.as_str(), it.usual_port()));
    assert_eq!(told, [("https", "443"), ("http", "80")]);
}

proptest::proptest! {
    /// Whatever is in front, the element of the last proxy is read as it stands.
    #[test]
    fn what_is_in_front_of_the_last_element_changes_nothing_of_it(front in "[ -~]{0,40}") {
        let line = format!("{front}, for=192.0.2.9;proto=http");
        let last = forwarded(&[line.as_bytes()]).next();
        let node = Node { address: [192, 0, 2, 9].into(), port: None };
        assert_eq!(last, Some((node, Some(Scheme::Http))));
        let line = format!("{front}, 192.0.2.9");
        assert_eq!(listed(&[line.as_bytes()]).next(), Some(node));
    }
}

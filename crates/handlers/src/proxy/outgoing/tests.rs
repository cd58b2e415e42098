mod mutated;

use kettle_config::{BackendHost, FieldTemplate};
use kettle_http::HeadLimits;
use kettle_http::h1::framing::body_framing;
use kettle_http::h1::parse::{ParseRequest, parse_request};
use kettle_runtime::access_log::RequestId;
use kettle_tls::stream::Received;
use kettle_upstream::Upstream;
use kettle_upstream::backend::Backends;

use super::*;
use crate::words::WordSource;

fn route(change: impl FnOnce(&mut kettle_config::Route)) -> ProxyRoute {
    route_of(&[], change)
}

fn route_of(names: &[&str], change: impl FnOnce(&mut kettle_config::Route)) -> ProxyRoute {
    let backends = Backends::new(&[kettle_config::Backend::default()], None);
    let backend = backends.iter().next().unwrap();
    let upstream = std::sync::Arc::new(Upstream::new(std::sync::Arc::clone(backend), None));
    let mut route = kettle_config::Route::default();
    change(&mut route);
    let names = names.iter().map(|name| kettle_config::Located::not_written((*name).to_owned()));
    let mut site = kettle_config::Site { names: names.collect(), ..kettle_config::Site::default() };
    site.compile_patterns();
    let asks_certificates = site.client_auth.is_some();
    let words = WordSource { asks_certificates, ..WordSource::default() };
    ProxyRoute::new(&site, &route, upstream, words)
}

/// The operator's fields for servers.
fn own(fields: &[(&str, &[&str])]) -> Vec<(String, Vec<FieldTemplate>)> {
    let read = |value: &&str| FieldTemplate::parse(value).unwrap();
    let field =
        |(name, values): &(&str, &[&str])| ((*name).to_owned(), values.iter().map(read).collect());
    fields.iter().map(field).collect()
}

fn head_of(request: &str) -> Option<Box<Head>> {
    let bytes = request.as_bytes().to_vec();
    let Ok(ParseRequest::Complete { head, .. }) = parse_request(&bytes, &HeadLimits::default())
    else {
        return None;
    };
    body_framing(&head).ok()?;
    Some(Box::new(head.moved_to(()).moved_to(Received::from(bytes.clone()))))
}

/// Returns what a server gets for a request; nothing where that is refused before anybody is asked.
fn written(route: &ProxyRoute, request: &str, upgrade: Option<&[u8]>) -> Option<String> {
    let mut client = Client::from("2001:db8::1".parse::<IpAddr>().unwrap());
    client.request_id = RequestId::said(b"abc-1").unwrap();
    written_for(client, route, request, upgrade)
}

fn written_for(
    client: Client,
    route: &ProxyRoute,
    request: &str,
    upgrade: Option<&[u8]>,
) -> Option<String> {
    let head = head_of(request)?;
    let path = head.target().ok()?.path.to_owned();
    let mut request = Request::without_body(head, Some("sni.example"));
    request.client = &client;
    let outgoing = route.outgoing(Some(&path), &request, upgrade.is_some(), false)?;
    Some(String::from_utf8(outgoing.head().to_vec()).unwrap())
}

fn target_of(target: &str) -> Option<String> {
    target_by(&route(|_| {}), target)
}

fn target_by(route: &ProxyRoute, target: &str) -> Option<String> {
    let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
    let head = written(route, &request, None)?;
    head.strip_prefix("GET ")?.split_once(" HTTP/1.1\r\n").map(|(target, _)| target.to_owned())
}

#[test]
fn a_request_is_written_anew_and_says_who_asks() {
    let request = "POST /a%20b?c=d HTTP/1.1\r\nHost: WWW.Example:8443\r\nAccept: */*\r\n\r\n";
    assert_eq!(
        written(&route(|_| {}), request, None).unwrap(),
        "POST /a%20b?c=d HTTP/1.1\r\nhost: www.example:8443\r\nAccept: */*\r\n\
         x-forwarded-host: www.example:8443\r\n\
         forwarded: for=\"[2001:db8::1]\";proto=https;host=\"www.example:8443\"\r\n\
         x-forwarded-for: 2001:db8::1\r\nx-forwarded-proto: https\r\n\
         x-request-id: abc-1\r\ncontent-length: 0\r\n\r\n"
    );
}

#[test]
fn what_is_for_one_hop_and_what_only_a_proxy_knows_is_not_passed_on() {
    let request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: X-Named, keep-alive\r\nX-Named: 1\r\n\
        Keep-Alive: 5\r\nTE: trailers\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\nProxy-Connection: x\r\n\
        Proxy-Authorization: Basic x\r\nProxy: http://evil\r\nX-Forwarded-For: 1.2.3.4\r\n\
        X.Forwarded-For: 1.2.3.4\r\nX-Real.IP: 1.2.3.4\r\nX-Real|IP: 1.2.3.4\r\nClient-Cert: :AA==:\r\nclient-cert-chain: :AA==:\r\n\
        x-forwarded-anything: 1\r\nForwarded: for=1.2.3.4\r\nX-Real-IP: 1.2.3.4\r\nX_Under: 1\r\n\
        Expect: 100-continue\r\nEarly-Data: 1\r\nTrailer: x\r\nX-Other: 1\r\n\r\n";
    let head = written(&route(|_| {}), request, None).unwrap();
    assert!(!head.contains("1.2.3.4"), "{head}");
    let names: Vec<_> = head.lines().skip(1).filter_map(|line| line.split_once(':')).collect();
    let names: Vec<_> = names.into_iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
    let ours =
        ["x-forwarded-host", "forwarded", "x-forwarded-for", "x-forwarded-proto", "x-request-id"];
    // That the client takes trailers is true of us too.
    assert_eq!(names, [&["host", "x-other"], &ours[..], &["connection", "te"]].concat());
    assert!(head.ends_with("connection: te\r\nte: trailers\r\n\r\n"), "{head}");
}

#[test]
fn paths_are_those_that_the_route_was_chosen_by() {
    for (asked, written) in [
        ("/", "/"),
        ("/a;b=c/@:x", "/a;b=c/@:x"),
        ("/a%3Bb%c3%a4", "/a%3Bb%c3%a4"),
        ("/a//b/../c", "/a/c"),
        ("/a//b:c;d=e", "/a//b:c;d=e"),
        ("//a///?b", "/a///?b"),
        ("/a/./b:c;d=e%7e", "/a/b:c;d=e%7e"),
        ("https://x.example//a", "/a"),
        ("/./a%20b", "/a%20b"),
        ("https://x.example/a;b?c", "/a;b?c"),
        ("https://x.example?b", "/?b"),
        ("/a?b=%0d%0a//../", "/a?b=%0d%0a//../"),
        // Where the route takes them.
        ("/@scope%2fname?v=1", "/@scope%2fname?v=1"),
        ("https://x.example/a%2Fb", "/a%2Fb"),
        ("/a%252Fb", "/a%252Fb"),
        ("/x/../a%2Fb", "/a%2Fb"),
        ("https://x.example//a%2Fb", "/a%2Fb"),
    ] {
        assert_eq!(target_of(asked).as_deref(), Some(written), "{asked}");
    }
    for refused in ["/a%00", "/%2e%2e/a", "/..", "/a%0d%0ab", "/a\\b", "/%zz"] {
        assert_eq!(target_of(refused), None, "{refused}");
    }
}

#[test]
fn slashes_in_a_row_come_as_they_were_sent_behind_the_prefix() {
    let written =
        |prefix: &str, target| target_by(&route(|it| it.prefix = Some(prefix.to_owned())), target);
    for (prefix, asked, expected) in [
        ("/", "//admin//a", "/admin//a"),
        ("/a", "/a//b", "/a//b"),
        ("/a/", "//a//b", "/a//b"),
        ("/a/b", "/a//b//c", "/a/b//c"),
        ("/a/b", "///a///b", "/a/b"),
        ("/a/b", "https://x.example//a//b//?c", "/a/b//?c"),
    ] {
        assert_eq!(written(prefix, asked).as_deref(), Some(expected), "{prefix} {asked}");
    }
}

#[test]
fn operators_say_host_and_fields() {
    let route = route(|route| {
        route.backend_host = Some(BackendHost::Fixed("app.internal:81".to_owned()));
        route.request_headers = own(&[("X-Team", &["blue"])]);
    });
    let request = "GET / HTTP/1.1\r\nHost: a\r\nx-team: red\r\n\r\n";
    let head = written(&route, request, None).unwrap();
    assert!(head.contains("host: app.internal:81\r\n") && head.contains("X-Team: blue\r\n"));
    assert!(!head.contains("red") && head.contains("x-forwarded-host: a\r\n"), "{head}");
}

#[test]
fn what_an_operator_says_with_an_underscore_no_client_says_with_a_hyphen() {
    let route = route(|route| {
        route.request_headers = own(&[("X_User", &["nobody"]), ("Client-Cert", &[":AA==:"])]);
    });
    let request = "GET / HTTP/1.1\r\nHost: a\r\nX-User: root\r\nClient-Cert: :BB==:\r\n\r\n";
    let head = written(&route, request, None).unwrap();
    assert!(head.contains("X_User: nobody\r\n") && head.contains("Client-Cert: :AA==:\r\n"));
    assert!(!head.contains("root") && !head.contains("BB"), "{head}");
    let trailers = "x-user: root\r\nx-sum: 1\r\n";
    let head = head_of(request).unwrap();
    assert_eq!(
        route.request_trailers(&head, &Client::default()).passed_on(trailers.as_bytes()),
        b"x-sum: 1\r\n"
    );
}

/// The field is nobody's word where its client did not come by a trusted proxy: not in a head, and not behind a body.
#[test]
fn what_proxies_name_clients_by_no_client_says_in_a_trailer() {
    let text = "[[listener]]\naddress = \"127.0.0.1:443\"\ntrusted_proxies = [\"10.0.0.0/8\"]\n\
        client_ip_header = \"CF-Connecting-IP\"\n[[site]]\nnames = [\"a\"]\nself_signed = true\n[[site.route]]\nroot = \"/srv\"\n";
    let config = kettle_config::parse(text, std::path::Path::new("kettle.toml")).unwrap();
    let lines = "CF-Connecting-IP: 6.6.6.6\r\nConnection: x\r\n";
    let head = head_of(&format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n")).unwrap();
    for (peer, is_named) in [("192.0.2.1:5000", false), ("10.0.0.1:5000", true)] {
        let client = Client::of(
            &head,
            peer.parse::<std::net::SocketAddr>().unwrap().into(),
            config.listeners.first(),
        );
        let filter = route(|_| {}).request_trailers(&head, &client);
        let trailers = "cf-connecting-ip: 6.6.6.6\r\ncf_connecting_ip: 6.6.6.6\r\nx-sum: 1\r\n";
        assert_eq!(filter.passed_on(trailers.as_bytes()), b"x-sum: 1\r\n", "{peer}");
        assert_eq!(client.naming_field().is_some(), is_named);
        let request = format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
        let written = written_for(client, &route(|_| {}), &request, None).unwrap();
        assert_eq!(written.contains("6.6.6.6"), is_named, "{written}");
    }
}

#[test]
fn who_names_no_host_asks_for_that_of_the_connection() {
    let head = written(&route(|_| {}), "GET / HTTP/1.0\r\n\r\n", None).unwrap();
    assert!(head.starts_with("GET / HTTP/1.1\r\nhost: sni.example\r\n"), "{head}");
}

#[test]
fn an_upgrade_is_passed_on_only_where_it_was_allowed() {
    let request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
        Sec-WebSocket-Key: x\r\n\r\n";
    let head = written(&route(|_| {}), request, Some(b"websocket")).unwrap();
    assert!(head.contains("connection: upgrade\r\nupgrade: websocket\r\n"), "{head}");
    let head = written(&route(|_| {}), request, None).unwrap();
    assert!(!head.to_ascii_lowercase().contains("upgrade"), "{head}");
}

proptest::proptest! {
    /// A server that merges no slashes finds the prefix that the guard was asked of, and none takes a segment for a host.
    #[test]
    fn a_path_is_of_one_route_however_its_slashes_are_read(
        raw in "/{1,3}([ab]/{1,3}|\\./|\\.\\./){0,5}[ab]?",
        prefixes in proptest::sample::subsequence(vec!["/a", "/b", "/a/b", "/a/b/a", "/b/b"], 0..5),
    ) {
        let longest = |path: &str| {
            let is_of = |prefix: &&&str| {
                path.strip_prefix(**prefix).is_some_and(|it| it.is_empty() || it.starts_with('/'))
            };
            prefixes.iter().filter(is_of).max_by_key(|prefix| prefix.len()).copied()
        };
        let request = format!("GET {raw} HTTP/1.1\r\nHost: a\r\n\r\n");
        let head = head_of(&request).unwrap();
        let Ok(decided) = head.target() else { return Ok(()) };
        let prefix = longest(decided.path);
        let route = route(|route| route.prefix = Some(prefix.unwrap_or("/").to_owned()));
        let passed = target_by(&route, &raw).unwrap();
        proptest::prop_assert_eq!(longest(&passed), prefix, "{} {}", raw, passed);
        proptest::prop_assert!(!passed.starts_with("//"), "{} {}", raw, passed);
    }

    /// Whatever is accepted of a client is one request to a server, with one host and without what it says of others.
    #[test]
    fn what_is_written_is_exactly_one_request(
        method in "[A-Z]{1,8}|GET|POST",
        path in "/[a-z%0-9/.;=~|{}\"<>^`-]{0,12}(\\?[!-~]{0,8})?",
        lines in proptest::collection::vec(
            "([A-Za-z_-]{1,12}|Connection|Host|TE|Transfer-Encoding|Content-Length|X-Forwarded-For|Upgrade):\
             [ \t]?[ -~\t\u{e4}]{0,12}",
            0..6,
        ),
    ) {
        let lines: String = lines.iter().map(|line| format!("{line}\r\n")).collect();
        let request = format!("{method} {path} HTTP/1.1\r\nHost: a.example\r\n{lines}\r\n");
        if let Some(written) = written(&route(|_| {}), &request, None) {
            let parsed = parse_request(written.as_bytes(), &HeadLimits::default());
            let Ok(ParseRequest::Complete { head, bytes }) = parsed else {
                panic!("{written:?} is no request")
            };
            assert_eq!(bytes, written.len(), "{written:?}");
            assert_eq!(head.host(), Some("a.example"));
            assert_eq!(head.method().as_str(), method);
            assert_eq!(head.header_values("x-forwarded-for").count(), 1);
            assert!(head.headers().all(|(name, _)| !head.hop_by_hop().has(name)), "{written:?}");
            assert!(head.headers().all(|(name, _)| !name.contains(&b'_')), "{written:?}");
        }
    }
}

#[test]
fn a_name_that_the_site_does_not_have_reaches_no_server() {
    for (names, asked, host) in [
        (&["*.b.example", "A.example.", "c.example"][..], "a.example:8443", "a.example:8443"),
        (&["*.b.example", "A.example.", "c.example"], "X.b.example", "x.b.example"),
        (&["*.b.example", "A.example.", "c.example"], "x.y.b.example", "a.example"),
        (&["*.b.example", "A.example.", "c.example"], "b.example:99", "a.example"),
        (&["*.b.example", "A.example.", "c.example"], "evil.example:99", "a.example"),
        (&["a.example", "**.b.example"], "x.y.B.example:1", "x.y.b.example:1"),
        (&["a.example", "**.b.example"], "x.b.example", "x.b.example"),
        (&["a.example", "**.b.example"], "b.example", "a.example"),
        (&["a.example", "**.b.example"], "xb.example", "a.example"),
        (&["d.*", r"~^e\d\.f$", "a.example"], "d.co.uk:99", "d.co.uk:99"),
        (&["d.*", r"~^e\d\.f$", "a.example"], "d", "a.example"),
        (&["d.*", r"~^e\d\.f$", "a.example"], "E7.f", "e7.f"),
        (&["d.*", r"~^e\d\.f$", "a.example"], "e77.f", "a.example"),
        (&[r"~^e\d\.f$"], "any.example", "any.example"),
        (&["_", "a.example"], "evil.example", "a.example"),
        (&["_"], "any.example:99", "any.example:99"),
    ] {
        let request = format!("GET / HTTP/1.1\r\nHost: {asked}\r\n\r\n");
        let head = written(&route_of(names, |_| {}), &request, None).unwrap();
        assert!(head.contains(&format!("\r\nhost: {host}\r\n")), "{asked}: {head}");
        assert!(head.contains(&format!("\r\nx-forwarded-host: {host}\r\n")), "{asked}: {head}");
        assert!(head.contains(&format!(";host=\"{host}\"\r\n")), "{asked}: {head}");
    }
    let request = "GET / HTTP/1.0\r\n\r\n";
    let head = written(&route_of(&["a.example"], |_| {}), request, None).unwrap();
    assert!(head.contains("\r\nhost: a.example\r\n"), "{head}");
}

#[test]
fn what_the_operator_says_of_the_client_is_said_once() {
    let route = route(|route| {
        route.request_headers =
            own(&[("X-Forwarded-Proto", &["http"]), ("FORWARDED", &["for=unknown"])]);
    });
    let head = written(&route, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", None).unwrap();
    let head = head.to_ascii_lowercase();
    assert_eq!(head.matches("x-forwarded-proto: ").count(), 1, "{head}");
    assert_eq!(head.matches("\r\nforwarded: ").count(), 1, "{head}");
    assert!(head.contains("x-forwarded-for: 2001:db8::1\r\n"), "{head}");
}

#[test]
fn work_for_options_of_the_connection_has_a_bound() {
    for (members, is_passed_on) in [(32, true), (33, false)] {
        let options = vec!["a"; members].join(",");
        let request = format!("GET / HTTP/1.1\r\nHost: a\r\nConnection: {options}\r\n\r\n");
        assert_eq!(written(&route(|_| {}), &request, None).is_some(), is_passed_on);
    }
}

#[test]
fn words_say_of_a_request_what_no_client_can_say_itself() {
    let route = route(|route| {
        route.request_headers = own(&[
            ("X-Client", &["{client_ip}", "{client_port}"]),
            ("X-URL", &["{scheme}://{host}:{port}{uri}"]),
            ("X-Subject", &["{client_subject}"]),
            ("X-Gone", &[]),
        ]);
    });
    let request = "GET /a%3Bb?c=d HTTP/1.1\r\nHost: A.example:8443\r\nX-Subject: root\r\nX_Client: 6.6.6.6\r\n\
        X-GONE: 1\r\nx-url: evil\r\nX-Other: 1\r\n\r\n";
    let head = written(&route, request, None).unwrap();
    for line in ["X-Client: 2001:db8::1", "X-URL: https://a.example:8443/a%3Bb?c=d", "X-Other: 1"] {
        assert!(head.contains(&format!("\r\n{line}\r\n")), "{line}: {head}");
    }
    let lower = head.to_ascii_lowercase();
    for gone in ["x-subject", "x-gone", "6.6.6.6", "evil"] {
        assert!(!lower.contains(gone), "{gone}: {head}");
    }
    assert_eq!(lower.matches("x-client: ").count(), 1, "one of both has no value: {head}");
}

#[test]
fn the_chain_that_is_believed_is_kept_and_the_peer_added() {
    let mut client = Client::from(IpAddr::from([192, 0, 2, 1]));
    client.scheme = kettle_http::forwarded::Scheme::Http;
    client.proxies = ["fd00::2", "10.0.0.1"].map(|it| ClientHost::Ip(it.parse().unwrap())).to_vec();
    let request = "GET / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 6.6.6.6, 192.0.2.1, fd00::2\r\n\
        Forwarded: for=6.6.6.6\r\nX-Forwarded-Proto: https\r\n\r\n";
    let head = written_for(client, &route(|_| {}), request, None).unwrap();
    assert!(!head.contains("6.6.6.6"), "{head}");
    for line in [
        "x-forwarded-for: 192.0.2.1, fd00::2, 10.0.0.1",
        "forwarded: for=192.0.2.1;proto=http;host=\"a\", for=\"[fd00::2]\", for=10.0.0.1",
        "x-forwarded-proto: http",
    ] {
        assert!(head.contains(&format!("\r\n{line}\r\n")), "{line}: {head}");
    }
}

#[test]
fn a_request_is_named_where_its_client_does_not_name_it() {
    let plain = route(|_| {});
    let owned = route(|route| route.request_headers = own(&[("X_Request_ID", &["mine"])]));
    for (route, lines, expected) in [
        (&plain, "", &["x-request-id: abc-1"][..]),
        (&plain, "X-Request-Id: theirs\r\n", &["x-request-id: theirs"]),
        (&plain, "X_Request_Id: theirs\r\n", &["x-request-id: abc-1"]),
        (&plain, "Connection: x-request-id\r\nX-Request-Id: theirs\r\n", &["x-request-id: abc-1"]),
        (&owned, "X-Request-Id: theirs\r\n", &["x_request_id: mine"]),
    ] {
        let request = format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
        let head = written(route, &request, None).unwrap().to_ascii_lowercase();
        let named: Vec<_> = head.lines().filter(|line| line.contains("request")).collect();
        assert_eq!(named, expected, "{lines}");
    }
}

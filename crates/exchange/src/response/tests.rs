use std::path::Path;

use kettle_config::FieldTemplate;

use super::*;

fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, Vec<FieldTemplate>)> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), vec![(*value).into()])).collect()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn the_operator_can_name_the_server() {
    let lines = ConfiguredFields::new(&pairs(&[("Server", "other")]), &[]);
    assert_eq!(text(lines.all()), "server: other\r\n");
}

#[test]
fn what_forbids_caching_is_for_errors_too() {
    for (value, for_errors) in [
        ("no-store", "no-store"),
        ("No-Cache,must-revalidate", "No-Cache"),
        ("private, max-age=600", "private"),
        ("max-age=0, no-cache, no-store", "no-cache, no-store"),
        ("private=\"x\"", ""),
        ("public, immutable", ""),
    ] {
        let lines = ConfiguredFields::new(&pairs(&[("Cache-Control", value), ("x", "1")]), &[]);
        let expected = match for_errors {
            "" => "server: kettle\r\nx: 1\r\n".to_owned(),
            said => format!("server: kettle\r\ncache-control: {said}\r\nx: 1\r\n"),
        };
        assert_eq!(text(lines.for_errors()), expected, "{value}");
        assert_eq!(text(lines.without_caching()), "server: kettle\r\nx: 1\r\n", "{value}");
    }
}

#[test]
fn what_only_a_response_can_say_takes_the_place_of_the_operators() {
    let lines = ConfiguredFields::new(&pairs(&[("Allow", "*"), ("allowed", "x")]), &[]);
    let fields = ResponseFields::ready(lines.all().clone()).with_own("allow", "GET");
    let said = fields.lines().concat();
    assert_eq!(text(&said), "server: kettle\r\nallowed: x\r\nallow: GET\r\n");
    assert_eq!(text(lines.all()), "server: kettle\r\nallow: *\r\nallowed: x\r\n");
}

#[test]
fn what_has_no_values_is_taken_away() {
    let none = |name: &str| (name.to_owned(), Vec::new());
    let site = [pairs(&[("X-Site", "1"), ("X-Back", "1")]), vec![none("X-Powered-By")]].concat();
    let route = [vec![none("x-site"), none("Server")], pairs(&[("X-Powered-By", "us")])].concat();
    let lines = ConfiguredFields::new(&site, &route);
    assert_eq!(text(lines.all()), "x-back: 1\r\nx-powered-by: us\r\n");
    for (name, is_removed) in
        [("x-site", true), ("server", true), ("x-powered-by", false), ("x-back", false)]
    {
        assert_eq!(lines.removes(name), is_removed, "{name}");
    }
}

#[test]
fn what_requests_fill_in_is_in_no_ready_line() {
    let own = |text: &str| FieldTemplate::parse(text).unwrap();
    let site =
        [("X-A".to_owned(), vec![own("1"), own("{host}")]), ("X-B".to_owned(), vec![own("{{")])];
    let route = [("Server".to_owned(), vec![own("{map:a}")])];
    let lines = ConfiguredFields::new(&site, &route);
    assert_eq!(text(lines.all()), "x-b: {\r\n");
    let names: Vec<&str> = lines.by_words(200).iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["x-a", "server"]);
    assert!(
        lines.has("x-a") && lines.has("server"),
        "a server's own of that name are not passed on"
    );
    let lines = ConfiguredFields::new(&site, &[("x-a".to_owned(), Vec::new())]);
    assert!(lines.by_words(200).is_empty() && lines.removes("x-a"));
}

#[test]
fn redirects_have_what_only_errors_do_not_have_and_what_is_beside_a_servers_own_follows_it() {
    let all = pairs(&[("X-A", "1"), ("X-B", "2"), ("Cache-Control", "private, max-age=1")]);
    let route = kettle_config::Route {
        headers: all,
        always: Some(vec!["x-b".to_owned()]),
        beside: vec!["x-A".to_owned()],
        ..Default::default()
    };
    let lines = ConfiguredFields::of(&kettle_config::Site::default(), &route);
    assert_eq!(
        text(lines.for_redirects()),
        "server: kettle\r\nx-a: 1\r\nx-b: 2\r\ncache-control: private\r\n"
    );
    assert_eq!(text(lines.for_errors()), "server: kettle\r\nx-b: 2\r\n");
    assert!(!lines.has("x-a") && lines.has("x-b"), "a server's own is passed on beside ours");
    let mut fields = ResponseFields::ready(lines.all().clone()).with("x-a", "0");
    fields.move_behind(lines.beside());
    let [ready, own] = fields.lines().map(text);
    assert_eq!((ready.contains("x-a:"), own), (false, "x-a: 0\r\nx-a: 1\r\n"));
}

proptest::proptest! {
    /// A field that may not be sent would be left out without a word, so the configuration must have refused it.
    #[test]
    fn every_header_that_may_be_configured_is_sent(name in "[ -~]{1,3}|[a-z-]{1,8}", value in "(?s:.{0,6})|[ -~\t]{0,6}") {
        let escaped = |text: &str| -> String {
            text.chars().map(|character| format!("\\U{:08x}", u32::from(character))).collect()
        };
        let config = format!(
            "[[listener]]\naddress = \"[::1]:443\"\n\
             [[site]]\nnames = [\"localhost\"]\nheaders = {{ \"{}\" = \"{}\" }}\n\
             [[site.certificate]]\nchain = \"a\"\nkey = \"b\"\n[[site.route]]\nroot = \"www\"\n",
            escaped(&name), escaped(&value),
        );
        if let Ok(config) = kettle_config::parse(&config, Path::new("kettle.toml")) {
            let lines = ConfiguredFields::new(&config.sites[0].headers, &[]);
            let value = value.replace("{{", "{");
            let line = format!("{}: {value}\r\n", name.to_ascii_lowercase());
            proptest::prop_assert!(text(lines.all()).ends_with(&line), "{line:?}");
        }
    }
}

const EDGE: Edge = Edge {
    date_line: *b"date: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
    version: Some(HttpVersion::Http11),
    is_head: false,
    is_tls: true,
    closes: false,
    begins_tunnel: false,
};

fn head_of(response: &mut Response, edge: &Edge) -> String {
    let mut head = b"left over from another response".to_vec();
    write_head(&mut head, response, edge);
    String::from_utf8(head).unwrap()
}

fn hello(status: u16) -> Response {
    let fields = ResponseFields::ready(Bytes::from_static(b"a: 1\r\n")).with("b", "2");
    Response::new(status, fields, Body::Memory(Bytes::from_static(b"hello")))
}

#[test]
fn a_head_has_its_fields_its_length_its_date_and_the_connection_at_its_end() {
    let over_tls_only = || {
        let mut response = hello(200);
        response.fields.set_tls_only(Bytes::from_static(b"hsts: 1\r\n"));
        response
    };
    let edge = Edge { closes: true, ..EDGE };
    let expected = "HTTP/1.1 200 OK\r\na: 1\r\nb: 2\r\ncontent-length: 5\r\n\
                    date: Sun, 06 Nov 1994 08:49:37 GMT\r\nhsts: 1\r\nconnection: close\r\n\r\n";
    assert_eq!(head_of(&mut over_tls_only(), &edge), expected);
    let plain = head_of(&mut over_tls_only(), &Edge { is_tls: false, ..edge });
    assert_eq!(plain, expected.replace("hsts: 1\r\n", ""));
}

#[test]
fn head_announces_the_length_of_get_and_has_no_body() {
    let mut response = hello(404);
    let head = head_of(&mut response, &Edge { is_head: true, ..EDGE });
    assert_eq!(head, head_of(&mut hello(404), &EDGE));
    assert!(matches!(response.body, Body::Empty));
}

#[test]
fn a_status_without_a_body_announces_none_and_has_none() {
    for status in [204, 304] {
        let mut response = hello(status);
        let head = head_of(&mut response, &EDGE);
        assert!(!head.contains("content-length"), "{head}");
        assert!(matches!(response.body, Body::Empty));
    }
}

use kettle_config::{Expression, FieldTemplate, Network};
use kettle_exchange::request::Request;

use super::*;
use crate::respond::tests::stage::head;

fn condition(subject: &str, name: &str) -> Condition {
    let name = Some(name.to_owned());
    match subject {
        "header" => Condition { header: name, ..Condition::default() },
        "cookie" => Condition { cookie: name, ..Condition::default() },
        _ => Condition { query: name, ..Condition::default() },
    }
}

/// Holds conditions against a request with these lines.
fn holds(conditions: &[Condition], target: &str, fields: &str) -> bool {
    let head = head(&format!("GET {target} HTTP/1.1\r\nhost: Example.org:8443\r\n{fields}\r\n"));
    let request = Request::without_body(head, None);
    let path = request.head.target().unwrap().path;
    hold(conditions, path, Asked::of(&request), &WordSource::default())
}

/// A rewrite may have led a request to this path.
#[test]
fn the_path_is_the_one_that_was_led_to() {
    let request = Request::without_body(head("GET /asked HTTP/1.1\r\nhost: a\r\n\r\n"), None);
    let of = FieldTemplate::parse("{path}").unwrap();
    let condition =
        Condition { of: Some(of), text: Some("/led".to_owned()), ..Condition::default() };
    let held = |path: &str| {
        hold(std::slice::from_ref(&condition), path, Asked::of(&request), &WordSource::default())
    };
    assert_eq!((held("/led"), held("/asked")), (true, false));
}

#[test]
fn what_is_there_and_not_empty_holds() {
    for (subject, name, target, fields, expected) in [
        ("header", "x-a", "/", "X-A: 1\r\n", true),
        ("header", "x-a", "/", "X-A:\r\n", false),
        ("header", "x-a", "/", "", false),
        ("cookie", "s", "/", "cookie: a=1; s=2\r\n", true),
        ("cookie", "s", "/", "cookie: as=1\r\ncookie: s=2\r\n", true),
        ("cookie", "s", "/", "cookie: as=1; s=\r\n", false),
        ("cookie", "s", "/", "cookie: s\r\n", false),
        ("query", "q", "/?a=q&q=1", "", true),
        ("query", "q", "/?aq=1&q=", "", false),
        ("query", "q", "/q=1", "", false),
    ] {
        let own = condition(subject, name);
        assert_eq!(
            holds(std::slice::from_ref(&own), target, fields),
            expected,
            "{subject} {target} {fields}"
        );
        let turned = Condition { not: true, ..own };
        assert_eq!(holds(&[turned], target, fields), !expected, "not {subject} {target} {fields}");
    }
}

#[test]
fn texts_and_expressions_are_held_against_the_value() {
    let own = condition("header", "x-a");
    let text = Condition { text: Some("1, 2".to_owned()), ..own.clone() };
    let regex = Condition { regex: Some(Expression::new("^(?i)b").unwrap()), ..own };
    for (fields, is_text, is_regex) in [
        ("x-a: 1\r\nx-a: 2\r\n", true, false),
        ("x-a: 1,2\r\n", false, false),
        ("x-a: Bot\r\n", false, true),
        ("", false, false),
    ] {
        assert_eq!(holds(std::slice::from_ref(&text), "/", fields), is_text, "{fields}");
        assert_eq!(holds(std::slice::from_ref(&regex), "/", fields), is_regex, "{fields}");
    }
}

#[test]
fn all_of_them_must_hold() {
    let method = |methods: &[&str]| Condition {
        method: methods.iter().map(|it| (*it).to_owned()).collect(),
        ..Condition::default()
    };
    let host = |host: &str| Condition { host: vec![host.to_owned()], ..Condition::default() };
    let scheme = |scheme| Condition { scheme: Some(scheme), ..Condition::default() };
    let network = |address: &str, bits| Condition {
        network: vec![Network::around(address.parse().unwrap(), bits).unwrap()],
        ..Condition::default()
    };
    for (conditions, expected) in [
        (vec![method(&["POST", "GET"]), host("example.org"), scheme(Scheme::Https)], true),
        (vec![method(&["POST"]), host("example.org")], false),
        (vec![host("example.com")], false),
        (vec![scheme(Scheme::Http)], false),
        (vec![network("0.0.0.0", 0)], true),
        (vec![network("192.0.2.0", 24)], false),
        (Vec::new(), true),
    ] {
        assert_eq!(holds(&conditions, "/", ""), expected, "{conditions:?}");
    }
}

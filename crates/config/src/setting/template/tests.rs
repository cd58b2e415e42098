use super::*;

#[test]
fn no_request_decides_about_the_host() {
    for text in [
        "https://example.org",
        "https://example.org/",
        "https://example.org{path}",
        "https://example.org:8443{rest}",
        "http://{host}{path}",
        "https://{host}:8443/a?b={1}",
        "{scheme}://www.{host}{path}",
        "/new{rest}",
        "/{1}",
    ] {
        assert!(read_destination(text).is_ok(), "{text}");
    }
    for text in [
        "",
        "new",
        "//evil.example",
        "https://{1}/",
        "https://{path}",
        "https://example.org{1}",
        "https://a@example.org/",
        "https://{host}.evil/",
        "https://evil{host}/",
        "https://.{host}/",
        "https://www.{host}.evil/",
        "https://{host}@evil/",
        "javascript://x",
        "{path}",
        "/a\\b",
        "/a b",
        "/a\r\nb",
        "/a#b",
        "/{na-me}",
        "/{}",
        "/{1",
        "/{0}",
        "/é",
    ] {
        assert!(read_destination(text).is_err(), "{text}");
    }
}

#[test]
fn a_rewritten_path_is_a_path() {
    for text in [
        "{1}",
        "{name}/x",
        "{path}",
        "/a{rest}",
        "/a b/é/{1}",
        "/{page}",
        "/100%",
        "/a?b={1}&c",
        "/a?",
        "/a?b=1?",
        "/a?{query:b}&{query}",
        "/{query:b}/{map:c}",
        "/a?b={map:c}",
    ] {
        assert!(read_rewritten_path(text).is_ok(), "{text}");
    }
    for text in [
        "a",
        "/a\\b",
        "/{host}",
        "/\0",
        "/a#b",
        "?b",
        "/a?b c",
        "/a?b?c",
        "/a?{host}",
        "/{cookie:b}",
        "/a?{header:b}",
        "/a?#",
    ] {
        assert!(read_rewritten_path(text).is_err(), "{text}");
    }
}

#[test]
fn a_rewrite_may_say_a_query() {
    let text = |text: &str| Piece::Text(text.into());
    for (written, pieces) in [
        ("/a", vec![text("/a")]),
        ("/a?", vec![text("/a"), Piece::Query, Piece::Query]),
        ("/a?b={1}", vec![text("/a"), Piece::Query, text("b="), Piece::Capture(0)]),
        ("/a?b?", vec![text("/a"), Piece::Query, text("b"), Piece::Query]),
    ] {
        let template = read_rewritten_path(written).map_err(|wrong| wrong.why).unwrap();
        assert_eq!(template.pieces(), pieces, "{written}");
    }
}

#[test]
fn names_are_taken_apart() {
    let template = Template::read("/a{1}{rest}b").map_err(|wrong| wrong.why).unwrap();
    let text = |text: &str| Piece::Text(text.into());
    assert_eq!(template.pieces(), [text("/a"), Piece::Capture(0), Piece::Rest, text("b")]);
    assert_eq!((template.captures(), template.beginning()), (1, "/a"));
}

use proptest::prelude::*;

use super::*;
use crate::sample::target;

/// Returns the target that is passed on for one that was sent so, whose path a rule may have made another.
fn passed_on(raw: &str, rewritten: Option<&str>, slashes: SlashRuns) -> Option<String> {
    let target = target(raw).ok()?;
    let target = Target { path: rewritten.unwrap_or(target.path), ..target };
    reference(target, raw, slashes).map(Cow::into_owned)
}

#[test]
fn nothing_that_was_sent_is_encoded_anew() {
    for (raw, as_sent, merged) in [
        ("/", "/", "/"),
        ("//", "//", "/"),
        ("///a", "///a", "/a"),
        ("/a//", "/a//", "/a/"),
        ("/a;b=c/@:x,%3b", "/a;b=c/@:x,%3b", "/a;b=c/@:x,%3b"),
        (
            "/w/https://b.example/c:d?e=//",
            "/w/https://b.example/c:d?e=//",
            "/w/https:/b.example/c:d?e=//",
        ),
        ("/a//b/../c:d", "/a/c:d", "/a/c:d"),
        ("/./a%c3%a4", "/a%c3%a4", "/a%c3%a4"),
        ("/a/..", "/", "/"),
        ("/a/b/.", "/a/b/", "/a/b/"),
        ("/.well-known/x//y", "/.well-known/x//y", "/.well-known/x/y"),
        ("https://b.example//a:?x", "//a:?x", "/a:?x"),
        ("https://b.example", "/", "/"),
        ("https://b.example?x", "/?x", "/?x"),
        ("/x/../a%2Fb", "/a%2Fb", "/a%2Fb"),
        ("/a//b%2fc%252F", "/a//b%2fc%252F", "/a/b%2fc%252F"),
    ] {
        let sent = |slashes| passed_on(raw, None, slashes);
        assert_eq!(sent(SlashRuns::AS_SENT).as_deref(), Some(as_sent), "{raw}");
        assert_eq!(sent(SlashRuns::Merged).as_deref(), Some(merged), "{raw}");
    }
}

#[test]
fn a_query_that_a_rule_made_takes_the_place_of_what_was_sent() {
    for (raw, rewritten, query, expected) in [
        ("/a?b", None, Some("c"), "/a?c"),
        ("/a", None, Some("c=/?"), "/a?c=/?"),
        ("/a?b", None, None, "/a"),
        ("/a?", None, None, "/a"),
        ("/a/../x//y?b", None, Some("c"), "/x/y?c"),
        ("//x?b", None, None, "//x"),
        ("/a%20b?b", Some("/z/a b"), Some("c"), "/z/a%20b?c"),
        ("https://b.example/a?b", None, Some("c"), "/a?c"),
    ] {
        let target = target(raw).unwrap();
        let target = Target { path: rewritten.unwrap_or(target.path), query, ..target };
        let passed = reference(target, raw, SlashRuns::AS_SENT);
        assert_eq!(passed.as_deref(), Some(expected), "{raw}");
    }
}

/// A server that compares paths as they are finds no other route's, and none takes the first segment for a host.
#[test]
fn slashes_in_a_row_are_one_in_front_of_the_first_segments() {
    for (raw, segments, expected) in [
        ("//", 1, "/"),
        ("//a//b", 1, "/a//b"),
        ("///a///?//", 1, "/a///?//"),
        ("//a//b//c", 2, "/a/b//c"),
        ("/a//b//", 2, "/a/b//"),
        ("/a//", 2, "/a/"),
        ("https://b.example//a//b", 1, "/a//b"),
        ("/a/b//c", 1, "/a/b//c"),
    ] {
        let passed = passed_on(raw, None, SlashRuns::AsSentBehind(segments));
        assert_eq!(passed.as_deref(), Some(expected), "{raw}");
    }
}

#[test]
fn what_a_rule_leaves_alone_stays() {
    for (raw, rewritten, expected) in [
        ("/app/a:b;c%3b/d?e", "/a:b;c;/d", Some("/a:b;c%3b/d?e")),
        ("/app//a:b", "/a:b", Some("/a:b")),
        ("/a:b", "/new:/a:b", Some("/new%3A/a:b")),
        ("/app/", "/", Some("/")),
        ("/app", "/", Some("/")),
        ("/a/b", "/", Some("/")),
        ("/a/b%2Fc", "/x/b%2Fc", Some("/x/b%2Fc")),
        ("/b%2Fc/d", "/xb%2Fc/d", None),
        ("/b%252Fc/d", "/xb%2Fc/d", Some("/xb%252Fc/d")),
    ] {
        let passed = passed_on(raw, Some(rewritten), SlashRuns::AS_SENT);
        assert_eq!(passed.as_deref(), expected, "{raw}");
    }
}

proptest! {
    /// Read again, what is passed on is the path that was decided by; it was sent, as far as no dot segment was resolved and no run
    /// merged, and what is left of it is as it was.
    #[test]
    fn what_is_passed_on_is_what_was_decided_by(
        raw in "(https://b\\.example)?/(/{0,2}([a-c:;=@%.]|%[2-7][0-9a-f]|\\.|\\.\\.){0,3}/){0,5}[a-c]?(\\?[a/.%]{0,4})?",
    ) {
        let Ok(decided) = target(&raw) else { return Ok(()) };
        for slashes in [SlashRuns::AS_SENT, SlashRuns::AsSentBehind(2), SlashRuns::Merged] {
            let passed = passed_on(&raw, None, slashes);
            let passed = passed.expect("nothing has to be encoded");
            let again = target(&passed).map_err(|error| TestCaseError::fail(format!("{passed}: {error:?}")))?;
            prop_assert_eq!(&again.path, &decided.path, "{} {}", raw, passed);
            prop_assert_eq!(&again.query, &decided.query);
            let path = |text: &str| text.split('?').next().unwrap_or_default().to_owned();
            let sent = path(raw.strip_prefix("https://b.example").unwrap_or(&raw));
            let got = path(&passed);
            for segment in got.split('/') {
                prop_assert!(sent.split('/').any(|it| it == segment), "{segment} of {raw}");
            }
            if slashes == SlashRuns::Merged {
                prop_assert!(!got.contains("//"), "{got}");
            } else if slashes == SlashRuns::AsSentBehind(2) {
                let segments = || got.split('/').skip(1);
                let ahead = segments().take_while(|segment| !segment.is_empty()).count();
                prop_assert!(ahead >= 2.min(segments().count() - 1), "{got}");
            } else if !sent.is_empty() && !sent.split('/').any(|it| matches!(it, "." | "..")) {
                prop_assert_eq!(got, sent);
            }
        }
    }

    /// The same of a path that a rule made.
    #[test]
    fn what_a_rule_made_is_passed_on(
        raw in "(/([a-c:;]|%3b){1,2}){1,4}/?",
        made in "(/[a-c:; %]{1,2}){0,2}",
        left in 0_usize..4,
    ) {
        let Ok(decided) = target(&raw) else { return Ok(()) };
        let mut rest: Vec<_> = decided.path.split('/').collect();
        let rest = rest.split_off(rest.len().saturating_sub(left).max(1)).join("/");
        let rewritten = format!("{made}/{rest}");
        let passed = passed_on(&raw, Some(&rewritten), SlashRuns::AS_SENT).expect("no slash is encoded");
        let again = target(&passed).map_err(|error| TestCaseError::fail(format!("{passed}: {error:?}")))?;
        prop_assert_eq!(again.path, rewritten, "{} {}", raw, passed);
    }
}

//! Settings of a route that contradict each other, and too many of them.

/// Stars in the middle and a beginning for all leave an index nothing to tell patterns apart by.
#[test]
fn patterns_that_each_path_is_held_against_are_few() {
    let shown = |setting: String| {
        crate::shown(&format!(
            "[[site]]\nnames = [\"a\"]\nself_signed = true\n[[site.route]]\nroot = \"/srv\"\n{setting}"
        ))
    };
    let many = |before: &str, after: &str, count: usize| {
        (0..count).map(|number| format!("{before}{number}{after}")).collect::<Vec<_>>()
    };
    let redirects = |patterns: &[String]| {
        let rules = patterns.iter().map(|from| format!("{{ from = \"{from}\", to = \"/x\" }}"));
        shown(format!("redirect = [\n{}\n]", rules.collect::<Vec<_>>().join(",\n")))
    };
    let list = |name: &str, patterns: &[String]| shown(format!("{name} = {patterns:?}"));
    let cache_control = |patterns: &[String]| {
        let rules = patterns.iter().map(|pattern| format!("{pattern:?} = \"no-cache\""));
        shown(format!("[site.route.cache_control]\n{}", rules.collect::<Vec<_>>().join("\n")))
    };
    let message = "one path may have to be held against 1001 patterns, one by one";
    // The one too many is shown: behind six lines the 1,001st.
    let found = redirects(&many("/a/*", "*", 1_001));
    assert!(found.contains(message) && found.contains("kettle.toml:1007:10: "), "{found}");
    assert!(found.contains("help: write at most 1000 of them"), "{found}");
    for found in [
        list("deny_files", &many("*", "*", 1_001)),
        list("fallback_except", &many("/*", "*", 1_001)),
        cache_control(&many("/a/*", "*/b", 1_001)),
    ] {
        assert!(found.contains(message), "{found}");
    }
    for few in [
        many("/a/*", "*", 1_000),
        many("/a/*", "", 1_001),
        many("/a/", "/*", 1_001),
        many("/a/", "", 1_001),
        many("/a/**/", "/b", 1_001),
    ] {
        assert_eq!(redirects(&few), "nothing", "{few:?}");
        assert_eq!(list("deny_files", &few), "nothing", "{few:?}");
        assert_eq!(cache_control(&few), "nothing", "{few:?}");
    }
}

#[test]
fn prefixes_that_begin_with_each_other_are_few() {
    for (count, is_refused) in [(1_000, false), (1_001, true)] {
        let route = |length| {
            let prefix = format!("/{}", "a".repeat(length));
            format!("[[site.route]]\nprefix = \"{prefix}\"\nroot = \"/srv\"\n")
        };
        let routes: String = (0..count).map(route).collect();
        let shown =
            crate::shown(&format!("[[site]]\nnames = [\"a\"]\nself_signed = true\n{routes}"));
        let message = "one path may have to be held against 1001 prefixes, one by one";
        assert_eq!(shown.contains(message), is_refused, "{shown}");
    }
}

/// Each request asks all that may be for it, so these are few as well: the conditions of one place, and what stands before all routes.
#[test]
fn conditions_that_each_request_is_held_against_are_few() {
    let shown = |text: String| {
        crate::shown(&format!(
            "[[site]]\nnames = [\"a\"]\nself_signed = true\n{text}[[site.route]]\nroot = \"/srv\"\n"
        ))
    };
    let when = |count: usize| {
        let all = (0..count).map(|number| format!("{{ header = \"x-{number}\" }}"));
        format!("when = [{}]\n", all.collect::<Vec<_>>().join(", "))
    };
    let route = |place: &str, conditions: usize| {
        format!("[[site.route]]\n{place}\nroot = \"/srv\"\n{}", when(conditions))
    };
    let before = |place: &str, conditions: usize| {
        format!("[[site.before]]\n{place}\nrespond = {{ status = 403 }}\n{}", when(conditions))
    };
    for (text, message) in [
        // The last route has the place, too.
        (route("prefix = \"/\"", 1).repeat(1_000), "against 1001 prefixes and conditions"),
        (route("prefix = \"/\"", 1_001), "against 1002 prefixes and conditions"),
        (route("exact = \"/a\"", 7).repeat(143), "against 1001 conditions"),
        (route("regex = 'a'", 1).repeat(1_001), "against 1001 conditions"),
        (before("", 1).repeat(1_001), "against 1001 entries of [[site.before]]"),
        (before("regex = 'a'", 0).repeat(1_001), "against 1001 entries of [[site.before]]"),
    ] {
        let shown = shown(text);
        assert!(shown.contains(message), "{message}: {shown}");
    }
    for text in [
        route("prefix = \"/\"", 1).repeat(999),
        route("exact = \"/a\"", 1_000),
        (0..10_000).map(|number| route(&format!("prefix = \"/{number}-\""), 1)).collect(),
        (0..10_000).map(|number| before(&format!("prefix = \"/{number}-\""), 1)).collect(),
        before("", 1).repeat(1_000),
    ] {
        assert_eq!(shown(text), "nothing");
    }
}

/// They are counted together wherever they stand, and the first one that is too many is named.
#[test]
fn expressions_of_a_site_and_of_all_maps_are_not_too_large_together() {
    // Each is a tenth of what all may take, about.
    let large = |number: usize| format!("[a-z0-9]{{{}}}x{number}", 1_500);
    let site = |count: usize| {
        let mut text = "[[site]]\nnames = [\"a\"]\nself_signed = true\n".to_owned();
        for number in 0..count {
            let regex = format!("regex = '{}'", large(number));
            text += &match number % 4 {
                0 => format!("[[site.before]]\n{regex}\nrespond = {{ status = 403 }}\n"),
                1 => format!(
                    "[[site.route]]\nprefix = \"/{number}\"\nroot = \"/\"\nwhen = [{{ header = \"x\", {regex} }}]\n"
                ),
                2 => format!(
                    "[[site.route]]\nprefix = \"/{number}\"\nredirect = [{{ {regex}, to = \"/x\" }}]\n"
                ),
                _ => format!("[[site.route]]\n{regex}\nroot = \"/\"\n"),
            };
        }
        text + "[[site.route]]\nroot = \"/\"\n"
    };
    let maps = |count: usize| {
        let map = |number: usize| {
            let regex = large(number);
            format!(
                "[[map]]\nname = \"m{number}\"\nof = \"{{host}}\"\n[map.regex]\n'{regex}' = \"1\"\n"
            )
        };
        (0..count).map(map).collect::<String>() + &site(0)
    };
    let message = "the regular expressions of this site take more than 1 MiB together";
    assert_eq!(crate::shown(&site(5)), "nothing");
    assert!(crate::shown(&site(40)).contains(message));
    let message = "the regular expressions of all maps take more than 1 MiB together";
    assert_eq!(crate::shown(&maps(5)), "nothing");
    assert!(crate::shown(&maps(40)).contains(message));
}

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

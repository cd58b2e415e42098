//! The mistakes of people that come from another server, a shell or a word processor.

const NO_PATTERNS: &str = "write the beginning that all its paths have; `from` of a redirect or a rewrite and \
                           `cache_control` take patterns, and %2A is a `*` itself";

/// A prefix and the help that it gets, or how it is kept.
#[test]
fn a_prefix_is_no_pattern() {
    let parse = |prefix: &str| {
        let text = format!(
            "[[listener]]\naddress = \"127.0.0.1:443\"\n[[site]]\nnames = [\"a\"]\nself_signed = true\n\
             [[site.route]]\nprefix = '{prefix}'\ndeny = [\"0.0.0.0/0\"]\n"
        );
        kettle_config::parse(&text, std::path::Path::new("kettle.toml"))
    };
    for (prefix, help) in [
        ("~ \\.php$", NO_PATTERNS),
        ("~* \\.(gif|jpg)$", NO_PATTERNS),
        ("/\\.", NO_PATTERNS),
        ("/*.php", NO_PATTERNS),
        ("/a/*/b", NO_PATTERNS),
        ("/(admin|secret)", NO_PATTERNS),
        ("/admin$", NO_PATTERNS),
        ("^/(admin)", NO_PATTERNS),
        ("*.php", NO_PATTERNS),
        ("^/admin", "write \"/admin\""),
        ("^~ /images/", "write \"/images/\""),
        ("= /status", "write \"/status\""),
        ("/images/**", "write \"/images/\""),
        ("/images/*", "write \"/images/\""),
        ("admin", "write \"/admin\""),
        ("/a%2Fb", "write the character itself in place of each %XX"),
        ("/100%", "write the character itself in place of each %XX"),
    ] {
        let found = parse(prefix).unwrap_err();
        let helps: Vec<&str> = found.iter().filter_map(|it| it.help.as_deref()).collect();
        assert_eq!(helps, [help], "{prefix}");
    }
    for (written, kept) in [
        ("/~alice", "/~alice"),
        ("/odata/$metadata", "/odata/$metadata"),
        ("/a.b-c_d", "/a.b-c_d"),
        ("/a%2Ab", "/a*b"),
        ("/%28x%29%7C%5E%5C%24", "/(x)|^\\$"),
        ("/100%25", "/100%"),
    ] {
        assert_eq!(
            parse(written).unwrap().sites[0].routes[0].prefix.as_deref(),
            Some(kept),
            "{written}"
        );
        let again = parse(&kettle_config::written_prefix(kept)).unwrap();
        assert_eq!(again.sites[0].routes[0].prefix.as_deref(), Some(kept), "{written}");
    }
}

#[test]
fn a_value_that_names_a_variable_is_a_warning() {
    let text = "[[listener]]\naddress = \"127.0.0.1:443\"\n[[site]]\nnames = [\"a\"]\nself_signed = true\n\
                [site.headers]\nX-A = \"$host\"\nX-B = \"5 $\"\n[[site.route]]\nredirect = [{ to = \"https://b.example/$1\" }]\n";
    let config = kettle_config::parse(text, std::path::Path::new("kettle.toml")).unwrap();
    let found = kettle_config::advice(&config);
    let said: Vec<(usize, usize, &str)> =
        found.iter().map(|it| (it.line, it.column, it.message.as_str())).collect();
    assert_eq!(
        said,
        [(7, 7, "`$host` stands for itself here"), (10, 20, "`$1` stands for itself here")]
    );
    assert!(
        found[1].help.as_deref().is_some_and(|help| help.ends_with("is `{1}`")),
        "{:?}",
        found[1]
    );
}

/// One that is empty by default is shown with what may be in it, unless it was turned off.
#[test]
fn a_list_is_shown_as_it_was_most_likely_meant() {
    for (written, help) in [
        ("true", r#"["br", "zstd", "gzip"]"#),
        ("\"on\"", r#"["br", "zstd", "gzip"]"#),
        ("\"gz\"", r#"["gzip"]"#),
        ("\"brotli\"", r#"["br"]"#),
        ("false", "[]"),
    ] {
        let text = format!(
            "[[site]]\nnames = [\"a\"]\nself_signed = true\n\
             [[site.route]]\nroot = \"/srv\"\ncompress = {written}\n"
        );
        let shown = crate::shown(&text);
        assert!(shown.ends_with(&format!("\nhelp: write {help}")), "{written}: {shown}");
    }
}

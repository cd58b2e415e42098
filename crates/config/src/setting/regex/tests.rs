use super::*;

fn expression(text: &str) -> Expression {
    Expression::new(text).unwrap()
}

#[test]
fn a_part_of_the_text_is_enough_and_case_counts() {
    for (written, text, fits) in [
        (r"\.php$", "/a/b.php", true),
        (r"\.php$", "/a/b.PHP", false),
        (r"(?i)\.php$", "/a/b.PHP", true),
        (r"^/a", "/b/a", false),
        // Classes are those of ASCII, and a character is its bytes.
        (r"^/\w+$", "/ä", false),
        (r"^/..$", "/ä", true),
        (r"^/[^/]+$", "/ä", true),
    ] {
        assert_eq!(expression(written).fits(text), fits, "{written} {text}");
    }
}

#[test]
fn groups_stand_for_what_they_fit() {
    let written = expression(r"^/(\w+)(/x)?/(?<last>.*)$");
    assert_eq!(written.groups(), 3);
    assert!(written.has_group("last") && !written.has_group("first"));
    let captures = written.captures("/a/b/c").unwrap();
    let groups: Vec<_> = (0..5).map(|number| captures.get(number)).collect();
    assert_eq!(groups, [Some("/a/b/c"), Some("a"), Some(""), Some("b/c"), None]);
    assert_eq!((captures.named("last"), captures.named("first")), (Some("b/c"), None));
    assert!(written.captures("/").is_none());
    // Half a character is no text.
    assert_eq!(expression("^/(.)").captures("/ä").unwrap().get(1), None);
}

#[test]
fn what_cannot_be_said_is_told_with_what_to_write() {
    for (written, why) in [
        ("", "an empty one fits everything"),
        ("^/(?!admin)", "it looks around, which takes time without a bound"),
        ("(a", "unclosed group"),
        (r"(a)\1", "backreferences are not supported"),
        ("((a{100}){100}){100}", "it takes more than 1024 KiB"),
    ] {
        assert_eq!(Expression::new(written).unwrap_err(), why, "{written}");
    }
    assert!(Expression::new(&"a".repeat(TEXT_BYTES_MAX + 1)).is_err());
}

#[test]
fn a_set_tells_all_that_fit_in_order() {
    let all = [r"\.php$", "^/a", "b"].map(expression);
    let set = Expressions::new(all.iter()).unwrap();
    for (text, numbers) in [("/a/b.php", &[0, 1, 2][..]), ("/b", &[2]), ("/", &[])] {
        assert_eq!(set.fitting(text).collect::<Vec<_>>(), numbers, "{text}");
    }
    assert_eq!(Expressions::default().fitting("/").count(), 0);
    let large = vec![expression("(a{100}){200}"); 20];
    assert!(Expressions::new(large.iter()).is_err());
}

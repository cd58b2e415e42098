use super::*;

#[test]
fn slips_of_the_finger_are_recognised() {
    let known = ["listener", "limits", "names", "key", "idle_timeout"];
    let cases = [
        ("listner", Some("listener")),
        ("lsitener", Some("listener")),
        ("Limits", Some("limits")),
        ("limit", Some("limits")),
        ("idle-timeout", Some("idle_timeout")),
        ("idletimeout", Some("idle_timeout")),
        ("name", Some("names")),
        ("kye", Some("key")),
        ("x", None),
        ("colour", None),
        ("", None),
    ];
    for (written, expected) in cases {
        assert_eq!(closest(written, &known), expected, "{written}");
    }
}

#[test]
fn very_long_words_are_not_compared() {
    let long = "a".repeat(COMPARED_CHARACTERS_MAX + 1);
    assert_eq!(closest(&long, &[long.as_str()]), None);
}

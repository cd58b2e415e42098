use super::*;

fn cut(text: &str) -> Vec<&str> {
    statements(text).into_iter().map(|statement| &text[statement]).collect()
}

#[test]
fn a_value_over_several_lines_is_one_statement() {
    let text =
        "a = [\n  { b = 1 },\n  # c = 2\n]\nd = '''\ne = 3\n'''\nf = {\n g = 4,\n h = 5 }\ni = 6\n";
    let expected = [
        "a = [\n  { b = 1 },\n  # c = 2\n]\n",
        "d = '''\ne = 3\n'''\n",
        "f = {\n g = 4,\n h = 5 }\n",
        "i = 6\n",
    ];
    assert_eq!(cut(text), expected);
}

#[test]
fn an_open_value_ends_at_the_next_statement() {
    assert_eq!(cut("a = [1,\nb = 2\n[c]\nd = 3"), ["a = [1,\n", "b = 2\n", "[c]\n", "d = 3"]);
}

#[test]
fn blanked_text_keeps_its_offsets() {
    let text = "a = é\nb = 1\n";
    let blank = blank_out(text, &(0..7));
    assert_eq!(blank, "      \nb = 1\n");
    assert_eq!(blank.len(), text.len());
}

#[test]
fn what_stands_below_a_broken_header_is_homeless() {
    let document = read("[a\nb = 1\n[c]\nd = 2\n");
    assert_eq!(document.homeless.as_slice(), std::slice::from_ref(&(0..9)));
    assert_eq!(document.mistakes.len(), 1);
}

#[test]
fn brackets_in_texts_and_comments_are_not_open() {
    assert_eq!(unclosed("a = \"[\" # ["), None);
    assert_eq!(unclosed("a = [ # ]"), Some((4, '[')));
    assert_eq!(unclosed("a = { b = [ ]"), Some((4, '{')));
}

#[test]
fn a_file_of_broken_lines_is_given_up_at_a_bound() {
    let document = read(&"a = b = c\n".repeat(BROKEN_STATEMENTS_MAX * 2));
    assert_eq!(document.mistakes.len(), BROKEN_STATEMENTS_MAX + 1);
    let last = document.mistakes.last().map(|mistake| mistake.message.as_str());
    assert_eq!(last, Some("the rest of the file was not read, because too much is broken"));
    assert_eq!(document.readable, "");
}

#[test]
fn spaces_that_are_none_in_toml_are_an_error() {
    for text in ["\u{a0}", "\r", "a = 1\n\u{a0}\n", "\u{feff}\u{feff}"] {
        assert!(!read(text).mistakes.is_empty(), "{text:?}");
    }
}

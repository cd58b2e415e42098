//! Width, colour and odd input.

use super::*;

#[test]
fn no_line_of_words_is_wider_than_the_screen() {
    let long = Finding::warning("page clearing", "word ".repeat(60)).fix("step ".repeat(40));
    let text = finding(&long, Style::Plain);
    assert!(text.lines().count() > 5);
    assert!(text.lines().all(|line| line.chars().count() <= COLUMNS_MAX), "{text}");
}

#[test]
fn a_fix_stands_beneath_its_line() {
    let text = finding(&Finding::bad("tls module", "not loaded").fix("modprobe tls"), Style::Plain);
    assert_eq!(text, "✗ tls module      not loaded\n    → modprobe tls\n");
}

#[test]
fn what_has_no_room_in_a_table_is_shortened() {
    for (text, expected) in [("", ""), ("äbc", "äbc"), ("äbcd", "äb…")] {
        assert_eq!(shorten(text, 3), expected);
    }
}

#[test]
fn colour_is_only_around_marks_and_fixes() {
    let warning = Finding::warning("kernel", "old").fix("newer");
    let text = finding(&warning, Style::Colour);
    assert_eq!(text, "\x1b[33m!\x1b[0m kernel          old\n    \x1b[36m→ newer\x1b[0m\n");
    assert!(!finding(&warning, Style::Plain).contains('\x1b'));
}

#[test]
fn names_from_outside_cannot_move_the_cursor() {
    let text = finding(&Finding::good("network cards", "\x1b[2Jeth0\r\n"), Style::Plain);
    assert_eq!(text, "✓ network cards   [2Jeth0\n");
}

#[test]
fn colour_needs_a_terminal_and_no_no_color() {
    for (is_terminal, no_color, expected) in [
        (true, None, Style::Colour),
        (true, Some(""), Style::Colour),
        (true, Some("1"), Style::Plain),
        (false, None, Style::Plain),
    ] {
        assert_eq!(Style::choose(is_terminal, no_color.map(OsStr::new)), expected);
    }
}

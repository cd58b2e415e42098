//! Text that must not become markup.

use super::*;

#[test]
fn markup_is_escaped() {
    assert_eq!(escape("<a href=\"x\">&'é"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;é");
}

#[test]
fn text_without_markup_is_borrowed() {
    assert!(matches!(escape("plain é"), Cow::Borrowed("plain é")));
}

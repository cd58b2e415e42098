use proptest::prelude::*;

use super::*;

#[test]
fn text_and_attributes_are_escaped() {
    let mut markup = Markup::new();
    markup.open("p", &[("title", "a\"b'c")]);
    markup.text("<b>&\u{0}");
    markup.close("p");
    assert_eq!(markup.into_string(), "<p title=\"a&quot;b&#39;c\">&lt;b&gt;&amp;\u{fffd}</p>");
}

proptest! {
    #[test]
    fn no_text_leaves_its_element(text in "\\PC*", value in "[\\PC<>\"'&/]*") {
        let mut markup = Markup::new();
        markup.element("p", &[("title", &value)], &text);
        let whole = markup.into_string();
        let inner = whole.strip_prefix("<p title=\"").unwrap().strip_suffix("</p>").unwrap();
        prop_assert_eq!(inner.matches('"').count(), 1);
        prop_assert_eq!(inner.matches('<').count(), 0);
        prop_assert_eq!(inner.matches('>').count(), 1);
    }
}

#[test]
fn what_stands_between_backticks_is_code() {
    let mut page = Markup::new();
    page.prose("li", "run `a < b` twice");
    assert_eq!(page.into_string(), "<li>run <code>a &lt; b</code> twice</li>");
}

//! Pages that run on, and contents that leave something out, are caught.

use super::*;

fn rules(page: &str, text: &str) -> Vec<(&'static str, usize)> {
    let tree = Tree::of(&[(page, text)]);
    let (workspace, _) = Workspace::scan(&Tree::default());
    let mut violations = Vec::new();
    check(&tree, &workspace, &mut violations);
    violations.into_iter().map(|violation| (violation.rule, violation.line)).collect()
}

#[test]
fn a_line_of_201_characters_is_too_long() {
    assert_eq!(rules("a.md", &format!("# A\n\n{}", "é".repeat(201))), [("long_line", 3)]);
    assert_eq!(rules("a.md", &"é".repeat(200)), []);
}

#[test]
fn tables_code_and_pictures_may_be_wider() {
    let wide = "x".repeat(300);
    assert_eq!(rules("a.md", &format!("![{wide}](a.svg)\n")), []);
    assert_eq!(rules("a.md", &format!("| {wide} |\n")), []);
    assert_eq!(rules("a.md", &format!("```\n{wide}\n```\n")), []);
    assert_eq!(rules("a.md", &format!("```\n```\n{wide}\n")), [("long_line", 3)]);
}

#[test]
fn a_sentence_that_begins_with_what_is_caught() {
    for line in ["What is kept goes.", "- **Who** asks", "It ends. Whether it is", "note: What is"]
    {
        assert_eq!(rules("docs/a.md", line), [("plain_words", 1)], "{line}");
        assert_eq!(rules("docs/decisions/0001-a.md", line), [], "{line}");
    }
    for line in [
        "## What is kept",
        "- [What is kept](#x)",
        "| What | is |",
        "What is it?",
        "It says what is kept.",
        "Whatever",
    ] {
        assert_eq!(rules("docs/a.md", line), [], "{line}");
    }
}

fn long_page(contents: &str) -> String {
    let rest = "\n".repeat(LINES_WITHOUT_CONTENTS_MAX);
    format!(
        "# Page\n\n{contents}\n\n## The first\n\n```\n## code\n```\n\n## `kettle ctl`, twice{rest}"
    )
}

#[test]
fn a_long_page_lists_its_headings() {
    let both = "[The first](#the-first) · [kettle ctl](#kettle-ctl-twice)";
    assert_eq!(rules("docs/a.md", &long_page(both)), []);
    assert_eq!(rules("docs/a.md", &long_page("[1](#the-first)")), [("contents", 11)]);
}

#[test]
fn a_short_page_and_one_outside_of_docs_need_no_contents() {
    assert_eq!(rules("docs/a.md", "# Page\n\n## One\n"), []);
    assert_eq!(rules("ARCHITECTURE.md", &long_page("")), []);
}

#[test]
fn the_second_heading_of_one_text_has_a_number() {
    let anchors: Vec<_> = headings("# A b\n## A b\n#no heading\n").map(|it| it.1.anchor).collect();
    assert_eq!(anchors, ["a-b", "a-b-1"]);
}

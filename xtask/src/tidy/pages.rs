//! Pages that a person reads: lines of a bounded length, sentences that begin with their subject, contents on the long pages.
//!
//! Tables, code and the text of a picture may be wider: none can be wrapped.

use std::ops::RangeInclusive;

use super::scan::Workspace;
use super::tree::Tree;
use super::violation::Violation;

/// Finds lines that are too long, sentences without a noun at their head, and long pages that do not list their headings.
pub fn check(tree: &Tree, _: &Workspace, violations: &mut Vec<Violation>) {
    for (page, text) in tree.with_extension("md") {
        check_lines(page, text, violations);
        if page.starts_with("docs/") && text.lines().count() > LINES_WITHOUT_CONTENTS_MAX {
            check_contents(page, text, violations);
        }
    }
}

fn check_lines(page: &str, text: &str, violations: &mut Vec<Violation>) {
    let is_whole =
        |line: &str| ["|", "!["].iter().any(|start| line.trim_start().starts_with(start));
    let is_record = RECORDS.iter().any(|folder| page.starts_with(folder));
    for (line, text) in prose(text).filter(|(_, text)| !is_whole(text)) {
        if let Some(word) = headless(text, HEADLESS).filter(|_| !is_record) {
            let message = format!("a sentence begins with `{word}`; begin it with its noun");
            violations.push(Violation::at(page, line, "plain_words", message));
        }
        let characters = text.chars().count();
        if characters > CHARACTERS_MAX {
            let message = format!("{characters} characters, limit {CHARACTERS_MAX}; wrap it");
            violations.push(Violation::at(page, line, "long_line", message));
        }
    }
}

/// The word that a sentence begins with in place of its noun, where one does. Headings, links to them and questions may.
pub fn headless<'t>(line: &'t str, words: &[&str]) -> Option<&'t str> {
    let sentences = line.split(". ").flat_map(|part| part.split(": "));
    let first = sentences.filter(|it| !it.contains('?')).map(|sentence| {
        let text =
            sentence.trim_start_matches(|it: char| !it.is_alphabetic() && !"#[".contains(it));
        text.split(|it: char| !it.is_alphabetic()).next().unwrap_or_default()
    });
    first.into_iter().find(|word| words.contains(word))
}

/// The contents stand above the first heading of the second level and link to each of these.
fn check_contents(page: &str, text: &str, violations: &mut Vec<Violation>) {
    let listed: String = prose(text)
        .map(|(_, line)| line)
        .take_while(|line| !line.starts_with("## "))
        .collect::<Vec<_>>()
        .join("\n");
    for (line, heading) in headings(text).filter(|(_, heading)| heading.level == 2) {
        let link = format!("](#{})", heading.anchor);
        if !listed.contains(&link) {
            let message = format!("the contents at the top do not link to `#{}`", heading.anchor);
            violations.push(Violation::at(page, line, "contents", message));
        }
    }
}

/// A heading, and what a link to it says behind `#`.
pub struct Heading {
    level: usize,
    /// As GitHub makes it of the text. The second heading of one text has `-1` behind it.
    pub anchor: String,
}

/// The headings of a page, with their lines.
pub fn headings(text: &str) -> impl Iterator<Item = (usize, Heading)> {
    let mut seen: Vec<String> = Vec::new();
    prose(text).filter_map(move |(line, text)| {
        let level = text.chars().take_while(|character| *character == '#').count();
        let title = text.get(level..)?.strip_prefix(' ')?;
        if !LEVELS.contains(&level) {
            return None;
        }
        let plain = anchor(title);
        let before = seen.iter().filter(|one| **one == plain).count();
        let anchor = if before == 0 { plain.clone() } else { format!("{plain}-{before}") };
        seen.push(plain);
        Some((line, Heading { level, anchor }))
    })
}

fn anchor(title: &str) -> String {
    let kept = title.chars().filter(|it| it.is_alphanumeric() || matches!(it, ' ' | '-' | '_'));
    kept.map(|character| if character == ' ' { '-' } else { character })
        .flat_map(char::to_lowercase)
        .collect()
}

/// The lines outside code, numbered from 1.
pub fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        (!is_code && !is_fence).then_some((index + 1, line))
    })
}

const CHARACTERS_MAX: usize = 200;

const HEADLESS: &[&str] = &["What", "Whether", "Who", "Whoever", "Whom"];

/// Pages of their day.
const RECORDS: &[&str] = &["docs/decisions/", "docs/results/"];

const LINES_WITHOUT_CONTENTS_MAX: usize = 150;

const LEVELS: RangeInclusive<usize> = 1..=6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_heading_of_one_text_has_a_number() {
        let anchors: Vec<_> =
            headings("# A b\n## A b\n#no heading\n").map(|it| it.1.anchor).collect();
        assert_eq!(anchors, ["a-b", "a-b-1"]);
    }
}

//! A manual page from a page of Markdown: headings, paragraphs, lists, code, and no more than the reference of settings needs.

/// The manual page, in section 5, of a file: its name and what it is, then the Markdown from its first paragraph on. `date` and
/// `source` stand below it.
#[must_use]
pub fn page_of_markdown(
    (name, what): (&str, &str),
    markdown: &str,
    date: &str,
    source: &str,
) -> String {
    let what = escaped(what);
    let mut page = format!(
        ".TH {name} 5 \"{date}\" \"{source}\" \"kettle manual\"\n.ie \\n(.g .ds Aq \\(aq\n.el .ds Aq '\n\
         .SH NAME\n{name} \\- {what}\n.SH DESCRIPTION\n"
    );
    // The title, and the comment for those who edit it.
    let text = markdown.split_once("-->").map_or(markdown, |(_, rest)| rest);
    let mut writer = Writer { is_open: true, is_heading: true, is_example: false };
    for line in text.lines() {
        writer.line(&mut page, line);
    }
    page.push_str(".SH SEE ALSO\n\\fBkettle\\fR(1)\n");
    page
}

/// The state after the lines so far, for the next one.
#[derive(Default)]
struct Writer {
    is_example: bool,
    /// True if the paragraph that the next words belong to has its request.
    is_open: bool,
    /// True if that request is a heading, which opens the first paragraph below it.
    is_heading: bool,
}

impl Writer {
    fn line(&mut self, page: &mut String, line: &str) {
        let text = line.trim_start();
        let depth = line.len() - text.len();
        if text.is_empty() && !self.is_example {
            self.is_open = self.is_heading;
            return;
        }
        let was_heading = std::mem::take(&mut self.is_heading);
        if text.starts_with("```") {
            let begin = if was_heading { ".EX\n" } else { ".PP\n.EX\n" };
            page.push_str(if self.is_example { ".EE\n" } else { begin });
            (self.is_example, self.is_open) = (!self.is_example, false);
        } else if self.is_example {
            push_line(page, &escaped(line));
        } else if let Some(heading) = text.strip_prefix("### ") {
            push_line(page, &format!(".SS {}", inline(heading)));
            (self.is_open, self.is_heading) = (true, true);
        } else if let Some(heading) = text.strip_prefix("## ") {
            push_line(page, &format!(".SH {}", inline(heading)));
            (self.is_open, self.is_heading) = (true, true);
        } else if let Some(item) = text.strip_prefix("- ") {
            page.push_str(if depth == 0 { ".IP \\(bu 3\n" } else { ".IP \"  \\(en\" 5\n" });
            push_line(page, &inline(item));
            self.is_open = true;
        } else {
            if !self.is_open {
                page.push_str(".PP\n");
            }
            push_line(page, &inline(text));
            self.is_open = true;
        }
    }
}

/// Adds a line; one that begins like a request is kept from being one.
fn push_line(page: &mut String, line: &str) {
    if line.starts_with('\'') || (line.starts_with('.') && !is_request(line)) {
        page.push_str("\\&");
    }
    page.push_str(line);
    page.push('\n');
}

fn is_request(line: &str) -> bool {
    [".SS ", ".SH ", ".IP "].iter().any(|request| line.starts_with(request))
}

/// Words with `code`, **strong words** and [links](…) in them.
fn inline(text: &str) -> String {
    let without_links = without_links(text);
    let mut page = String::new();
    for (index, part) in without_links.split('`').enumerate() {
        let is_code = index % 2 == 1;
        if is_code {
            page.push_str(&format!("\\fB{}\\fR", escaped(part)));
            continue;
        }
        for (index, part) in part.split("**").enumerate() {
            let part = escaped(part);
            page.push_str(&if index % 2 == 1 { format!("\\fB{part}\\fR") } else { part });
        }
    }
    page
}

/// `[words](target)` becomes `words`, which name the file or tell where it is.
fn without_links(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](") {
        let Some((target, behind)) = after.split_once(')') else { break };
        let Some((start, words)) = before.rsplit_once('[') else { break };
        out.push_str(start);
        out.push_str(words);
        if target.starts_with("https://") {
            out.push_str(&format!(" ({target})"));
        }
        rest = behind;
    }
    out.push_str(rest);
    out
}

/// With every character that roff reads as something else, or not at all, by its name.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::new();
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\(rs"),
            '-' => out.push_str("\\-"),
            '\'' => out.push_str("\\*(Aq"),
            it if it.is_ascii() => out.push(it),
            it => out.push_str(&format!("\\[u{:04X}]", u32::from(it))),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_becomes_roff() {
        let mut page = String::new();
        let mut writer = Writer::default();
        let text = "\
## `[tls]`\n\nWhat's in [a page](x.md), [TOML](https://toml.io).\n.dot\n\n- Takes: `\"a\"`, **not** more.\n  and on\n\n  ```toml\n  a = 'b'\n  ```\n";
        text.lines().for_each(|line| writer.line(&mut page, line));
        assert_eq!(
            page,
            ".SH \\fB[tls]\\fR\nWhat\\*(Aqs in a page, TOML (https://toml.io).\n\\&.dot\n\
             .IP \\(bu 3\nTakes: \\fB\"a\"\\fR, \\fBnot\\fR more.\nand on\n.PP\n.EX\n  a = \\*(Aqb\\*(Aq\n.EE\n"
        );
    }

    #[test]
    fn a_page_begins_behind_the_comment_for_editors() {
        let page = page_of_markdown(
            ("x.toml", "a file"),
            "# x.toml\n\n<!-- edit elsewhere -->\n\nWords \u{2192}.\n",
            "2026-11-22",
            "x 1",
        );
        assert!(page.starts_with(".TH x.toml 5 \"2026-11-22\" \"x 1\""));
        assert!(page.contains(".SH DESCRIPTION\nWords \\[u2192].\n.SH SEE ALSO"), "{page}");
    }
}

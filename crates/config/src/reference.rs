//! The reference page `docs/config.md`, written from the declarations of the settings.

use crate::model::Config;
use crate::setting::{
    DefaultText, Section, Setting, Settings, ValueShape, bounds_text, duration_text, size_text,
};

const TITLE: &str = "# kettle.toml";

const INTRODUCTION: &str = "\
<!-- Written by `KETTLE_BLESS=1 cargo test -p kettle-config reference`; edit the doc comments in
crates/config/src/model instead. -->

This page lists every setting of kettle's configuration file. `kettle check --config kettle.toml`
finds all mistakes in a file without starting anything. An annotated example is in
[`packaging/kettle.example.toml`](../packaging/kettle.example.toml). Editors that know JSON schemas
can use [`packaging/kettle.schema.json`](../packaging/kettle.schema.json): put
`#:schema kettle.schema.json` on the first line of the file.

The file is [TOML](https://toml.io). A few rules hold everywhere:

- A **size** is a number of bytes, or a text with a unit: `512`, `\"64 KiB\"`, `\"1 MiB\"`, `\"2 GiB\"`.
- A **duration** is a text with units: `\"500ms\"`, `\"10s\"`, `\"5m\"`, `\"1h30m\"`, `\"365d\"`.
- A **path** that is not absolute starts from the folder of the configuration file.
- An **address** is an IP address and a port: `\"0.0.0.0:443\"`, `\"[::]:443\"`.
- `[name]` stands once in a file. `[[name]]` stands once for each listener, site, route or
  certificate; `[[site.route]]` belongs to the `[[site]]` above it.
- An unknown setting is an error, never ignored.

The smallest useful file:

```toml
[[listener]]
address = \"0.0.0.0:443\"

[[site]]
names = [\"example.org\"]

[[site.certificate]]
chain = \"/etc/kettle/example.org.pem\"
key = \"/etc/kettle/example.org.key\"

[[site.route]]
root = \"/srv/www\"
```
";

/// The reference page of all settings, in Markdown.
pub fn reference_markdown() -> String {
    let mut tables = String::new();
    for setting in Config::describe().settings {
        write_table(&mut tables, setting.name, &setting);
    }
    format!("{TITLE}\n\n**Contents**\n\n{}\n{INTRODUCTION}{tables}", contents(&tables))
}

/// A link to each table, an item for each that stands alone in the file.
fn contents(tables: &str) -> String {
    let mut list = String::new();
    let mut anchors = Vec::new();
    for line in tables.lines().filter(|line| line.starts_with('#')) {
        let Some((level, name)) = line.split_once(" `") else { continue };
        let header = name.trim_end_matches('`');
        let anchor = header.replace(['[', ']', '.'], "");
        // GitHub numbers the later headings of one name.
        let before = anchors.iter().filter(|one| **one == anchor).count();
        let number = if before == 0 { String::new() } else { format!("-{before}") };
        if level == "##" {
            let begin = if header.contains('.') { "  " } else { "- " };
            list.push_str(&format!("{begin}[`{header}`](#{anchor}{number})\n"));
        }
        anchors.push(anchor);
    }
    list
}

/// Writes a table with its settings, then the tables inside it.
fn write_table(page: &mut String, name: &str, table: &Setting) {
    let Some((header, section)) = header_and_section(name, table) else {
        return;
    };
    page.push_str(&format!("\n## `{header}`\n\n{}\n", plain(table.doc)));
    let (tables, settings): (Vec<_>, Vec<_>) =
        section.settings.into_iter().partition(|setting| has_own_heading(&setting.shape));
    for setting in &settings {
        write_setting(page, name, setting);
    }
    for inner in &tables {
        write_table(page, &format!("{name}.{}", inner.name), inner);
    }
}

/// The headers of the tables that have a setting of this name, in the order of the page.
pub(crate) fn tables_with(setting: &str) -> Vec<String> {
    fn search(name: &str, table: &Setting, wanted: &str, found: &mut Vec<String>) {
        let Some((header, section)) = header_and_section(name, table) else { return };
        if section.settings.iter().any(|setting| setting.name == wanted) {
            found.push(header);
        }
        for inner in &section.settings {
            search(&format!("{name}.{}", inner.name), inner, wanted, found);
        }
    }
    let mut found = Vec::new();
    for table in Config::describe().settings {
        search(table.name, &table, setting, &mut found);
    }
    found
}

fn has_own_heading(shape: &ValueShape) -> bool {
    matches!(shape, ValueShape::Table(_) | ValueShape::Tables(_))
}

fn header_and_section(name: &str, table: &Setting) -> Option<(String, Section)> {
    match &table.shape {
        ValueShape::Table(describe) => Some((format!("[{name}]"), describe())),
        ValueShape::Tables(describe) => Some((format!("[[{name}]]"), describe())),
        _ => None,
    }
}

fn write_setting(page: &mut String, table: &str, setting: &Setting) {
    page.push_str(&format!("\n### `{}`\n\n{}\n\n", setting.name, plain(setting.doc)));
    page.push_str(&format!("- Takes: {}.\n", takes(&setting.shape)));
    let default = match &setting.default_value {
        DefaultText::Required => "none, it must be written".to_owned(),
        DefaultText::Value(value) => format!("`{value}`"),
        DefaultText::Unset(meaning) => (*meaning).to_owned(),
    };
    page.push_str(&format!("- Default: {default}.\n"));
    if !setting.only_with.is_empty() {
        let words: Vec<String> =
            setting.only_with.iter().map(|word| format!("`kind = \"{word}\"`")).collect();
        page.push_str(&format!("- Only with: {}.\n", words.join(" or ")));
    }
    if let ValueShape::Map { .. } = setting.shape {
        let name = setting.name;
        let entry = setting.shape.example_entry().unwrap_or_default();
        page.push_str(&format!("- Example:\n\n  ```toml\n  [{table}.{name}]\n  {entry}\n  ```\n"));
    }
    let words = match &setting.shape {
        ValueShape::Word(words) => words,
        ValueShape::List { of, .. } | ValueShape::Either(of, _) => match of.as_ref() {
            ValueShape::Word(words) => words,
            _ => return,
        },
        _ => return,
    };
    page.push('\n');
    for (word, meaning) in words {
        page.push_str(&format!("  - `\"{word}\"`: {}\n", plain(meaning).replace('\n', "\n    ")));
    }
}

/// The values a setting takes, in words.
fn takes(shape: &ValueShape) -> String {
    match shape {
        ValueShape::Flag => "`true` or `false`".to_owned(),
        ValueShape::Number { min, max, unit } => bounds_text(*min, *max, unit),
        ValueShape::OneNumber(numbers) => {
            let numbers: Vec<String> = numbers.iter().map(u16::to_string).collect();
            format!("one of {}", numbers.join(", "))
        }
        ValueShape::Size { min, max } => {
            format!("a size from {} to {}", size_text(*min), size_text(*max))
        }
        ValueShape::Duration { min, max } => {
            format!("a duration from {} to {}", duration_text(*min), duration_text(*max))
        }
        ValueShape::Word(words) => {
            let words: Vec<String> =
                words.iter().map(|(word, _)| format!("`\"{word}\"`")).collect();
            format!("one of {}", words.join(", "))
        }
        ValueShape::Text(rule) => format!("{}, such as `\"{}\"`", rule.what, rule.example),
        ValueShape::Address { example } => format!("an address, such as `\"{example}\"`"),
        ValueShape::Path => "a path".to_owned(),
        ValueShape::List { of, may_be_empty } => {
            let least = if *may_be_empty { "" } else { " with at least one entry" };
            format!("a list{least}, each entry {}", takes(of))
        }
        ValueShape::Map { keys, values } => {
            format!("a table; each key is {}, each value {}", keys.what, takes(values))
        }
        ValueShape::Table(_) | ValueShape::Tables(_) => "a table".to_owned(),
        ValueShape::Either(first, second) => format!("{}; or {}", takes(first), takes(second)),
    }
}

/// A doc comment without the space each of its lines begins with.
fn plain(doc: &str) -> String {
    doc.lines().map(str::trim).collect::<Vec<_>>().join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests;

//! Tables whose keys the operator chooses: headers, error pages, cache rules, MIME types, backends by protocol.

use std::collections::{BTreeMap, HashMap};

use super::field_template::{
    FIELD_TEMPLATE, FieldTemplate, GROUP_TEMPLATE, RESPONSE_TEMPLATE, field_template,
    group_template,
};
use super::quote::bare_key;
use super::regex::{EXPRESSION, Expression};
use super::rules::{self, TextRule};
use super::text::{located_text, read_text};
use super::{DefaultText, ValueShape, ValueType};
use crate::diagnostic::Help;
pub use crate::glob::CacheRule;
use crate::located::Located;
use crate::read::{Item, Key, Reader};

/// The entries of a table in the order of the file, with keys that follow `rule`.
pub(crate) fn read_entries<'i>(
    rule: &TextRule,
    item: &Item<'i>,
    reader: &mut Reader<'_>,
) -> Option<Vec<Entry<'i>>> {
    let Some(entries) = item.entries() else {
        let takes = format!("a table, each key {}", rule.what);
        reader.wrong_type(item, &takes, Help::write(item.header()));
        return None;
    };
    let mut read = Vec::new();
    for (key, value) in entries {
        match (rule.read)(key.text) {
            Ok(text) => read.push((text, key, value)),
            Err(wrong) => {
                let message =
                    format!("each key of `{}` is {}: {}", item.name(), rule.what, wrong.why);
                reader.report_at(&key.span, message, wrong.help.advice(rule, bare_key));
            }
        }
    }
    Some(read)
}

pub(crate) fn map_form(keys: &'static TextRule, values: ValueShape) -> ValueShape {
    ValueShape::Map { keys, values: Box::new(values) }
}

/// A table whose keys and values are texts that follow rules.
pub(crate) struct TextTable<T> {
    keys: &'static TextRule,
    values: &'static TextRule,
    /// True if several values of a key may stand in a list.
    takes_lists: bool,
    /// The meaning of its absence.
    absent: &'static str,
    /// Reads its entries, whose values follow the rule.
    read: fn(&'static TextRule, Vec<Entry<'_>>, &mut Reader<'_>) -> T,
}

/// A key as its rule reads it, the same as it is written, and the value.
type Entry<'i> = (String, Key<'i>, Item<'i>);

impl<T: Default> ValueType for TextTable<T> {
    type Value = T;

    fn default_value(&self) -> T {
        T::default()
    }

    fn shape(&self) -> ValueShape {
        let value = || ValueShape::Text(self.values);
        if !self.takes_lists {
            return map_form(self.keys, value());
        }
        let list = ValueShape::List { of: Box::new(value()), may_be_empty: true };
        map_form(self.keys, ValueShape::Either(Box::new(value()), Box::new(list)))
    }

    fn default_text(&self) -> DefaultText {
        DefaultText::Unset(self.absent)
    }

    fn read(&self, item: &Item<'_>, reader: &mut Reader<'_>) -> Option<T> {
        let entries = read_entries(self.keys, item, reader)?;
        Some((self.read)(self.values, entries, reader))
    }
}

/// Fields, each with its values in order.
type Fields = Vec<(String, Vec<FieldTemplate>)>;

/// Headers of responses, each with its values in order, in which words are filled in; one without values is taken away.
pub(crate) fn headers() -> TextTable<Fields> {
    TextTable {
        keys: &rules::HEADER_NAME,
        values: &RESPONSE_TEMPLATE,
        takes_lists: true,
        absent: "none",
        read: read_headers,
    }
}

/// The same for requests.
pub(crate) fn request_headers() -> TextTable<Fields> {
    TextTable { values: &FIELD_TEMPLATE, ..headers() }
}

fn read_headers(
    rule: &'static TextRule,
    entries: Vec<Entry<'_>>,
    reader: &mut Reader<'_>,
) -> Fields {
    let mut headers = Fields::new();
    let mut first: HashMap<String, String> = HashMap::new();
    for (name, key, value) in entries {
        if let Some(earlier) = first.get(&name.to_ascii_lowercase()) {
            let message = format!("`{name}` and `{earlier}` are the same header");
            let help = format!("{earlier} = [\"…\", \"…\"]");
            reader.report_at(&key.span, message, Help::write(help));
            continue;
        }
        first.insert(name.to_ascii_lowercase(), name.clone());
        headers.push((name, read_values(rule, value, field_template, reader)));
    }
    headers
}

/// Reads a value, or those of a list.
fn read_values(
    rule: &'static TextRule,
    value: Item<'_>,
    template: fn(&str) -> Option<FieldTemplate>,
    reader: &mut Reader<'_>,
) -> Vec<FieldTemplate> {
    reader.remember(&value);
    let mut values = Vec::new();
    for element in value.elements().unwrap_or_else(|| vec![value]) {
        let text = read_text(rule, &element, reader);
        values.extend(text.and_then(|text| template(&text)));
    }
    values
}

/// The parameters of programs, by name: each a text with words and groups; one without is taken away.
pub(crate) fn parameters() -> TextTable<Fields> {
    TextTable {
        keys: &rules::PARAMETER_NAME,
        values: &GROUP_TEMPLATE,
        takes_lists: true,
        absent: "none",
        read: |rule, entries, reader| {
            let entries = entries.into_iter();
            let read = entries
                .map(|(name, _, value)| (name, read_values(rule, value, group_template, reader)));
            read.collect()
        },
    }
}

/// `Cache-Control` values by pattern.
pub(crate) fn cache_rules() -> TextTable<Vec<CacheRule>> {
    TextTable {
        keys: &rules::PATTERN,
        values: &rules::CACHE_CONTROL,
        takes_lists: false,
        absent: "no `Cache-Control` is sent",
        read: |rule, entries, reader| {
            let read = entries.into_iter().filter_map(|(pattern, _, value)| {
                Some(CacheRule { pattern, value: read_text(rule, &value, reader)? })
            });
            read.collect()
        },
    }
}

/// MIME types by file extension.
pub(crate) fn mime_types() -> TextTable<BTreeMap<String, String>> {
    TextTable {
        keys: &rules::EXTENSION,
        values: &rules::MIME_TYPE,
        takes_lists: false,
        absent: "the built-in table alone",
        read: |rule, entries, reader| {
            let read = entries.into_iter().filter_map(|(extension, _, value)| {
                Some((extension, read_text(rule, &value, reader)?))
            });
            read.collect()
        },
    }
}

/// Names of backends by the application protocol (ALPN) that they take.
pub(crate) fn backends_by_alpn() -> TextTable<Vec<(String, Located<String>)>> {
    TextTable {
        keys: &rules::ALPN,
        values: &rules::BACKEND_NAME,
        takes_lists: false,
        absent: "the protocol decides nothing",
        read: |rule, entries, reader| {
            let kind = located_text(rule);
            let read = entries
                .into_iter()
                .filter_map(|(protocol, _, name)| Some((protocol, kind.read(&name, reader)?)));
            read.collect()
        },
    }
}

pub(crate) fn map_values() -> TextTable<Vec<(String, FieldTemplate)>> {
    TextTable {
        keys: &rules::ANY_TEXT,
        values: &FIELD_TEMPLATE,
        takes_lists: false,
        absent: "none",
        read: |rule, entries, reader| {
            let read = entries.into_iter().map(|(text, _, value)| {
                reader.remember(&value);
                let said = read_text(rule, &value, reader);
                (text, said.and_then(|said| field_template(&said)).unwrap_or_default())
            });
            read.collect()
        },
    }
}

/// The values of a map for what regular expressions fit.
pub(crate) fn map_expressions() -> TextTable<Vec<(Expression, FieldTemplate)>> {
    TextTable {
        keys: &EXPRESSION,
        values: &GROUP_TEMPLATE,
        takes_lists: false,
        absent: "none",
        read: read_expressions,
    }
}

fn read_expressions(
    rule: &'static TextRule,
    entries: Vec<Entry<'_>>,
    reader: &mut Reader<'_>,
) -> Vec<(Expression, FieldTemplate)> {
    let mut read = Vec::new();
    for (text, _, value) in entries {
        reader.remember(&value);
        let said = read_text(rule, &value, reader);
        let said = said.and_then(|said| group_template(&said));
        let (Ok(expression), Some(said)) = (Expression::new(&text), said) else { continue };
        match said.with_groups(&expression) {
            Ok(said) => read.push((expression, said)),
            Err(group) => {
                let groups = expression.groups();
                let message = format!(
                    "{{{group}}} is no word, and no group of this expression, which has {groups}"
                );
                let help =
                    "write {0} for all that fits, {1} for the first group, or {{ for a brace";
                reader.report(&value, message, Help::act(help));
            }
        }
    }
    read
}

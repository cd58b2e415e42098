//! Tables whose keys the operator chooses: headers, error pages, cache rules, MIME types, backends by protocol.

use std::collections::{BTreeMap, HashMap};

use super::field_template::{
    FIELD_TEMPLATE, FieldTemplate, GROUP_TEMPLATE, RESPONSE_TEMPLATE, field_template,
    group_template,
};
use super::quote::bare_key;
use super::regex::{EXPRESSION, Expression};
use super::rules::{self, TextRule};
use super::text::{LocatedText, located_text, read_text};
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
) -> Option<Vec<(String, Key<'i>, Item<'i>)>> {
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

/// Headers of responses, each with its values in order, in which words are filled in; one without values is taken away.
pub(crate) fn headers() -> Headers {
    Headers { rule: &RESPONSE_TEMPLATE }
}

/// The same for requests.
pub(crate) fn request_headers() -> Headers {
    Headers { rule: &FIELD_TEMPLATE }
}

pub(crate) struct Headers {
    rule: &'static TextRule,
}

impl ValueType for Headers {
    type Value = Vec<(String, Vec<FieldTemplate>)>;

    fn default_value(&self) -> Self::Value {
        Vec::new()
    }

    fn shape(&self) -> ValueShape {
        let value = || Box::new(ValueShape::Text(self.rule));
        let list = ValueShape::List { of: value(), may_be_empty: true };
        map_form(&rules::HEADER_NAME, ValueShape::Either(value(), Box::new(list)))
    }

    fn default_text(&self) -> DefaultText {
        DefaultText::Unset("none")
    }

    fn read(&self, item: &Item<'_>, reader: &mut Reader<'_>) -> Option<Self::Value> {
        let mut headers: Self::Value = Vec::new();
        let mut first: HashMap<String, String> = HashMap::new();
        for (name, key, value) in read_entries(&rules::HEADER_NAME, item, reader)? {
            if let Some(earlier) = first.get(&name.to_ascii_lowercase()) {
                let message = format!("`{name}` and `{earlier}` are the same header");
                let help = format!("{earlier} = [\"…\", \"…\"]");
                reader.report_at(&key.span, message, Help::write(help));
                continue;
            }
            first.insert(name.to_ascii_lowercase(), name.clone());
            reader.remember(&value);
            let mut values = Vec::new();
            for element in value.elements().unwrap_or_else(|| vec![value]) {
                let text = read_text(self.rule, &element, reader);
                values.extend(text.and_then(|text| field_template(&text)));
            }
            headers.push((name, values));
        }
        Some(headers)
    }
}

/// The parameters of programs, by name: each a text with words and groups; one without is taken away.
pub(crate) fn parameters() -> Parameters {
    Parameters
}

pub(crate) struct Parameters;

impl ValueType for Parameters {
    type Value = Vec<(String, Vec<FieldTemplate>)>;

    fn default_value(&self) -> Self::Value {
        Vec::new()
    }

    fn shape(&self) -> ValueShape {
        let value = || Box::new(ValueShape::Text(&GROUP_TEMPLATE));
        let list = ValueShape::List { of: value(), may_be_empty: true };
        map_form(&rules::PARAMETER_NAME, ValueShape::Either(value(), Box::new(list)))
    }

    fn default_text(&self) -> DefaultText {
        DefaultText::Unset("none")
    }

    fn read(&self, item: &Item<'_>, reader: &mut Reader<'_>) -> Option<Self::Value> {
        let mut parameters = Self::Value::new();
        for (name, _, value) in read_entries(&rules::PARAMETER_NAME, item, reader)? {
            reader.remember(&value);
            let mut values = Vec::new();
            for element in value.elements().unwrap_or_else(|| vec![value]) {
                let text = read_text(&GROUP_TEMPLATE, &element, reader);
                values.extend(text.and_then(|text| group_template(&text)));
            }
            parameters.push((name, values));
        }
        Some(parameters)
    }
}

/// `Cache-Control` values by pattern.
pub(crate) fn cache_rules() -> CacheRules {
    CacheRules
}

pub(crate) struct CacheRules;

impl ValueType for CacheRules {
    type Value = Vec<CacheRule>;

    fn default_value(&self) -> Self::Value {
        Vec::new()
    }

    fn shape(&self) -> ValueShape {
        map_form(&rules::PATTERN, ValueShape::Text(&rules::CACHE_CONTROL))
    }

    fn default_text(&self) -> DefaultText {
        DefaultText::Unset("no `Cache-Control` is sent")
    }

    fn read(&self, item: &Item<'_>, reader: &mut Reader<'_>) -> Option<Self::Value> {
        let mut found = Vec::new();
        for (pattern, _, value) in read_entries(&rules::PATTERN, item, reader)? {
            if let Some(value) = read_text(&rules::CACHE_CONTROL, &value, reader) {
                found.push(CacheRule { pattern, value });
            }
        }
        Some(found)
    }
}

/// MIME types by file extension.
pub(crate) fn mime_types() -> MimeTypes {
    MimeTypes
}

pub(crate) struct MimeTypes;

impl ValueType for MimeTypes {
    type Value = BTreeMap<String, String>;

    fn default_value(&self) -> Self::Value {
        BTreeMap::new()
    }

    fn shape(&self) -> ValueShape {
        map_form(&rules::EXTENSION, ValueShape::Text(&rules::MIME_TYPE))
    }

    fn default_text(&self) -> DefaultText {
        DefaultText::Unset("the built-in table alone")
    }

    fn read(&self, item: &Item<'_>, reader: &mut Reader<'_>) -> Option<Self::Value> {
        let mut types = BTreeMap::new();
        for (extension, _, value) in read_entries(&rules::EXTENSION, item, reader)? {
            if let Some(value) = read_text(&rules::MIME_TYPE, &value, reader) {
                types.insert(extension, value);
            }
        }
        Some(types)
    }
}

/// Names of backends by the application protocol (ALPN) that they take.
pub(crate) fn backends_by_alpn() -> BackendsByAlpn {
    BackendsByAlpn
}

pub(crate) struct BackendsByAlpn;

impl ValueType for BackendsByAlpn {
    type Value = Vec<(String, Located<String>)>;

    fn default_value(&self) -> Self::Value {
        Vec::new()
    }

    fn shape(&self) -> ValueShape {
        map_form(&rules::ALPN, ValueShape::Text(&rules::BACKEND_NAME))
    }

    fn default_text(&self) -> DefaultText {
        DefaultText::Unset("the protocol decides nothing")
    }

    fn read(&self, item: &Item<'_>, reader: &mut Reader<'_>) -> Option<Self::Value> {
        let kind: LocatedText = located_text(&rules::BACKEND_NAME);
        let entries = read_entries(&rules::ALPN, item, reader)?.into_iter();
        let read =
            entries.filter_map(|(protocol, _, name)| Some((protocol, kind.read(&name, reader)?)));
        Some(read.collect())
    }
}

/// The values of a map for texts.
pub(crate) fn map_values() -> MapValues {
    MapValues
}

pub(crate) struct MapValues;

impl ValueType for MapValues {
    type Value = Vec<(String, FieldTemplate)>;

    fn default_value(&self) -> Self::Value {
        Vec::new()
    }

    fn shape(&self) -> ValueShape {
        map_form(&rules::ANY_TEXT, ValueShape::Text(&FIELD_TEMPLATE))
    }

    fn default_text(&self) -> DefaultText {
        DefaultText::Unset("none")
    }

    fn read(&self, item: &Item<'_>, reader: &mut Reader<'_>) -> Option<Self::Value> {
        let mut values = Vec::new();
        for (text, _, value) in read_entries(&rules::ANY_TEXT, item, reader)? {
            reader.remember(&value);
            let said = read_text(&FIELD_TEMPLATE, &value, reader);
            values.push((text, said.and_then(|said| field_template(&said)).unwrap_or_default()));
        }
        Some(values)
    }
}

/// The values of a map for what regular expressions fit.
pub(crate) fn map_expressions() -> MapExpressions {
    MapExpressions
}

pub(crate) struct MapExpressions;

impl ValueType for MapExpressions {
    type Value = Vec<(Expression, FieldTemplate)>;

    fn default_value(&self) -> Self::Value {
        Vec::new()
    }

    fn shape(&self) -> ValueShape {
        map_form(&EXPRESSION, ValueShape::Text(&GROUP_TEMPLATE))
    }

    fn default_text(&self) -> DefaultText {
        DefaultText::Unset("none")
    }

    fn read(&self, item: &Item<'_>, reader: &mut Reader<'_>) -> Option<Self::Value> {
        let mut read = Vec::new();
        for (text, _, value) in read_entries(&EXPRESSION, item, reader)? {
            reader.remember(&value);
            let said = read_text(&GROUP_TEMPLATE, &value, reader);
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
        Some(read)
    }
}

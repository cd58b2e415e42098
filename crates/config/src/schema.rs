//! The JSON schema of the configuration, for editors that complete and check TOML.

use serde_json::{Map, Value, json};
use toml::de::{DeTable, DeValue};

use crate::model::Config;
use crate::setting::{
    DefaultText, Section, Setting, Settings, ValueShape, duration_pattern, size_pattern,
};

/// The schema of `kettle.toml` (JSON Schema draft 7, which TOML editors know best).
pub fn json_schema() -> Value {
    let mut schema = object(&Config::describe());
    schema.insert("$schema".to_owned(), json!("http://json-schema.org/draft-07/schema#"));
    schema.insert("title".to_owned(), json!("kettle.toml"));
    Value::Object(schema)
}

/// The schema as the repository keeps it.
pub fn json_schema_text() -> String {
    format!("{:#}\n", json_schema())
}

fn object(section: &Section) -> Map<String, Value> {
    let is_required = |setting: &&Setting| {
        matches!(setting.default_value, DefaultText::Required) && setting.only_with.is_empty()
    };
    let required: Vec<&str> =
        section.settings.iter().filter(is_required).map(|setting| setting.name).collect();
    let mut properties: Map<String, Value> = Map::new();
    for setting in &section.settings {
        let own = property(setting);
        // Its values depend on another setting.
        let either = properties.remove(setting.name).map(|other| match other.get("anyOf") {
            Some(Value::Array(others)) if other.get("description").is_none() => {
                json!({ "anyOf": others.iter().chain([&own]).collect::<Vec<_>>() })
            }
            _ => json!({ "anyOf": [other, own] }),
        });
        properties.insert(setting.name.to_owned(), either.unwrap_or(own));
    }
    let mut object = Map::new();
    object.insert("type".to_owned(), json!("object"));
    object.insert("description".to_owned(), json!(one_line(section.about)));
    object.insert("additionalProperties".to_owned(), json!(false));
    object.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        object.insert("required".to_owned(), json!(required));
    }
    object
}

fn property(setting: &Setting) -> Value {
    let mut property = form_schema(&setting.shape);
    property.insert("description".to_owned(), json!(one_line(setting.doc)));
    if let DefaultText::Value(text) = &setting.default_value
        && let Some(default) = toml_value(text)
    {
        property.insert("default".to_owned(), default);
    }
    Value::Object(property)
}

fn form_schema(shape: &ValueShape) -> Map<String, Value> {
    let schema = match shape {
        ValueShape::Flag => json!({ "type": "boolean" }),
        ValueShape::Number { min, max, .. } => {
            json!({ "type": "integer", "minimum": min, "maximum": max })
        }
        ValueShape::OneNumber(numbers) => json!({ "type": "integer", "enum": numbers }),
        ValueShape::Size { min, max } => json!({ "anyOf": [
            { "type": "integer", "minimum": min, "maximum": max },
            { "type": "string", "pattern": size_pattern() },
        ] }),
        ValueShape::Duration { .. } => json!({ "type": "string", "pattern": duration_pattern() }),
        ValueShape::Word(words) => {
            let words = words
                .iter()
                .map(|(word, meaning)| json!({ "const": word, "description": one_line(meaning) }));
            json!({ "oneOf": words.collect::<Vec<_>>() })
        }
        ValueShape::Text(rule) => json!({ "type": "string", "examples": [rule.example] }),
        ValueShape::Address { example } => json!({ "type": "string", "examples": [example] }),
        ValueShape::Path => json!({ "type": "string", "minLength": 1 }),
        ValueShape::List { of, may_be_empty } => json!({
            "type": "array",
            "items": form_schema(of),
            "minItems": u8::from(!may_be_empty),
            "uniqueItems": true,
        }),
        ValueShape::Map { values, .. } => {
            json!({ "type": "object", "additionalProperties": form_schema(values) })
        }
        ValueShape::Table(describe) => Value::Object(object(&describe())),
        ValueShape::Tables(describe) => json!({ "type": "array", "items": object(&describe()) }),
        ValueShape::Either(first, second) => {
            json!({ "anyOf": [form_schema(first), form_schema(second)] })
        }
    };
    match schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

/// A documentation text without its line breaks.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A default as JSON.
fn toml_value(text: &str) -> Option<Value> {
    let document = format!("default = {text}");
    let table = DeTable::parse(&document).ok()?.into_inner();
    table.iter().next().and_then(|(_, value)| to_json(value.get_ref()))
}

fn to_json(value: &DeValue<'_>) -> Option<Value> {
    match value {
        DeValue::String(text) => Some(json!(text)),
        DeValue::Integer(number) => number.as_str().parse::<u64>().ok().map(|number| json!(number)),
        DeValue::Boolean(flag) => Some(json!(flag)),
        DeValue::Array(array) => array.iter().map(|element| to_json(element.get_ref())).collect(),
        DeValue::Float(_) | DeValue::Datetime(_) | DeValue::Table(_) => None,
    }
}

#[cfg(test)]
mod tests;

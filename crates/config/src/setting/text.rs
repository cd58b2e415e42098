//! Texts that follow a rule, alone and in lists.

use std::collections::HashSet;

use super::quote::quoted;
use super::rules::TextRule;
use super::section::{WithPlace, located};
use super::{DefaultText, ValueShape, ValueType};
use crate::diagnostic::Help;
use crate::located::Located;
use crate::read::{Item, Reader};

/// Reads one text by its rule.
pub(crate) fn read_text(
    rule: &TextRule,
    item: &Item<'_>,
    reader: &mut Reader<'_>,
) -> Option<String> {
    let Some(text) = item.as_str() else {
        let number = item.value().as_integer().map(|number| number.as_str().to_owned());
        let suggestion = number.filter(|number| (rule.read)(number).is_ok());
        let help = quoted(suggestion.as_deref().unwrap_or(rule.example));
        reader.wrong_type(item, rule.what, Help::write(help));
        return None;
    };
    match (rule.read)(text) {
        Ok(text) => Some(text),
        Err(wrong) => {
            let message = format!("`{}` takes {}: {}", item.name(), rule.what, wrong.why);
            reader.report(item, message, wrong.help.advice(rule, quoted));
            None
        }
    }
}

/// One text. An empty default serves settings that are optional or required.
pub(crate) fn text(rule: &'static TextRule, default: &'static str) -> Text {
    Text { rule, default }
}

pub(crate) struct Text {
    rule: &'static TextRule,
    default: &'static str,
}

impl ValueType for Text {
    type Value = String;

    fn default_value(&self) -> String {
        self.default.to_owned()
    }

    fn shape(&self) -> ValueShape {
        ValueShape::Text(self.rule)
    }

    fn default_text(&self) -> DefaultText {
        DefaultText::Value(quoted(self.default))
    }

    fn read(&self, item: &Item<'_>, reader: &mut Reader<'_>) -> Option<String> {
        read_text(self.rule, item, reader)
    }
}

/// A text that is kept as what it means.
pub(crate) struct Read<T> {
    pub(super) rule: &'static TextRule,
    pub(super) read: fn(&str) -> Option<T>,
    pub(super) none: fn() -> T,
}

impl<T> ValueType for Read<T> {
    type Value = T;

    fn default_value(&self) -> T {
        (self.none)()
    }

    fn shape(&self) -> ValueShape {
        ValueShape::Text(self.rule)
    }

    fn default_text(&self) -> DefaultText {
        DefaultText::Value(quoted(""))
    }

    fn read(&self, item: &Item<'_>, reader: &mut Reader<'_>) -> Option<T> {
        (self.read)(&read_text(self.rule, item, reader)?)
    }
}

/// One text that keeps its place.
pub(crate) fn located_text(rule: &'static TextRule) -> WithPlace<Text> {
    located(text(rule, ""))
}

pub(crate) fn text_or_off(rule: &'static TextRule, default: &'static str) -> TextOrOff {
    TextOrOff { text: Text { rule, default } }
}

pub(crate) struct TextOrOff {
    text: Text,
}

impl ValueType for TextOrOff {
    type Value = Option<String>;

    fn default_value(&self) -> Option<String> {
        Some(self.text.default_value())
    }

    fn shape(&self) -> ValueShape {
        ValueShape::Either(
            Box::new(self.text.shape()),
            Box::new(ValueShape::Word(vec![("off", "None.")])),
        )
    }

    fn default_text(&self) -> DefaultText {
        self.text.default_text()
    }

    fn read(&self, item: &Item<'_>, reader: &mut Reader<'_>) -> Option<Option<String>> {
        match item.as_str() {
            Some("off") => Some(None),
            _ => self.text.read(item, reader).map(Some),
        }
    }
}

/// A list of texts, possibly empty.
pub(crate) fn texts(rule: &'static TextRule, default: &'static [&'static str]) -> Texts {
    Texts { rule, default }
}

pub(crate) struct Texts {
    rule: &'static TextRule,
    default: &'static [&'static str],
}

impl ValueType for Texts {
    type Value = Vec<String>;

    fn default_value(&self) -> Vec<String> {
        self.default.iter().map(|text| (*text).to_owned()).collect()
    }

    fn shape(&self) -> ValueShape {
        ValueShape::List { of: Box::new(ValueShape::Text(self.rule)), may_be_empty: true }
    }

    fn default_text(&self) -> DefaultText {
        let quoted: Vec<String> = self.default.iter().map(|text| quoted(text)).collect();
        DefaultText::Value(format!("[{}]", quoted.join(", ")))
    }

    fn read(&self, item: &Item<'_>, reader: &mut Reader<'_>) -> Option<Vec<String>> {
        let texts = read_list(self.rule, item, reader)?;
        Some(texts.into_iter().map(|located| located.value).collect())
    }
}

/// A list of texts that keep their places; it must not be empty.
pub(crate) fn located_texts(rule: &'static TextRule) -> LocatedTexts {
    LocatedTexts { rule, absent: DefaultText::Value("[]".to_owned()) }
}

/// A list of texts that keep their places; without it all are meant.
pub(crate) fn located_texts_or_all(rule: &'static TextRule) -> LocatedTexts {
    LocatedTexts { rule, absent: DefaultText::Unset("all") }
}

pub(crate) struct LocatedTexts {
    rule: &'static TextRule,
    absent: DefaultText,
}

impl ValueType for LocatedTexts {
    type Value = Vec<Located<String>>;

    fn default_value(&self) -> Vec<Located<String>> {
        Vec::new()
    }

    fn shape(&self) -> ValueShape {
        ValueShape::List { of: Box::new(ValueShape::Text(self.rule)), may_be_empty: false }
    }

    fn default_text(&self) -> DefaultText {
        self.absent.clone()
    }

    fn read(&self, item: &Item<'_>, reader: &mut Reader<'_>) -> Option<Vec<Located<String>>> {
        let texts = read_list(self.rule, item, reader)?;
        if item.elements().is_some_and(|elements| elements.is_empty()) {
            let message = format!("`{}` needs at least one entry", item.name());
            reader.report(item, message, Help::write(format!("[{}]", quoted(self.rule.example))));
        }
        Some(texts)
    }
}

/// Reads a list of different texts. A text alone is a diagnostic that shows the list to write.
fn read_list(
    rule: &TextRule,
    item: &Item<'_>,
    reader: &mut Reader<'_>,
) -> Option<Vec<Located<String>>> {
    let Some(elements) = item.elements() else {
        let text = item.as_str().unwrap_or(rule.example);
        let help = format!("[{}]", quoted(text));
        reader.wrong_type(item, &format!("a list, each entry {}", rule.what), Help::write(help));
        return None;
    };
    let mut texts: Vec<Located<String>> = Vec::new();
    let mut seen = HashSet::new();
    for element in &elements {
        let Some(text) = read_text(rule, element, reader) else {
            continue;
        };
        if !seen.insert(text.clone()) {
            let message = format!("{} stands twice in `{}`", quoted(&text), item.name());
            reader.report(element, message, Help::act("remove one of both"));
            continue;
        }
        let at = reader.source().position(element.span().start);
        texts.push(Located::new(text, at));
    }
    Some(texts)
}

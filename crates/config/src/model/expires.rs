//! `expires`: until when clients may keep what a route answers.

use std::time::Duration;

use crate::read::{Item, Reader};
use crate::setting::{
    DefaultText, FieldPart, FieldTemplate, MAP_WORD, NamedWord, ValueShape, ValueType, duration,
    parse_duration,
};

/// Until when clients may keep a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expires {
    /// So long after it was sent.
    After(Duration),
    /// It is over already: clients ask again each time.
    Epoch,
    /// The value of a map for the response, as [`Expires::said`] reads it.
    ByMap(FieldTemplate),
}

impl Expires {
    /// Reads what a map says: a duration, or `epoch`; nothing where nothing is added, or where it is no time.
    #[must_use]
    pub fn said(text: &str) -> Option<Self> {
        match text {
            "epoch" => Some(Self::Epoch),
            text => parse_duration(text).filter(|it| *it <= SPAN_MAX).map(Self::After),
        }
    }

    /// The word of a map alone.
    fn by_map(text: &str) -> Option<Self> {
        let template = FieldTemplate::parse(text).ok()?;
        let is_map = matches!(template.parts(), [FieldPart::Named(NamedWord::Map, _)]);
        is_map.then_some(Self::ByMap(template))
    }
}

const SPAN_MAX: Duration = Duration::from_hours(24 * 3_650);

/// Until when clients may keep a response, if that is said.
pub(super) fn expires() -> ExpiresSetting {
    ExpiresSetting
}

pub(super) struct ExpiresSetting;

fn span() -> impl ValueType<Value = Duration> {
    duration(Duration::ZERO, Duration::ZERO, SPAN_MAX)
}

impl ValueType for ExpiresSetting {
    type Value = Option<Expires>;

    fn default_value(&self) -> Option<Expires> {
        None
    }

    fn shape(&self) -> ValueShape {
        let epoch = ValueShape::Word(vec![("epoch", "Clients ask again each time.")]);
        let words = ValueShape::Either(Box::new(epoch), Box::new(ValueShape::Text(&MAP_WORD)));
        ValueShape::Either(Box::new(span().shape()), Box::new(words))
    }

    fn default_text(&self) -> DefaultText {
        DefaultText::Unset("nothing is added")
    }

    fn read(&self, item: &Item<'_>, reader: &mut Reader<'_>) -> Option<Option<Expires>> {
        let by_map = item.as_str().and_then(Expires::by_map);
        if by_map.is_some() {
            return Some(by_map);
        }
        match item.as_str() {
            Some("epoch") => Some(Some(Expires::Epoch)),
            _ => span().read(item, reader).map(|span| Some(Expires::After(span))),
        }
    }
}

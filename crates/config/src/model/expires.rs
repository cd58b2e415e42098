//! `expires`: until when clients may keep what a route answers.

use std::time::Duration;

use crate::read::{Item, Reader};
use crate::setting::{DefaultText, ValueShape, ValueType, duration};

/// Until when clients may keep a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expires {
    /// So long after it was sent.
    After(Duration),
    /// It is over already: clients ask again each time.
    Epoch,
}

/// Until when clients may keep a response, if that is said.
pub(super) fn expires() -> ExpiresSetting {
    ExpiresSetting
}

pub(super) struct ExpiresSetting;

fn span() -> impl ValueType<Value = Duration> {
    duration(Duration::ZERO, Duration::ZERO, Duration::from_hours(24 * 3_650))
}

impl ValueType for ExpiresSetting {
    type Value = Option<Expires>;

    fn default_value(&self) -> Option<Expires> {
        None
    }

    fn shape(&self) -> ValueShape {
        let epoch = ValueShape::Word(vec![("epoch", "Clients ask again each time.")]);
        ValueShape::Either(Box::new(span().shape()), Box::new(epoch))
    }

    fn default_text(&self) -> DefaultText {
        DefaultText::Unset("nothing is added")
    }

    fn read(&self, item: &Item<'_>, reader: &mut Reader<'_>) -> Option<Option<Expires>> {
        match item.as_str() {
            Some("epoch") => Some(Some(Expires::Epoch)),
            _ => span().read(item, reader).map(|span| Some(Expires::After(span))),
        }
    }
}

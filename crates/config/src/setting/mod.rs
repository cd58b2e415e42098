//! What a setting is: its documentation, its kind, and how a table of settings is declared.
//!
//! A [`Kind`] knows its default, its bounds, how to read itself from the file and how to describe
//! itself. [`settings!`] turns a struct whose fields carry a kind into all three.

mod collection;
mod describe;
mod example;
mod network;
mod number;
mod place;
mod quote;
pub(crate) mod rules;
mod section;
mod span;
mod table;
mod text;
mod word;

pub use collection::CacheRule;
pub(crate) use collection::{cache_rules, error_pages, headers, mime_types};
pub(crate) use describe::{Fallback, Form, Section, Setting};
pub(crate) use network::{address, located_address};
pub(crate) use number::{
    KIB, MIB, bounds_text, number, one_number, quoted_size, size, size_pattern, size_text,
};
pub use place::LogTarget;
pub(crate) use place::{LocatedPath, located_path, log_target, path, plain_path};
pub(crate) use quote::quoted;
pub(crate) use section::{Settings, optional, required, section, sections};
pub(crate) use span::{duration, duration_pattern, duration_text};
pub(crate) use table::Table;
pub(crate) use text::{located_texts, text, text_or_off, texts};
pub(crate) use word::{flag, level, word, word_list};

use crate::read::{Item, Reader};

/// The type of a setting: how it is read, bounded, defaulted and described.
pub(crate) trait Kind {
    /// What the rest of kettle gets.
    type Value;

    /// The default; for a required setting an empty value that never leaves a failed parse.
    fn fallback(&self) -> Self::Value;

    /// How the reference page and the schema show the values it takes.
    fn form(&self) -> Form;

    /// How the reference page shows the default.
    fn fallback_text(&self) -> Fallback;

    /// Reads the value, or records at least one finding and returns nothing.
    fn read(&self, item: &Item<'_>, reader: &mut Reader<'_>) -> Option<Self::Value>;
}

/// Ties a kind to the type of its field.
pub(crate) fn kind_of<V, K: Kind<Value = V>>(kind: K) -> K {
    kind
}

/// Declares a table of settings: `/// documentation` `pub field: Type = kind;`, with
/// `as "key"` where the key in the file differs from the field.
macro_rules! settings {
    (
        $(#[doc = $about:literal])+
        pub struct $name:ident {
            $(
                $(#[doc = $doc:literal])+
                pub $field:ident: $type:ty $(as $key:literal)? = $kind:expr,
            )*
        }
        $(beside { $($(#[doc = $beside_doc:literal])+ $visible:vis $beside:ident: $beside_type:ty,)* })?
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[doc = $doc])+ pub $field: $type,)*
            $($($(#[doc = $beside_doc])+ $visible $beside: $beside_type,)*)?
        }

        impl Default for $name {
            fn default() -> Self {
                use $crate::setting::Kind as _;
                Self {
                    $($field: ($kind).fallback(),)*
                    $($($beside: Default::default(),)*)?
                }
            }
        }

        impl $crate::setting::Settings for $name {
            fn describe() -> $crate::setting::Section {
                use $crate::setting::Kind as _;
                $crate::setting::Section {
                    about: concat!($($about, "\n"),+),
                    settings: vec![$($crate::setting::Setting {
                        name: $crate::setting::key!($field $(as $key)?),
                        doc: concat!($($doc, "\n"),+),
                        form: $crate::setting::kind_of::<$type, _>($kind).form(),
                        fallback: $crate::setting::kind_of::<$type, _>($kind).fallback_text(),
                    },)*],
                }
            }

            fn read(item: &$crate::read::Item<'_>, reader: &mut $crate::read::Reader<'_>) -> Option<Self> {
                let names = [$($crate::setting::key!($field $(as $key)?),)*];
                let table = $crate::setting::Table::open(item, &names, reader)?;
                Some(Self {
                    $($field: table.setting($crate::setting::key!($field $(as $key)?), &$kind, reader),)*
                    $($($beside: Default::default(),)*)?
                })
            }
        }
    };
}
pub(crate) use settings;

/// The key of a field in the file.
macro_rules! key {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident as $key:literal) => {
        $key
    };
}
pub(crate) use key;

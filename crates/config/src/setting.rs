//! Settings: their documentation, their kind, and how a table of them is declared.
//!
//! A [`ValueType`] knows its default, its bounds, how to read itself from the file and how to describe
//! itself. [`settings!`] turns a struct whose fields carry a kind into all three.

mod authority;
mod collection;
mod describe;
mod duration;
mod example;
mod fault;
mod field_template;
mod listen_address;
mod name_pattern;
mod network;
mod number;
mod place;
mod quote;
mod regex;
pub(crate) mod rules;
mod section;
mod server_address;
mod table;
mod template;
mod text;
mod word;

pub use authority::BackendHost;
pub(crate) use authority::{AUTHORITY, backend_host};
pub use collection::CacheRule;
pub(crate) use collection::{
    backends_by_alpn, cache_rules, headers, map_expressions, map_form, map_values, mime_types,
    parameters, read_entries, request_headers,
};
pub(crate) use describe::{DefaultText, Section, Setting, ValueShape};
pub(crate) use duration::{duration, duration_pattern, duration_text, parse_duration};
pub(crate) use field_template::CLIENT_IP_HEADER;
pub use field_template::{FieldPart, FieldTemplate, NamedWord, RequestWord, is_own_request_header};
pub(crate) use field_template::{MAP_WORD, answer_text, answer_words, field_words};
pub use listen_address::{Believed, ListenAddress};
pub(crate) use listen_address::{SOCKET_MODE, believed, listen_address};
pub use name_pattern::NamePattern;
pub(crate) use name_pattern::{PATTERN_BYTES_OF_SITE_MAX, are_patterns_small_enough};
pub use network::Network;
pub(crate) use network::{address, networks};
pub(crate) use number::{
    KIB, MIB, bounds_text, number, one_number, quoted_size, size, size_pattern, size_text,
};
pub use place::LogTarget;
pub(crate) use place::{located_path, log_target, path, plain_path};
pub use quote::quoted;
pub(crate) use regex::expression;
pub use regex::{Captures, Expression, Expressions, TooLarge};
pub(crate) use rules::map_word;
pub(crate) use rules::{
    ACME_CONTACT, ACME_DIRECTORY, ACME_WORD, LETS_ENCRYPT, LETS_ENCRYPT_STAGING,
};
pub use rules::{ANY_NAME, is_own_header, is_site_name, written_prefix};
pub(crate) use section::{
    Settings, Variants, optional, required, section, sections, settings_by_word,
};
pub use server_address::{Roots, ServerAddress};
pub(crate) use server_address::{located_server_address, roots};
pub(crate) use table::Table;
pub use template::{PathPattern, Piece, Template};
pub(crate) use template::{TRY_PATH, destination, path_pattern, rewritten_path};
pub(crate) use text::{
    located_text, located_texts, located_texts_or_all, text, text_or_off, texts,
};
pub(crate) use word::{flag, known_word, level, word, word_list, word_list_or_none};

use crate::read::{Item, Reader};

/// The type of a setting: how it is read, bounded, defaulted and described.
pub(crate) trait ValueType {
    /// The value for the rest of kettle.
    type Value;

    /// The default; for a required setting an empty value that never leaves a failed parse.
    fn default_value(&self) -> Self::Value;

    /// Returns how the reference page and the schema show the values it takes.
    fn shape(&self) -> ValueShape;

    /// Returns how the reference page shows the default.
    fn default_text(&self) -> DefaultText;

    /// Reads the value, or records at least one diagnostic and returns nothing.
    fn read(&self, item: &Item<'_>, reader: &mut Reader<'_>) -> Option<Self::Value>;
}

/// Ties a kind to the type of its field.
pub(crate) fn typed<V, K: ValueType<Value = V>>(kind: K) -> K {
    kind
}

/// Declares a table of settings: `/// documentation` `pub field: Type = kind;`, with
/// `as "key"` where the key in the file differs from the field. If the settings of a table depend on one of them, that
/// one is an enumeration declared with [`variants!`] and stands under `variants`.
macro_rules! settings {
    (
        $(#[doc = $about:literal])+
        pub struct $name:ident {
            $(
                $(#[doc = $doc:literal])+
                pub $field:ident: $type:ty $(as $key:literal)? = $kind:expr,
            )*
        }
        $(variants { $(#[doc = $variants_doc:literal])+ pub $variants:ident: $variants_type:ty, })?
        $(beside { $($(#[doc = $beside_doc:literal])+ $visible:vis $beside:ident: $beside_type:ty,)* })?
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name {
            $($(#[doc = $doc])+ pub $field: $type,)*
            $($(#[doc = $variants_doc])+ pub $variants: $variants_type,)?
            $($($(#[doc = $beside_doc])+ $visible $beside: $beside_type,)*)?
        }

        impl Default for $name {
            fn default() -> Self {
                use $crate::setting::ValueType as _;
                Self {
                    $($field: ($kind).default_value(),)*
                    $($variants: Default::default(),)?
                    $($($beside: Default::default(),)*)?
                }
            }
        }

        impl $crate::setting::Settings for $name {
            fn describe() -> $crate::setting::Section {
                use $crate::setting::ValueType as _;
                #[allow(unused_mut, reason = "only tables with variants have more")]
                let mut settings = vec![$($crate::setting::Setting {
                    name: $crate::setting::key!($field $(as $key)?),
                    doc: concat!($($doc, "\n"),+),
                    shape: $crate::setting::typed::<$type, _>($kind).shape(),
                    default_value: $crate::setting::typed::<$type, _>($kind).default_text(),
                    only_with: Vec::new(),
                },)*];
                $(settings.extend(<$variants_type as $crate::setting::Variants>::describe());)?
                $crate::setting::Section { about: concat!($($about, "\n"),+), settings }
            }

            fn take(table: &$crate::setting::Table<'_>, reader: &mut $crate::read::Reader<'_>) -> Self {
                Self {
                    $($field: table.setting($crate::setting::key!($field $(as $key)?), &$kind, reader),)*
                    $($variants: <$variants_type as $crate::setting::Variants>::take(table, reader),)?
                    $($($beside: Default::default(),)*)?
                }
            }
        }
    };
}
pub(crate) use settings;

/// Declares an enumeration whose variants have settings of their own: `pub enum Name by "key"`, then
/// `/// meaning` `Variant(Settings) = "word",`. The first is the default.
macro_rules! variants {
    (
        $(#[doc = $about:literal])+
        pub enum $name:ident by $key:literal {
            $(#[doc = $first_meaning:literal])+ $first:ident($first_settings:ty) = $first_word:literal,
            $($(#[doc = $meaning:literal])+ $variant:ident($settings:ty) = $word:literal,)*
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub enum $name {
            $(#[doc = $first_meaning])+ $first($first_settings),
            $($(#[doc = $meaning])+ $variant($settings),)*
        }

        impl $name {
            /// The word for this variant in the configuration file.
            pub fn as_str(&self) -> &'static str {
                match self {
                    Self::$first(_) => $first_word,
                    $(Self::$variant(_) => $word,)*
                }
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::$first(Default::default())
            }
        }

        impl $crate::setting::Variants for $name {
            fn describe() -> Vec<$crate::setting::Setting> {
                use $crate::setting::{ValueType as _, Settings as _};
                let word = $crate::setting::known_word(Self::WORDS);
                let mut settings = vec![$crate::setting::Setting {
                    name: $key,
                    doc: concat!($($about, "\n"),+),
                    shape: word.shape(),
                    default_value: word.default_text(),
                    only_with: Vec::new(),
                }];
                settings.extend($crate::setting::settings_by_word(vec![
                    ($first_word, <$first_settings>::describe()),
                    $(($word, <$settings>::describe()),)*
                ]));
                settings
            }

            fn take(table: &$crate::setting::Table<'_>, reader: &mut $crate::read::Reader<'_>) -> Self {
                use $crate::setting::Settings as _;
                let word = table.setting($key, &$crate::setting::known_word(Self::WORDS), reader);
                table.refuse_other_variants($key, word, &<Self as $crate::setting::Variants>::describe(), reader);
                match word {
                    $($word => Self::$variant(<$settings>::take(table, reader)),)*
                    _ => Self::$first(<$first_settings>::take(table, reader)),
                }
            }
        }

        impl $name {
            const WORDS: &'static [(&'static str, &'static str)] = &[
                ($first_word, concat!($($first_meaning, "\n"),+)),
                $(($word, concat!($($meaning, "\n"),+)),)*
            ];
        }
    };
}
pub(crate) use variants;

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

//! `[[map]]`: texts that are chosen by what requests say.

use crate::located::Located;
use crate::setting::{
    Expression, FieldTemplate, field_words, flag, located_text, map_expressions, map_values,
    required, rules, settings,
};

settings! {
    /// A text that is chosen by what a request says, as with nginx's `map`. Headers, conditions and other maps call it by the
    /// word `{map:NAME}`. Of several values that fit, the one of the whole text decides, then of names with a star the longest, then
    /// the first expression, then `default`.
    pub struct Map {
        /// The name in the word `{map:NAME}`.
        pub name: Located<String> = required(located_text(&rules::BACKEND_NAME)),
        /// The text by which the map chooses: a text with words, as in `request_headers`. `"{header:origin}"`, `"{host}"`,
        /// `"{map:other}"`.
        pub of: FieldTemplate = required(field_words()),
        /// The value for each text. Upper and lower case count as one. `""` is for what is not there. A value may have words,
        /// too.
        pub values: Vec<(String, FieldTemplate)> = map_values(),
        /// Takes `"*.example.org"`, `".example.org"` (with and without a name before it) and `"www.example.*"` in `values`, and no
        /// dot at the end of what a request says.
        pub hostnames: bool = flag(false),
        /// The value for all other texts.
        pub default: FieldTemplate = field_words(),
        /// The value for texts of which a part fits a regular expression, the first in the order of the file. `{0}` is the part that
        /// fits, `{1}` its first group, `{name}` the group of that name. No expression is asked about an empty text.
        pub regex: Vec<(Expression, FieldTemplate)> = map_expressions(),
    }
}

impl Map {
    /// All that it may say.
    pub fn texts(&self) -> impl Iterator<Item = &FieldTemplate> {
        let values = self.values.iter().map(|(_, said)| said);
        let expressions = self.regex.iter().map(|(_, said)| said);
        std::iter::once(&self.default).chain(values).chain(expressions)
    }
}

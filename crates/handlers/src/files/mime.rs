//! The content type of a file, from its name.

use std::collections::BTreeMap;

use kettle_config::{Route, TypeTable, media_type, nginx_media_type};

/// The way a route names content types.
#[derive(Debug)]
pub struct ContentTypes {
    /// By extension in lower case, before the table.
    overrides: BTreeMap<String, String>,
    table: TypeTable,
    /// That of other extensions.
    unknown: String,
    /// Named for text, unless the type names one itself.
    charset: Option<String>,
    /// The types that it is named for, if not for all texts.
    charset_types: Option<Vec<String>>,
}

impl ContentTypes {
    /// A route's own types and its charset for text.
    pub fn new(route: &Route) -> Self {
        let lower = |extension: &String| extension.trim_start_matches('.').to_ascii_lowercase();
        Self {
            overrides: route.mime.iter().map(|(key, kind)| (lower(key), kind.clone())).collect(),
            table: route.types,
            unknown: route.default_type.clone(),
            charset: route.charset.clone(),
            charset_types: route.charset_types.clone(),
        }
    }

    /// The value of `content-type` for a file of this name.
    pub fn of(&self, file_name: &str) -> String {
        let extension = match file_name.rsplit_once('.') {
            // A name that begins with a dot has none for that.
            Some((stem, extension)) if !stem.is_empty() && !stem.ends_with('/') => {
                extension.to_ascii_lowercase()
            }
            _ => String::new(),
        };
        let own = self.overrides.get(&extension).map(String::as_str);
        let of_table = || match self.table {
            TypeTable::BuiltIn => media_type(&extension),
            TypeTable::Nginx => nginx_media_type(&extension),
            TypeTable::None => None,
        };
        let kind = own.or_else(of_table).unwrap_or(&self.unknown);
        match &self.charset {
            Some(charset) if self.has_charset(kind) => format!("{kind}; charset={charset}"),
            _ => kind.to_owned(),
        }
    }

    fn has_charset(&self, kind: &str) -> bool {
        match &self.charset_types {
            Some(types) => types.iter().any(|it| it.eq_ignore_ascii_case(kind)),
            None => is_text(kind),
        }
    }
}

/// True if a charset belongs to the type. XML and JSON say themselves what they are written in.
fn is_text(kind: &str) -> bool {
    !kind.contains(';') && (kind.starts_with("text/") || kind == "application/javascript")
}

#[cfg(test)]
mod tests;

//! The content type of a file, from its name.

use std::collections::BTreeMap;

use kettle_config::media_type;

/// How a route names content types.
#[derive(Debug, Default)]
pub struct ContentTypes {
    /// By extension in lower case, before the built-in table.
    overrides: BTreeMap<String, String>,
    /// Named for text, unless the type names one itself.
    charset: Option<String>,
}

impl ContentTypes {
    /// A route's own types and its charset for text.
    #[must_use]
    pub fn new(overrides: &BTreeMap<String, String>, charset: Option<&str>) -> Self {
        let lower = |extension: &String| extension.trim_start_matches('.').to_ascii_lowercase();
        Self {
            overrides: overrides.iter().map(|(key, kind)| (lower(key), kind.clone())).collect(),
            charset: charset.map(str::to_owned),
        }
    }

    /// The value of `content-type` for a file of this name.
    #[must_use]
    pub fn of(&self, file_name: &str) -> String {
        let extension = match file_name.rsplit_once('.') {
            Some((_, extension)) => extension.to_ascii_lowercase(),
            None => String::new(),
        };
        let kind = self
            .overrides
            .get(&extension)
            .map_or_else(|| media_type(&extension).unwrap_or(UNKNOWN), String::as_str);
        match &self.charset {
            Some(charset) if is_text(kind) => format!("{kind}; charset={charset}"),
            _ => kind.to_owned(),
        }
    }
}

/// Whether a charset belongs to the type. XML and JSON say themselves what they are written in.
fn is_text(kind: &str) -> bool {
    !kind.contains(';') && (kind.starts_with("text/") || kind == "application/javascript")
}

const UNKNOWN: &str = "application/octet-stream";

#[cfg(test)]
mod tests;

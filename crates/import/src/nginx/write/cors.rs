//! `add_header Access-Control-*`, where it says the same to every page, as `cors` of a route.

use kettle_config::{Origin, quoted};

use super::Writer;
use super::route::Setting;
use crate::nginx::scope::Scope;
use crate::offer::list;

type Headers = Vec<(String, Vec<String>)>;

impl Writer<'_> {
    /// Takes such headers away, and gives what they mean; they stay if kettle could not say it so.
    pub(super) fn cors(&mut self, headers: &mut Headers, scope: &Scope<'_>) -> Option<Setting> {
        let allowed = sole(headers, "allow-origin").filter(|origin| is_origin(origin))?;
        let list_of = |name: &str| -> Vec<String> {
            let values = sole(headers, name).unwrap_or_default();
            let names = values.split(',').map(|it| it.trim().to_owned());
            names.filter(|it| !it.is_empty()).collect()
        };
        let (methods, names) = (list_of("allow-methods"), list_of("allow-headers"));
        let exposed = list_of("expose-headers");
        let is_token = |it: &String| {
            it.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
        };
        if ![&methods, &names, &exposed].iter().all(|list| list.iter().all(is_token)) {
            return None;
        }
        let mut entries = vec![format!("origins = [{}]", quoted(&allowed))];
        for (key, names) in [("methods", methods), ("headers", names), ("expose", exposed)] {
            if !names.is_empty() {
                entries.push(format!("{key} = {}", list(names.iter().map(String::as_str))));
            }
        }
        let origin = self.place_of(scope);
        if sole(headers, "allow-credentials").is_some_and(|it| it == "true") {
            if allowed == "*" {
                let message = "every origin with credentials is not carried over";
                self.draft.warn(&origin, message, "browsers refuse it: `cors` names each origin");
            } else {
                entries.push("credentials = true".to_owned());
            }
        }
        if let Some(seconds) = sole(headers, "max-age").and_then(|it| it.parse::<u64>().ok()) {
            // No browser remembers it for longer.
            entries.push(format!("max_age = \"{}s\"", seconds.min(86_400)));
        }
        headers.retain(|(name, _)| !name.to_ascii_lowercase().starts_with(PREFIX));
        Some(("cors", format!("{{ {} }}", entries.join(", ")), origin))
    }

    fn place_of(&self, scope: &Scope<'_>) -> Origin {
        let is_of = |name: &str| name.to_ascii_lowercase().starts_with(PREFIX);
        let added = scope.all("add_header").into_iter().find(|it| is_of(it.word(0)));
        added.map_or_else(Origin::default, |it| it.origin.clone())
    }
}

/// The value of such a header, if there is one.
fn sole(headers: &Headers, name: &str) -> Option<String> {
    let name = format!("{PREFIX}{name}");
    let (_, values) = headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(&name))?;
    match values.as_slice() {
        [one] => Some(one.clone()),
        _ => None,
    }
}

/// Every one, or one as browsers write it.
fn is_origin(text: &str) -> bool {
    let is_of_host =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.:".contains(&byte);
    let host = text.strip_prefix("https://").or(text.strip_prefix("http://"));
    let is_plain = |host: &str| {
        !host.is_empty()
            && host.bytes().all(is_of_host)
            && ![":443", ":80"].iter().any(|it| host.ends_with(it))
    };
    text == "*" || host.is_some_and(is_plain)
}

const PREFIX: &str = "access-control-";

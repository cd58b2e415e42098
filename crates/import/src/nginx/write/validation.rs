//! The headers of responses on the state of files, and the conditions of requests on it.

use kettle_config::{Origin, quoted};

use super::route::Setting;
use crate::nginx::scope::Scope;
use crate::nginx::syntax::Directive;

/// The settings of a route that say it. nginx sends again what was put back to an older state.
pub(super) fn validation(scope: &Scope<'_>, origin: &Origin) -> Vec<Setting> {
    let mut settings = Vec::new();
    let mut set = |key, value: String, it: Option<&Directive>| {
        settings.push((key, value, it.map_or(origin, |it| &it.origin).clone()));
    };
    let taken = |name: &str| {
        let mut all = scope.all("add_header").into_iter();
        all.find(|it| it.word(0).eq_ignore_ascii_case(name) && it.word(1).is_empty())
    };
    let off = scope.find("etag").filter(|it| it.word(0) == "off").or_else(|| taken("etag"));
    if off.is_some() {
        set("etag", "false".to_owned(), off);
    }
    let off = taken("last-modified");
    if off.is_some() {
        set("last_modified", "false".to_owned(), off);
    }
    let since = scope.find("if_modified_since");
    let word = since.map_or("exact", |it| it.word(0));
    if ["exact", "off"].contains(&word) {
        set("if_modified_since", quoted(word), since);
    }
    let ranges = scope.find("max_ranges");
    let number = ranges.and_then(|it| it.word(0).parse::<u64>().ok()).filter(|it| *it < RANGES_MAX);
    if let Some(number) = number {
        set("max_ranges", number.to_string(), ranges);
    }
    settings
}

/// Of one response, as kettle has it.
const RANGES_MAX: u64 = 16;

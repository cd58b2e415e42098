//! `proxy_next_upstream` and its twins as the `retry_on` of a route.

use kettle_config::{Origin, quoted};

use super::Writer;
use super::route::{Setting, spoken};
use crate::nginx::scope::Scope;
use crate::nginx::syntax::Directive;

impl Writer<'_> {
    /// For what of a server the next one of `to` is asked. If nothing is said and there is another, nginx asks it after failures.
    pub(super) fn retry_on(
        &mut self,
        scope: &Scope<'_>,
        name: &str,
        to: &str,
        origin: &Origin,
    ) -> Option<Setting> {
        let is_it = |it: &&Directive| it.name == "upstream" && it.word(0).eq_ignore_ascii_case(to);
        let upstream = scope.settings().find_map(|block| block.iter().find(is_it));
        let servers = upstream
            .map_or(1, |it| it.inner().iter().filter(|inner| inner.name == "server").count());
        if servers < 2 {
            return None;
        }
        let directive = scope.find(name);
        let default = ["error".to_owned(), "timeout".to_owned()];
        let words = directive.map_or(&default[..], |it| &it.words);
        let mut on = Vec::new();
        for word in words {
            match (word.as_str(), word.strip_prefix("http_")) {
                ("off", _) => return None,
                ("error", _) => on.push("closed"),
                ("timeout", _) => on.push("timeout"),
                ("invalid_header", _) => on.push("malformed"),
                (_, Some(status)) if STATUSES.contains(&status) => on.push(status),
                _ => {
                    let directive = directive?;
                    let message =
                        format!("`{word}` in `{}` is not carried over", spoken(directive));
                    let help =
                        "only requests that may be repeated go on to another server (`retry_on`)";
                    self.output.warn(&directive.origin, message, help);
                }
            }
        }
        let on: Vec<_> = on.into_iter().map(quoted).collect();
        let place = directive.map_or(origin, |it| &it.origin).clone();
        Some(("retry_on", format!("[{}]", on.join(", ")), place))
    }
}

/// Those that nginx knows there.
const STATUSES: [&str; 7] = ["403", "404", "429", "500", "502", "503", "504"];

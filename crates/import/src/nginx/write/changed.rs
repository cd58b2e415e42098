//! `proxy_redirect`, `proxy_cookie_path`, `proxy_cookie_domain` and `proxy_cookie_flags`: what clients get in place of what backends say.

use kettle_config::{Expression, quoted};

use super::Writer;
use super::pass::Pass;
use super::place::Spot;
use super::route::Setting;
use crate::nginx::location::Shut;
use crate::nginx::regex::translated;
use crate::nginx::scope::Scope;
use crate::nginx::syntax::Directive;
use crate::nginx::variables::{Part, parts, sole_port};
use crate::offer::list;

impl Writer<'_> {
    /// Of a place whose requests this `proxy_pass` passes on. A directive that makes cookies safer and cannot be said closes
    /// the place.
    pub(super) fn changed<'t>(
        &mut self,
        scope: &Scope<'t>,
        pass: &Pass<'_>,
        spot: &Spot<'t>,
    ) -> Result<Vec<Setting>, Shut<'t>> {
        let mut settings: Vec<Setting> = self.redirects(scope, pass, spot).into_iter().collect();
        for (name, key) in COOKIES {
            let all = said(scope, name);
            let Some(first) = all.first() else { continue };
            let entries = all.iter().map(|directive| {
                let entry = match key {
                    "cookie_flags" => flags(directive),
                    _ => entry(directive.word(0), directive.word(1), scope),
                };
                entry.ok_or(Shut { directive, why: COOKIE })
            });
            let entries = entries.collect::<Result<Vec<String>, _>>()?;
            settings.push((key, format!("[{}]", entries.join(", ")), first.origin.clone()));
        }
        Ok(settings)
    }

    fn redirects(
        &mut self,
        scope: &Scope<'_>,
        pass: &Pass<'_>,
        spot: &Spot<'_>,
    ) -> Option<Setting> {
        let written = scope.all("proxy_redirect");
        let first = written.first()?;
        let all = said(scope, "proxy_redirect");
        if !all.is_empty() && all.iter().all(|it| it.word(0) == "default") {
            return None;
        }
        let mut entries = Vec::new();
        for directive in all {
            let own = match directive.word(0) {
                "default" => Some(by_default(pass, spot)),
                from => entry(from, directive.word(1), scope),
            };
            match own {
                Some(own) => entries.push(own),
                None => {
                    let help = "`backend_redirect` of a route knows the scheme, host and port that are asked for, and groups";
                    self.tell_of(directive, help);
                }
            }
        }
        Some(("backend_redirect", format!("[{}]", entries.join(", ")), first.origin.clone()))
    }
}

/// Returns the values of directives of this name, unless one says `off`.
fn said<'t>(scope: &Scope<'t>, name: &str) -> Vec<&'t Directive> {
    let all = scope.all(name);
    if all.iter().any(|it| it.word(0) == "off") { Vec::new() } else { all }
}

/// A text in place of another, as a table in braces; nothing where that cannot be said.
fn entry(from: &str, to: &str, scope: &Scope<'_>) -> Option<String> {
    let Some(pattern) = from.strip_prefix('~') else {
        let from = words(from, None, scope)?;
        let to = words(to, None, scope)?;
        return Some(format!("{{ from = {}, to = {} }}", quoted(&from), quoted(&to)));
    };
    let (pattern, ignores_case) = match pattern.strip_prefix('*') {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let regex = translated(pattern, ignores_case)?;
    let expression = Expression::new(&regex).ok()?;
    let to = words(to, Some(&expression), scope)?;
    Some(format!("{{ regex = {}, to = {} }}", quoted(&regex), quoted(&to)))
}

/// The address that requests go to, in place of which the path of its place stands.
fn by_default(pass: &Pass<'_>, spot: &Spot<'_>) -> String {
    let scheme = if pass.is_tls { "https" } else { "http" };
    let (path, place) = if pass.path.is_empty() { ("/", "/") } else { (pass.path, &*spot.path) };
    let from = format!("{scheme}://{}{path}", pass.to);
    format!("{{ from = {}, to = {} }}", quoted(&from), quoted(place))
}

/// A text with kettle's words for nginx's variables.
fn words(text: &str, expression: Option<&Expression>, scope: &Scope<'_>) -> Option<String> {
    let mut out = String::new();
    for part in parts(text) {
        match part {
            Part::Text(text) => out.push_str(&text.replace('{', "{{")),
            Part::Variable("host" | "http_host") => out.push_str("{host}"),
            Part::Variable("scheme") => out.push_str("{scheme}"),
            Part::Variable("server_port") => out.push_str(&sole_port(scope)?.to_string()),
            Part::Variable(name) => {
                expression?.group_number(name)?;
                out.push_str(&format!("{{{name}}}"));
            }
        }
    }
    Some(out)
}

/// Words for cookies of one name, or of all that fit.
fn flags(directive: &Directive) -> Option<String> {
    let (name, flags) = directive.words.split_first()?;
    let is_known = |flag: &String| FLAGS.contains(&&*flag.to_ascii_lowercase());
    if name.contains('$') && !name.starts_with('~') || !flags.iter().all(is_known) {
        return None;
    }
    let which = match name.strip_prefix('~') {
        Some("") => String::new(),
        Some(pattern) => {
            let (pattern, ignores_case) = match pattern.strip_prefix('*') {
                Some(pattern) => (pattern, true),
                None => (pattern, false),
            };
            format!("regex = {}, ", quoted(&translated(pattern, ignores_case)?))
        }
        None => format!("name = {}, ", quoted(name)),
    };
    let flags: Vec<String> = flags.iter().map(|flag| flag.to_ascii_lowercase()).collect();
    Some(format!("{{ {which}flags = {} }}", list(flags.iter().map(String::as_str))))
}

const COOKIES: [(&str, &str); 3] = [
    ("proxy_cookie_path", "cookie_path"),
    ("proxy_cookie_domain", "cookie_domain"),
    ("proxy_cookie_flags", "cookie_flags"),
];
/// Those that nginx knows.
const FLAGS: [&str; 8] = [
    "secure",
    "nosecure",
    "httponly",
    "nohttponly",
    "samesite=strict",
    "samesite=lax",
    "samesite=none",
    "nosamesite",
];
const COOKIE: &str =
    "of cookies kettle cannot say that, and browsers would send them elsewhere, or show them";

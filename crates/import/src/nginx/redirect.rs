//! `return` and `rewrite`: which redirects and rewrites of kettle say the same.

use kettle_config::{Origin, Template, quoted};

use super::expression::{Expressed, expressed};
use super::syntax::Directive;

/// A redirect or a rewrite of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    /// The paths it is for; all of the route if there is none.
    pub(super) from: Option<String>,
    pub(super) to: String,
    pub(super) kind: RuleKind,
    pub(super) origin: Origin,
    /// Whether it is for a little more than nginx's.
    pub(super) is_wider: bool,
    /// The prefixes of routes that the expression it was made of is not held against.
    pub(super) spared: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RuleKind {
    Redirect {
        status: u16,
        keeps_query: bool,
    },
    /// Files have no query, so that another one is no matter for these.
    Rewrite {
        keeps_query: bool,
    },
}

impl Rule {
    pub(super) fn is_redirect(&self) -> bool {
        matches!(self.kind, RuleKind::Redirect { .. })
    }

    /// Whether a backend would be asked for another query than here.
    pub(super) fn changes_query(&self) -> bool {
        self.kind == RuleKind::Rewrite { keeps_query: false }
    }

    /// What it begins with, whatever the request.
    pub(super) fn beginning(&self) -> &str {
        self.from.as_deref().map_or("/", |from| from.split(['*', '?']).next().unwrap_or(from))
    }

    /// Where it leads on the same host, whatever the request; nothing where that is elsewhere.
    pub(super) fn target(&self) -> Option<&str> {
        let beginning = self.to.split('{').next().unwrap_or_default();
        beginning.starts_with('/').then_some(beginning)
    }

    /// Whether it leads to what lies below a prefix, whatever the request.
    pub(super) fn leads_below(&self, prefix: &str) -> bool {
        let rest = self.target().and_then(|target| target.strip_prefix(prefix));
        rest.is_some_and(|rest| rest.starts_with('/') || (rest.is_empty() && !prefix.is_empty()))
    }

    /// Whether it is a rewrite to what does not.
    pub(super) fn leads_out_of(&self, prefix: &str) -> bool {
        !self.is_redirect() && !self.leads_below(prefix)
    }

    /// A table in braces.
    pub(super) fn text(&self) -> String {
        let from = self.from.as_ref().map(|from| format!("from = {}, ", quoted(from)));
        let more = match self.kind {
            RuleKind::Redirect { status, keeps_query: true } => format!(", status = {status}"),
            RuleKind::Redirect { status, keeps_query: false } => {
                format!(", status = {status}, keep_query = false")
            }
            RuleKind::Rewrite { .. } => String::new(),
        };
        format!("{{ {}to = {}{more} }}", from.unwrap_or_default(), quoted(&self.to))
    }
}

/// Whether a `return` sends clients elsewhere.
pub(super) fn is_redirect(directive: &Directive) -> bool {
    match directive.words.as_slice() {
        [target] => target.contains("://"),
        [status, _] => status.starts_with('3'),
        _ => false,
    }
}

/// One path, as an expression would have it.
pub(super) fn exactly(path: &str) -> Option<Expressed> {
    let is_plain = path.starts_with('/') && !path.contains(['*', '?', '[', ']', '{', '}', '\\']);
    let patterns = vec![path.to_owned()];
    is_plain.then(|| Expressed { patterns, groups: Vec::new(), is_wider: false })
}

/// A pattern in all cases of its letters, or of many the one that is written, the small and the large ones.
pub(super) fn cases(pattern: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    if has_few_letters(pattern) {
        for letter in pattern.chars() {
            let cases = [letter.to_ascii_lowercase(), letter.to_ascii_uppercase()];
            let cases = if cases.first() == cases.last() { &cases[..1] } else { &cases[..] };
            all = all
                .iter()
                .flat_map(|begun| cases.iter().map(move |letter| format!("{begun}{letter}")))
                .collect();
        }
        return all;
    }
    all = vec![pattern.to_owned()];
    for other in [pattern.to_ascii_lowercase(), pattern.to_ascii_uppercase()] {
        if !all.contains(&other) {
            all.push(other);
        }
    }
    all
}

/// Whether a pattern can be written in all cases of its letters.
pub(super) fn has_few_letters(pattern: &str) -> bool {
    pattern.bytes().filter(u8::is_ascii_alphabetic).count() <= CASED_MAX
}

/// Whether a server with these rules does nothing but send clients elsewhere.
pub(super) fn lead_away(rules: &[Rule]) -> bool {
    rules.last().is_some_and(|rule| rule.is_redirect() && rule.from.is_none())
}

/// `return 301 URL`, for all paths of its place, whose expression has these groups.
pub(super) fn of_return(directive: &Directive, groups: &[String]) -> Option<Rule> {
    let (status, target) = match directive.words.as_slice() {
        [target] if target.contains("://") => (302, target),
        [status, target] => (status.parse().ok()?, target),
        _ => return None,
    };
    let status = match status {
        status @ (301 | 302 | 303 | 307 | 308) => status,
        _ => return None,
    };
    let Destination { to, keeps_query } = destination_of(target, groups)?;
    let kind = RuleKind::Redirect { status, keeps_query };
    let origin = directive.origin.clone();
    let rule = Rule { from: None, to, kind, origin, is_wider: false, spared: Vec::new() };
    Template::is_destination(&rule.to).then_some(rule)
}

/// The rules of a place, in the order in which nginx has them; or which of them cannot be said.
pub(super) fn rules<'t>(
    block: &'t [Directive],
    groups: &[String],
) -> Result<Vec<Rule>, &'t Directive> {
    let mut rules: Vec<Rule> = Vec::new();
    // What was rewritten is looked at by the rules that follow, unless a flag says otherwise.
    let (mut goes_on, mut is_rewritten) = (false, false);
    for directive in block.iter().take_while(|it| it.name != "break") {
        let found = match directive.name.as_str() {
            "return" if is_redirect(directive) => of_return(directive, groups).map(|it| vec![it]),
            "rewrite" => of_rewrite(directive),
            _ => continue,
        };
        let found = found.ok_or(directive)?;
        let is_redirect = found.iter().all(Rule::is_redirect);
        if goes_on || (is_rewritten && is_redirect) {
            return Err(directive);
        }
        is_rewritten |= !is_redirect;
        goes_on = !is_redirect && !matches!(directive.word(2), "last" | "break");
        rules.extend(found);
        if directive.name == "return" {
            break;
        }
    }
    Ok(rules)
}

/// `rewrite EXPRESSION TARGET FLAG`, in one rule or two.
pub(super) fn of_rewrite(directive: &Directive) -> Option<Vec<Rule>> {
    let ([expression, target] | [expression, target, _]) = directive.words.as_slice() else {
        return None;
    };
    let Expressed { patterns, groups, is_wider } = expressed(expression)?;
    let (target, drops_query) = match target.strip_suffix('?') {
        Some(target) => (target, true),
        None => (target.as_str(), false),
    };
    let status = status_of(directive);
    // `?` at the end drops what nginx would add, not what is written.
    let Destination { to, keeps_query } = destination_of(target, &groups)?;
    let keeps_query = keeps_query || !drops_query;
    let kind = match status {
        Some(status) => RuleKind::Redirect { status, keeps_query },
        None => RuleKind::Rewrite { keeps_query: keeps_query && !to.contains('?') },
    };
    let to = match kind {
        RuleKind::Redirect { .. } => Some(to).filter(|to| Template::is_destination(to))?,
        RuleKind::Rewrite { .. } => {
            let path = to.split('?').next().unwrap_or_default().to_owned();
            Some(path).filter(|to| Template::is_rewritten_path(to))?
        }
    };
    let is_long = |from: &String| from.len() > PATTERN_BYTES_MAX;
    if patterns.iter().any(is_long) {
        return None;
    }
    let rule = |from| {
        let origin = directive.origin.clone();
        Rule { from, to: to.clone(), kind, origin, is_wider, spared: Vec::new() }
    };
    Some(match patterns.is_empty() {
        true => vec![rule(None)],
        false => patterns.into_iter().map(|from| rule(Some(from))).collect(),
    })
}

/// The status of a `rewrite` that sends clients elsewhere; nothing where nginx looks for another path.
pub(super) fn status_of(rewrite: &Directive) -> Option<u16> {
    let target = rewrite.word(1);
    let is_elsewhere = ["http://", "https://", "$scheme"].iter().any(|it| target.starts_with(it));
    match rewrite.word(2) {
        "permanent" => Some(301),
        "redirect" => Some(302),
        _ => is_elsewhere.then_some(302),
    }
}

pub(super) struct Destination {
    pub(super) to: String,
    pub(super) keeps_query: bool,
}

/// An address with kettle's names for nginx's variables.
pub(super) fn destination_of(text: &str, groups: &[String]) -> Option<Destination> {
    let ends = ["$is_args$args", "$is_args$query_string", "?$args", "?$query_string"];
    let behind = ends.iter().find_map(|end| text.strip_suffix(end));
    let mut keeps_query = behind.is_some();
    let text = behind.unwrap_or(text);
    let mut parts = text.split('$');
    let mut to = parts.next()?.to_owned();
    if to.contains(['{', '}']) {
        return None;
    }
    for part in parts {
        let (name, behind) = match part.strip_prefix('{').and_then(|part| part.split_once('}')) {
            Some(named) => named,
            None => {
                let is_group = part.starts_with(|letter: char| letter.is_ascii_digit());
                let is_of = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
                let end = if is_group { Some(1) } else { part.find(|letter| !is_of(letter)) };
                part.split_at_checked(end.unwrap_or(part.len()))?
            }
        };
        match name {
            "host" => to.push_str("{host}"),
            "scheme" => to.push_str("https"),
            "uri" | "document_uri" => to.push_str("{path}"),
            "request_uri" if behind.is_empty() && !to.contains('?') => {
                to.push_str("{path}");
                keeps_query = true;
            }
            number => {
                let number: usize = number.parse().ok()?;
                to.push_str(groups.get(number.checked_sub(1)?)?);
            }
        }
        if behind.contains(['{', '}']) {
            return None;
        }
        to.push_str(behind);
    }
    Some(Destination { to, keeps_query })
}

/// As kettle has it.
const PATTERN_BYTES_MAX: usize = 256;

/// So that a route has at most 16 rules for one expression.
const CASED_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::nginx::syntax::parse;

    /// Each directive with the tables it becomes; nothing where none says the same.
    #[test]
    fn directives_become_redirects_and_rewrites() {
        for (text, expected) in [
            ("return 301 /new;", "to = \"/new\", status = 301, keep_query = false"),
            (
                "return https://a.example;",
                "to = \"https://a.example\", status = 302, keep_query = false",
            ),
            (
                "return 308 https://$host$request_uri;",
                "to = \"https://{host}{path}\", status = 308",
            ),
            (
                "return 302 $scheme://a.example$uri;",
                "to = \"https://a.example{path}\", status = 302, keep_query = false",
            ),
            ("return 307 /x$is_args$args;", "to = \"/x\", status = 307"),
            ("return 301 https://$http_host/;", ""),
            ("return 301 https://$host$request_uri/x;", ""),
            ("return 301 $target;", ""),
            ("return 302 /login?next=$request_uri;", ""),
            ("rewrite ^ /login?next=$request_uri redirect;", ""),
            (
                "return 302 /login?next=$uri;",
                "to = \"/login?next={path}\", status = 302, keep_query = false",
            ),
            (
                "rewrite ^ https://$host$request_uri? permanent;",
                "to = \"https://{host}{path}\", status = 301",
            ),
            ("return 301 '/{a}';", ""),
            ("return 200 text;", ""),
            ("return 404;", ""),
            (
                "rewrite ^/a/(.*)$ /b/$1 permanent;",
                "from = \"/a/**\", to = \"/b/{1}\", status = 301",
            ),
            (
                "rewrite ^/a$ /b? redirect;",
                "from = \"/a\", to = \"/b\", status = 302, keep_query = false",
            ),
            (
                "rewrite ^(.*)$ https://a.example$1;",
                "to = \"https://a.example{path}\", status = 302",
            ),
            ("rewrite ^/a/(.*)$ /b/$1 last;", "from = \"/a/**\", to = \"/b/{1}\""),
            ("rewrite ^/(.*)$ /b?q=$1 break;", "from = \"/**\", to = \"/b\""),
            ("rewrite ^/a/(.*)$ /b/$2 last;", ""),
            ("rewrite ^/a/(.*)$ $foo last;", ""),
            ("rewrite ^/a(?=b) /b last;", ""),
        ] {
            let directives = parse(Path::new("f"), text).unwrap();
            let directive = &directives[0];
            let rules = match directive.name.as_str() {
                "return" => of_return(directive, &[]).map(|rule| vec![rule]),
                _ => of_rewrite(directive),
            };
            let found: Vec<String> = rules.unwrap_or_default().iter().map(Rule::text).collect();
            let found = found.join(" ").replace("{ ", "").replace(" }", "");
            assert_eq!(found, expected, "{text}");
        }
        let both = parse(Path::new("f"), "rewrite ^/a/?$ /b permanent;").unwrap();
        assert_eq!(of_rewrite(&both[0]).unwrap().len(), 2);
    }
}

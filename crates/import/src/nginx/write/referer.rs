//! `valid_referers`: whether a request comes from a page of another site, as conditions of a route.

use kettle_config::{Expression, quoted};

use crate::nginx::regex::translated;
use crate::nginx::scope::Scope;

/// The conditions under which `$invalid_referer` is set; nothing where none of kettle say that.
pub(super) fn invalid(scope: &Scope<'_>) -> Option<Vec<String>> {
    let said = scope.all("valid_referers");
    let words: Vec<&str> = said.iter().flat_map(|it| &it.words).map(String::as_str).collect();
    let mut pages: Vec<String> = Vec::new();
    for word in &words {
        match *word {
            "none" | "blocked" => {}
            "server_names" => {
                let names = scope.server().all("server_name");
                let names = names.iter().flat_map(|it| &it.words);
                for name in names.filter(|it| *it != "_" && !it.is_empty()) {
                    pages.push(page(name)?);
                }
            }
            page_of => pages.push(page(page_of)?),
        }
    }
    let mut conditions = Vec::new();
    if words.contains(&"none") {
        conditions.push("{ header = \"referer\" }".to_owned());
    }
    if words.contains(&"blocked") {
        conditions.push("{ header = \"referer\", regex = \"(?i)^https?://\" }".to_owned());
    }
    if !pages.is_empty() {
        let valid = format!("^(?:{})", pages.join("|"));
        Expression::new(&valid).ok()?;
        conditions
            .push(format!("{{ header = \"referer\", regex = {}, not = true }}", quoted(&valid)));
    }
    (!words.is_empty() && !conditions.is_empty()).then_some(conditions)
}

/// An expression for the pages of a name, perhaps with the beginning of a path, or for those that fit an expression.
fn page(word: &str) -> Option<String> {
    if let Some(pattern) = word.strip_prefix('~') {
        let pattern = translated(pattern, false)?;
        // It is held against what follows the scheme.
        let any = if pattern.starts_with('^') { "" } else { ".*" };
        let pattern = pattern.trim_start_matches('^');
        let is_one = !pattern.contains(['|', '^']);
        return is_one.then(|| format!("(?i:https?://{any}{pattern})"));
    }
    let (host, path) = match word.split_once('/') {
        Some((host, path)) => (host, format!("/{}", escaped(path)?)),
        None => (word, "(?:/|$)".to_owned()),
    };
    let label = "[^/:?#]+";
    let host = if let Some(below) = host.strip_prefix("*.") {
        format!("{label}\\.{}", escaped(below)?)
    } else if let Some(below) = host.strip_prefix('.') {
        format!("(?:{label}\\.)?{}", escaped(below)?)
    } else if let Some(before) = host.strip_suffix(".*") {
        format!("{}\\.{label}", escaped(before)?)
    } else {
        escaped(host)?
    };
    Some(format!("(?i:https?://{host})(?::[^/]*)?{path}"))
}

/// Plain letters of names and paths, which mean themselves.
fn escaped(text: &str) -> Option<String> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_./~%".contains(it);
    text.chars().all(is_plain).then(|| text.replace('.', "\\."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_names_are_told_from_others() {
        for (word, fitting, others) in [
            (
                "a.example",
                &["http://a.example/x", "HTTPS://A.example:8080/", "http://a.example"][..],
                &["http://a.example.evil/", "http://b.a.example/", "a.example"][..],
            ),
            (
                "*.a.example",
                &["http://b.a.example/", "http://c.b.a.example"],
                &["http://a.example/", "http://xa.example/"],
            ),
            (
                ".a.example",
                &["http://a.example/", "http://b.a.example/"],
                &["http://xa.example/", "http://evil/.a.example/"],
            ),
            ("a.*", &["http://a.org/"], &["http://b.a.org/"]),
            (
                "a.example/p/",
                &["http://a.example/p/x"],
                &["http://a.example/P/", "http://a.example/"],
            ),
            ("~\\.a\\.", &["http://www.a.org/"], &["http://wwwaorg/"]),
            ("~^a\\.", &["https://a.org/"], &["https://b.a.org/"]),
        ] {
            let expression = Expression::new(&format!("^(?:{})", page(word).unwrap())).unwrap();
            fitting.iter().for_each(|it| assert!(expression.fits(it), "{word}: {it}"));
            others.iter().for_each(|it| assert!(!expression.fits(it), "{word}: {it}"));
        }
        assert!(page("a(b").is_none() && page("~a|^b").is_none());
    }
}

//! Rewrites of a server's answers for clients: each entry says once what is meant, and its groups are there.

use crate::diagnostic::Help;
use crate::model::{AnswerRewrite, Route};
use crate::read::Reader;

pub(super) fn check(trail: &str, route: &Route, reader: &mut Reader<'_>) {
    let rewrites: [(&str, &[AnswerRewrite]); 3] = [
        ("backend_redirect", route.backend_redirect.as_deref().unwrap_or_default()),
        ("cookie_path", &route.cookie_path),
        ("cookie_domain", &route.cookie_domain),
    ];
    for (setting, entries) in rewrites {
        for (number, entry) in entries.iter().enumerate() {
            let entry_trail = format!("{trail}.{setting}.{number}");
            check_groups(&entry_trail, entry, reader);
            refuse_both(&entry_trail, "from", reader);
        }
    }
    for number in 0..route.cookie_flags.len() {
        refuse_both(&format!("{trail}.cookie_flags.{number}"), "name", reader);
    }
}

/// The groups that are filled in are there.
fn check_groups(trail: &str, entry: &AnswerRewrite, reader: &mut Reader<'_>) {
    let of_from = entry.from.clone().map_or(Ok(()), |from| from.without_groups().map(drop));
    let (setting, group) = match (of_from, entry.filled()) {
        (Err(group), _) => ("from", group),
        (Ok(()), Err(group)) => ("to", group),
        (Ok(()), Ok(_)) => return,
    };
    let Some(place) = reader.place(&format!("{trail}.{setting}")) else { return };
    let (message, help) = match &entry.regex {
        Some(expression) => (
            format!("{{{group}}} is no group of `regex`, which has {}", expression.groups()),
            "write {1} for the first group, or {{ for a brace",
        ),
        None => (
            format!("{{{group}}} is nothing without a `regex`"),
            "write `regex` in place of `from`, or {{ for a brace",
        ),
    };
    reader.report_at(&place, message, Help::act(help));
}

fn refuse_both(trail: &str, other: &str, reader: &mut Reader<'_>) {
    if reader.is_written(&format!("{trail}.{other}"))
        && let Some(place) = reader.place(&format!("{trail}.regex"))
    {
        let message = format!("`{other}` says what is meant as well");
        reader.report_at(&place, message, Help::act("remove one of both"));
    }
}

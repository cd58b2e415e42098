//! `when`: each condition asks about one thing, and about one that has an answer.

use crate::diagnostic::Help;
use crate::model::Condition;
use crate::read::Reader;

/// Records every mistake of the conditions of a route, or of what is asked before routes.
pub(super) fn check(trail: &str, when: &[Condition], reader: &mut Reader<'_>) {
    for (number, condition) in when.iter().enumerate() {
        check_one(&format!("{trail}.when.{number}"), condition, reader);
    }
}

fn check_one(trail: &str, condition: &Condition, reader: &mut Reader<'_>) {
    let Some(place) = reader.place(trail) else { return };
    let mut written = SUBJECTS.iter().filter(|name| reader.is_written(&format!("{trail}.{name}")));
    let (subject, second) = (written.next(), written.next());
    let Some(subject) = subject else {
        let message = "a condition asks about one of method, scheme, host, header, cookie, query, network and of".to_owned();
        return reader.report_at(&place, message, Help::write("{ method = [\"GET\"] }"));
    };
    if let Some(second) = second {
        let message = format!("one condition asks about `{subject}` and `{second}`");
        let help = format!("write two: {{ {subject} = … }}, {{ {second} = … }}");
        return reader.report_at(&place, message, Help::act(help));
    }
    let is_text = condition.subjects().next().is_none_or(|subject| subject.is_text());
    for name in ["text", "regex"] {
        if let Some(place) = reader.place(&format!("{trail}.{name}")).filter(|_| !is_text) {
            let message =
                format!("`{name}` is asked of a header, a cookie, a query argument or `of`");
            let help = match *subject {
                "host" => "write of = \"{host}\" in place of `host`",
                _ => "remove it",
            };
            reader.report_at(&place, message, Help::act(help));
        }
    }
    if condition.text.is_some()
        && let Some(place) = reader.place(&format!("{trail}.regex"))
    {
        let message = "`text` is asked for as well".to_owned();
        reader.report_at(&place, message, Help::act("remove one of both, or write two conditions"));
    }
}

const SUBJECTS: [&str; 8] =
    ["method", "scheme", "host", "header", "cookie", "query", "network", "of"];

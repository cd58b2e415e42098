//! `when`: each condition asks about one thing, and about one that has an answer.

use crate::diagnostic::Help;
use crate::model::{Condition, Expression, Template};
use crate::read::Reader;

/// Records every mistake of the conditions of a route, or of what is asked before routes. They stand beside this expression.
pub(super) fn check(
    trail: &str,
    when: &[Condition],
    own: Option<&Expression>,
    reader: &mut Reader<'_>,
) {
    for (number, condition) in when.iter().enumerate() {
        let own_trail = format!("{trail}.when.{number}");
        check_one(&own_trail, condition, reader);
        check_file(trail, &own_trail, condition, reader);
        if let Some(path) = &condition.file_path {
            check_tried(&format!("{own_trail}.file_path"), path, own, reader);
        }
    }
}

/// A file is looked for below some root, and nothing else is.
fn check_file(route: &str, trail: &str, condition: &Condition, reader: &mut Reader<'_>) {
    if condition.file.is_none() {
        for name in ["file_path", "file_root", "file_prefix", "file_symlinks", "file_dotfiles"] {
            let is_asked = reader.is_written(&format!("{trail}.file"));
            let place = reader.place(&format!("{trail}.{name}")).filter(|_| !is_asked);
            if let Some(place) = place {
                let message = format!("`{name}` says how a `file` is looked for");
                reader.report_at(&place, message, Help::act("write file = \"file\" as well"));
            }
        }
        return;
    }
    let roots = [format!("{trail}.file_root"), format!("{route}.root")];
    let has_root = roots.iter().any(|it| reader.is_written(it));
    let prefix = reader.place(&format!("{trail}.file_prefix"));
    if let Some(place) = prefix.filter(|_| condition.file_root.is_none()) {
        let message = "`file_prefix` stands in a path for `file_root`".to_owned();
        return reader.report_at(
            &place,
            message,
            Help::write("file_root = \"/path/to/it\" beside it"),
        );
    }
    if !has_root && let Some(place) = reader.place(&format!("{trail}.file")) {
        let message = "nothing says below which folder".to_owned();
        reader.report_at(&place, message, Help::write("file_root = \"/path/to/it\" beside it"));
    }
}

/// The words of a path below a root stand for something.
pub(super) fn check_tried(
    setting: &str,
    text: &str,
    own: Option<&Expression>,
    reader: &mut Reader<'_>,
) {
    let Some(template) = Template::of_try(text) else { return };
    let groups = own.map_or(0, Expression::groups);
    let has_group = |name: &str| own.is_some_and(|it| it.has_group(name));
    let missing = template.names().find(|name| !has_group(name)).map(str::to_owned);
    let missing = missing.or((template.captures() > groups).then(|| (groups + 1).to_string()));
    if let Some(missing) = missing
        && let Some(place) = reader.place(setting)
    {
        let message = format!("{{{missing}}} is nothing: `regex` has no such group");
        reader.report_at(&place, message, Help::act("write a `regex` with that group"));
    }
}

fn check_one(trail: &str, condition: &Condition, reader: &mut Reader<'_>) {
    let Some(place) = reader.place(trail) else { return };
    let mut written = SUBJECTS.iter().filter(|name| reader.is_written(&format!("{trail}.{name}")));
    let subject = written.next();
    let second = written.next();
    let Some(subject) = subject else {
        let message = "a condition asks about one of method, scheme, host, header, cookie, query, network, of and file".to_owned();
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

const SUBJECTS: [&str; 9] =
    ["method", "scheme", "host", "header", "cookie", "query", "network", "of", "file"];

//! `respond`: an answer has one body, and nothing that a client says comes back as a page or a script.

use crate::diagnostic::Help;
use crate::model::{Expression, FieldPart, FieldTemplate, RequestWord, Respond};
use crate::read::Reader;

/// Records every mistake of an answer that stands beside this expression.
pub(super) fn check(
    trail: &str,
    respond: &Respond,
    (own, has_types): (Option<&Expression>, bool),
    reader: &mut Reader<'_>,
) {
    let place = |name: &str, reader: &Reader<'_>| reader.place(&format!("{trail}.{name}"));
    if matches!(respond.status, 204 | 205 | 304)
        && respond.has_body()
        && let Some(place) = place("body", reader).or(place("text", reader))
    {
        let message = "a response of this status has no body".to_owned();
        reader.report_at(&place, message, Help::act("remove it, or write another `status`"));
    }
    if respond.type_by_path
        && (respond.text.is_some() || respond.media_type.is_some() || !has_types)
        && let Some(place) = place("type_by_path", reader)
    {
        let message = match has_types {
            true => "a type by the path is for a `body`, and without `type`",
            false => "no route is found yet that says `types`",
        };
        reader.report_at(&place, message.to_owned(), Help::act("remove it, and write `type`"));
    }
    let (Some(text), Some(place)) = (&respond.text, place("text", reader)) else { return };
    if respond.body.is_some() {
        let message = "an answer has `body` or `text`".to_owned();
        reader.report_at(&place, message, Help::act("remove one of both"));
    }
    let mut groups = text.parts().iter().filter_map(|part| match part {
        FieldPart::Group(name) => Some(name),
        _ => None,
    });
    if let Some(name) = groups.find(|it| own.and_then(|own| own.group_number(it)).is_none()) {
        let message = format!("{{{name}}} is nothing: `regex` has no such group");
        reader.report_at(&place, message, Help::act("write a `regex` with that group"));
    }
    let own = respond.media_type.as_deref().unwrap_or("text/plain");
    let mut kinds = respond.more_types.iter().map(String::as_str).chain([own]);
    if let Some(kind) = kinds.find(|it| !is_shown_as_text(it))
        && let Some(word) = text.parts().iter().find(|part| is_said_by_clients(part))
    {
        let message = format!(
            "{word} is what a client says, and browsers may take {kind} for a page or a script"
        );
        let help = "write type = \"text/plain\", or a `body` without words";
        reader.report_at(&place, message, Help::act(help));
    }
}

/// The text of an answer, which may name maps, and its setting.
pub(super) fn text<'r>(
    trail: &str,
    respond: Option<&'r Respond>,
) -> Option<(String, &'r FieldTemplate)> {
    Some((format!("{trail}.respond.text"), respond?.text.as_ref()?))
}

/// True if browsers show such a body as it stands, or store it.
fn is_shown_as_text(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or_default().trim();
    ["text/plain", "application/octet-stream"].iter().any(|it| it.eq_ignore_ascii_case(kind))
}

/// True unless it is made of letters that mean nothing in any page.
fn is_said_by_clients(part: &FieldPart) -> bool {
    match part {
        FieldPart::Text(_) => false,
        FieldPart::Word(word) => {
            !matches!(word, RequestWord::ClientIp | RequestWord::ClientPort | RequestWord::Scheme)
        }
        FieldPart::Named(..) | FieldPart::Group(_) => true,
    }
}

//! The texts with which requests are compared, and answers.

use super::{ANY_NAME, TextRule, Wrong, site_name, token};

pub(crate) static ASKED_HOST: TextRule =
    TextRule { what: "a host name", example: "example.org", read: asked_host };
pub(crate) static COOKIE_NAME: TextRule =
    TextRule { what: "the name of a cookie", example: "session", read: token };
pub(crate) static COPIED_FIELD: TextRule = TextRule {
    what: "a header name, or two with `>` between them",
    example: "remote-user",
    read: copied_field,
};
pub(crate) static ARGUMENT_NAME: TextRule =
    TextRule { what: "the name of a query argument", example: "page", read: argument_name };
pub(crate) static ANY_TEXT: TextRule =
    TextRule { what: "a text", example: "1", read: |text| Ok(text.to_owned()) };
pub(crate) static ANSWER: TextRule =
    TextRule { what: "a text of at most 64 KiB", example: "ok", read: answer };
pub(crate) static GROUP_NAME: TextRule =
    TextRule { what: "the name of a group", example: "sub", read: group_name };

/// A host as requests ask for it, without its port and in small letters.
fn asked_host(text: &str) -> Result<String, Wrong> {
    match text.starts_with('*') || text == ANY_NAME {
        true => Err(Wrong::advice(
            "it is compared with the whole host",
            "write of = \"{host}\" with a `regex`",
        )),
        false => site_name(text),
    }
}

/// A header of an answer, and the one of a request that it becomes.
fn copied_field(text: &str) -> Result<String, Wrong> {
    let (from, to) = text.split_once('>').unwrap_or((text, text));
    let from = token(from.trim())?;
    let to = token(to.trim())?;
    Ok(if from == to { from } else { format!("{from}>{to}") })
}

fn answer(text: &str) -> Result<String, Wrong> {
    match text.len() > ANSWER_BYTES_MAX {
        true => Err(Wrong::advice(
            "it is longer",
            "write a file, and a route with its folder as `root`",
        )),
        false => Ok(text.to_owned()),
    }
}

/// As the names of groups in regular expressions are.
fn group_name(text: &str) -> Result<String, Wrong> {
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let begins = text.starts_with(|first: char| !first.is_ascii_digit());
    match begins && text.bytes().all(is_of_name) {
        true => Ok(text.to_owned()),
        false => Err(Wrong::new("it has letters, digits and `_`, and begins with no digit")),
    }
}

fn argument_name(text: &str) -> Result<String, Wrong> {
    match text.is_empty() || text.contains(['=', '&', '?', '#', ' ']) {
        true => Err(Wrong::new("it stands before the `=` of an argument")),
        false => Ok(text.to_owned()),
    }
}

/// Longest answer that stands in the configuration.
const ANSWER_BYTES_MAX: usize = 64 * 1_024;

//! The addresses of authorities, and what they are told.

use super::{TextRule, Wrong};

/// The directories of Let's Encrypt, for which words stand.
pub(crate) const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";
pub(crate) const LETS_ENCRYPT_STAGING: &str =
    "https://acme-staging-v02.api.letsencrypt.org/directory";

/// A URL, a key's identifier: an authority chooses them, and none is as long.
const ACME_BYTES_MAX: usize = 1_024;

pub(crate) static ACME_DIRECTORY: TextRule = TextRule {
    what: "the URL of a directory, `letsencrypt` or `letsencrypt-staging`",
    example: "letsencrypt",
    read: directory,
};
pub(crate) static ACME_CONTACT: TextRule =
    TextRule { what: "a mailto URL", example: "mailto:ops@example.org", read: contact };
pub(crate) static ACME_WORD: TextRule =
    TextRule { what: "what the authority says", example: "tlsserver", read: word };

fn directory(text: &str) -> Result<String, Wrong> {
    match text {
        "letsencrypt" => return Ok(LETS_ENCRYPT.to_owned()),
        "letsencrypt-staging" => return Ok(LETS_ENCRYPT_STAGING.to_owned()),
        _ => {}
    }
    let letters: String = text.chars().filter(char::is_ascii_alphabetic).collect();
    match letters.to_ascii_lowercase().as_str() {
        "letsencrypt" | "letsencryptorg" | "le" => {
            return Err(Wrong::suggesting("a word stands for it", "letsencrypt"));
        }
        "letsencryptstaging" | "staging" => {
            return Err(Wrong::suggesting("a word stands for it", "letsencrypt-staging"));
        }
        _ => {}
    }
    let Some(rest) = text.strip_prefix("https://") else {
        let why = "an authority is asked over HTTPS only";
        return Err(match text.split_once("://") {
            Some((_, rest)) => Wrong::suggesting(why, format!("https://{rest}")),
            None if text.contains('.') => Wrong::suggesting(why, format!("https://{text}")),
            None => Wrong::new("it is no URL"),
        });
    };
    let host = rest.split(['/', '?']).next().unwrap_or_default();
    let is_right = !host.is_empty()
        && !host.contains('@')
        && !text.contains('#')
        && text.len() <= ACME_BYTES_MAX
        && text.bytes().all(|byte| byte.is_ascii_graphic());
    match is_right {
        true => Ok(text.to_owned()),
        false => Err(Wrong::new("that is no URL of a directory")),
    }
}

/// One address and nothing else (RFC 8555 section 7.3).
fn contact(text: &str) -> Result<String, Wrong> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b",?:".contains(&byte);
    let is_address = |address: &str| {
        let is_short = address.len() <= ACME_BYTES_MAX;
        is_short && address.bytes().all(is_plain) && address.split('@').count() == 2
    };
    match text.strip_prefix("mailto:") {
        Some(address) if is_address(address) => Ok(text.to_owned()),
        None if is_address(text) => {
            Err(Wrong::suggesting("an address is written as a URL", format!("mailto:{text}")))
        }
        _ => Err(Wrong::new("`mailto:` and one address stand there")),
    }
}

fn word(text: &str) -> Result<String, Wrong> {
    let is_right = (1..=ACME_BYTES_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_graphic());
    match is_right {
        true => Ok(text.to_owned()),
        false => Err(Wrong::new("that is visible ASCII without spaces")),
    }
}

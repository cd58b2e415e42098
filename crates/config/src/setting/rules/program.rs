//! Programs behind FastCGI: which files they are, where an application finds them, and what they are told.

use super::Wrong;

/// The end of the names of files that are programs.
pub(super) fn program_ending(text: &str) -> Result<String, Wrong> {
    let bare = text.trim_start_matches(['*', '.']);
    if bare.is_empty() || bare.contains(['/', '*']) || bare.chars().any(char::is_control) {
        return Err(Wrong::new("it is the end of the name of a file"));
    }
    match text.strip_prefix('.') {
        Some(rest) if rest == bare => Ok(text.to_owned()),
        _ => Err(Wrong::suggesting("it begins with its dot", format!(".{bare}"))),
    }
}

/// A path as an application sees it, which may be on another machine.
pub(super) fn application_path(text: &str) -> Result<String, Wrong> {
    if !text.starts_with('/') {
        return Err(Wrong::advice(
            "it begins with a slash",
            "write the whole path: the application does not know the folder of this file",
        ));
    }
    if text.chars().any(char::is_control) {
        return Err(Wrong::new("programs are told no control characters"));
    }
    match text.strip_suffix('/').filter(|it| !it.is_empty()) {
        Some(bare) => Err(Wrong::suggesting("it ends without a slash", bare)),
        None => Ok(text.to_owned()),
    }
}

/// The name of a variable of the environment.
pub(super) fn parameter_name(text: &str) -> Result<String, Wrong> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let is_name = text.bytes().all(is_plain)
        && text.bytes().next().is_some_and(|first| !first.is_ascii_digit());
    match is_name && text.len() <= NAME_BYTES_MAX {
        true => Ok(text.to_owned()),
        false => Err(Wrong::new("programs take it from their environment")),
    }
}

const NAME_BYTES_MAX: usize = 128;

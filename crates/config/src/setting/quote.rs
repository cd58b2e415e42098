//! Texts and keys as they are written in the file.

/// A text as it is written in the file: a basic TOML string.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            control if control.is_control() => {
                quoted.push_str(&format!("\\u{:04X}", u32::from(control)));
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// A text as it is written for a key: without quotes where it can be.
pub(crate) fn bare_key(text: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    match !text.is_empty() && text.bytes().all(is_bare) {
        true => text.to_owned(),
        false => quoted(text),
    }
}

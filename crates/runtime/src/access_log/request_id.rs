//! The name of a request: in log and error pages, and towards backends (`X-Request-Id`).

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;

/// The name of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestId {
    /// Made of the number of its connection and its own: written as 16 hexadecimal digits that no other process has, and that
    /// nobody can guess.
    Own {
        /// The connection.
        connection: u64,
        /// The request.
        number: u64,
    },
    /// The name that a trusted proxy gave it.
    Said(Box<str>),
}

impl RequestId {
    /// Takes a value of `X-Request-Id`: at most [`ID_BYTES_MAX`] letters, digits and `-_.:+/=@`.
    #[must_use]
    pub fn said(value: &[u8]) -> Option<Self> {
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:+/=@".contains(byte);
        let is_right = (1..=ID_BYTES_MAX).contains(&value.len()) && value.iter().all(is_plain);
        let text = std::str::from_utf8(value).ok().filter(|_| is_right)?;
        Some(Self::Said(text.into()))
    }
}

impl Default for RequestId {
    fn default() -> Self {
        Self::Own { connection: 0, number: 0 }
    }
}

impl RequestId {
    /// Appends it as it is shown. Each request that is passed on has it, and formatting costs more than all else of its line.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Own { connection, number } => {
                out.extend_from_slice(&digits(*connection, *number))
            }
            Self::Said(text) => out.extend_from_slice(text.as_bytes()),
        }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own { connection, number } => {
                let digits = digits(*connection, *number);
                formatter.write_str(std::str::from_utf8(&digits).map_err(|_| fmt::Error)?)
            }
            Self::Said(text) => formatter.write_str(text),
        }
    }
}

/// Returns the hexadecimal digits of an own name, the highest first.
fn digits(connection: u64, number: u64) -> [u8; 16] {
    let id = KEY.hash_one((connection, number));
    std::array::from_fn(|place| DIGITS[(id >> (60 - 4 * place)) as usize & 0xf])
}

const DIGITS: &[u8; 16] = b"0123456789abcdef";

static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// A UUID has 36.
const ID_BYTES_MAX: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_names_of_their_own() {
        let name = |connection, number| RequestId::Own { connection, number }.to_string();
        let names = [name(1, 1), name(1, 2), name(2, 1)];
        for one in &names {
            assert!(one.len() == 16 && one.bytes().all(|it| it.is_ascii_hexdigit()), "{one}");
            assert_eq!(names.iter().filter(|other| *other == one).count(), 1);
        }
        assert_eq!(names[0], name(1, 1));
        for id in (0..100).map(|number| RequestId::Own { connection: 1, number }) {
            let mut written = Vec::new();
            id.write(&mut written);
            assert_eq!(written, id.to_string().as_bytes());
        }
    }

    #[test]
    fn what_is_said_is_short_and_plain() {
        for said in ["a", "0af7651916cd43dd8448eb211c80319c", "1-67891233-abc", &"x".repeat(128)] {
            assert_eq!(RequestId::said(said.as_bytes()).unwrap().to_string(), said);
        }
        for said in ["", "a b", "a\"", "<b>", "a,b", "\u{e4}", "a\t", &"x".repeat(129)] {
            assert_eq!(RequestId::said(said.as_bytes()), None, "{said}");
        }
    }
}

//! The order in which a client needs responses (RFC 9218 §4), from the field and from PRIORITY_UPDATE.

/// The priority that a client gives a response for which it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// The lower, the sooner.
    pub urgency: u8,
    /// True if a part of it is of use before the rest is there.
    pub is_incremental: bool,
}

impl Priority {
    /// If nobody says anything, responses have always come in turns.
    pub const UNSAID: Self = Self { is_incremental: true, ..SAID_USUALLY };

    /// A dictionary with `u` and `i` (RFC 9218 §4). A parameter that is out of range or of another kind is as if it were not
    /// there.
    #[must_use]
    pub fn parse<'v>(values: impl Iterator<Item = &'v [u8]>) -> Self {
        let mut said = None;
        for member in values.flat_map(|value| value.split(|byte| *byte == b',')) {
            let bare = member.split(|byte| *byte == b';').next().unwrap_or_default();
            let said = said.get_or_insert(SAID_USUALLY);
            match bare.trim_ascii() {
                [b'u', b'=', digit @ b'0'..=b'7'] => said.urgency = digit - b'0',
                b"i" | b"i=?1" => said.is_incremental = true,
                b"i=?0" => said.is_incremental = false,
                _ => {}
            }
        }
        said.unwrap_or(Self::UNSAID)
    }
}

const SAID_USUALLY: Priority = Priority { urgency: 3, is_incremental: false };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_say_how_urgent_a_response_is() {
        let parse = |values: &[&'static str]| {
            let Priority { urgency, is_incremental } =
                Priority::parse(values.iter().map(|value| value.as_bytes()));
            (urgency, is_incremental)
        };
        assert_eq!(parse(&[]), (3, true));
        for (value, expected) in [
            ("u=0", (0, false)),
            ("u=5, i", (5, true)),
            ("i , u=7", (7, true)),
            ("i=?0", (3, false)),
            ("i=?1;x=1, u=1;y", (1, true)),
            ("u=1, u=2", (2, false)),
            ("i, i=?0", (3, false)),
            ("", (3, false)),
            ("u=8", (3, false)),
            ("u=-1, i=1", (3, false)),
            ("u=\"0\", U=0, ui", (3, false)),
        ] {
            assert_eq!(parse(&[value]), expected, "{value}");
        }
        assert_eq!(parse(&["u=1", "i"]), (1, true));
    }
}

//! Where rustls decides otherwise and the RFC is on our side. An entry says which; each has an example that shows it.

use super::differential::{
    ALERT, APPLICATION_DATA, Comparison, HANDSHAKE, Said, client_hello, record,
};
use super::peers::Verdict::{self, Closed, Failed, GoesOn, PeerFailed};
use crate::Version::{self, Tls12, Tls13};

/// One way in which both may differ.
pub(super) struct Exception {
    name: &'static str,
    /// The RFC, for each version it holds in.
    sections: &'static [(Version, &'static str)],
    /// What our side must have said the client did; none stands for anything, an empty one for no fault.
    what: &'static [&'static str],
    /// None stands for any.
    ours: &'static [Verdict],
    theirs: &'static [Verdict],
    /// Whether the last thing said is of the kind, where it is known what that was.
    is_said: fn(&Said) -> bool,
    example: fn() -> Vec<Said>,
}

impl Exception {
    pub(super) fn covers(&self, comparison: &Comparison) -> bool {
        self.sections.iter().any(|(version, _)| *version == comparison.version)
            && (self.what.is_empty() || self.what.contains(&comparison.ours.what))
            && (self.ours.is_empty() || self.ours.contains(&comparison.ours.verdict))
            && self.theirs.contains(&comparison.theirs.verdict)
            && (comparison.said.iter().any(misframes)
                || comparison.said.last().is_some_and(self.is_said))
    }
}

const UNEXPECTED: Verdict = Failed(Some(10));
const BAD_MAC: Verdict = Failed(Some(20));
const OVERFLOW: Verdict = Failed(Some(22));
const ILLEGAL: Verdict = Failed(Some(47));
const DECODE: Verdict = Failed(Some(50));
const SILENT: Verdict = Failed(None);

pub(super) const EXCEPTIONS: &[Exception] = &[
    Exception {
        name: "every fatal error is told by an alert",
        sections: &[(Tls13, "8446 6.2"), (Tls12, "5246 7.2.2")],
        what: &[
            "too many empty records",
            "too many warning alerts",
            "too many attempts to renegotiate",
            "too many KeyUpdates",
            "application data inside a handshake message",
            "an alert inside a handshake message",
            "unexpected_record_type",
            "a request to renegotiate longer than any",
            "a KeyUpdate of another length",
            "data after a KeyUpdate",
            "a handshake message after the handshake",
            "an empty handshake record",
        ],
        ours: &[UNEXPECTED, DECODE],
        theirs: &[SILENT],
        is_said: |_| true,
        example: || vec![record(APPLICATION_DATA, &[]); 33],
    },
    Exception {
        name: "an unknown type is an unexpected one",
        sections: &[(Tls13, "8446 5"), (Tls12, "5246 6")],
        what: &["unexpected_record_type"],
        ours: &[UNEXPECTED],
        theirs: &[DECODE, BAD_MAC],
        is_said: |said| may_begin_with(said, |byte| !(20..24).contains(&byte)),
        example: || vec![Said::Plain(vec![9, 3, 3, 0, 1, 1])],
    },
    Exception {
        name: "a header is judged when it is complete",
        sections: &[(Tls13, "8446 5.1"), (Tls12, "5246 6.2.1")],
        what: &[""],
        ours: &[GoesOn],
        theirs: &[DECODE],
        is_said: |said| matches!(said, Said::Plain(bytes) if bytes.len() < 5),
        example: || vec![Said::Plain(vec![9, 3])],
    },
    Exception {
        name: "after the handshake every record is outwardly application data",
        sections: &[(Tls13, "8446 5.2")],
        what: &["unexpected_record_type"],
        ours: &[UNEXPECTED],
        theirs: &[GoesOn, Closed, PeerFailed, BAD_MAC, DECODE, OVERFLOW, ILLEGAL],
        is_said: |said| may_begin_with(said, |byte| byte != APPLICATION_DATA),
        example: || vec![Said::Plain(vec![21, 3, 3, 0, 2, 1, 0])],
    },
    Exception {
        name: "the header is authenticated as it was received",
        sections: &[(Tls13, "8446 5.2")],
        what: &["bad_record_mac"],
        ours: &[BAD_MAC],
        theirs: &[GoesOn, Closed, PeerFailed, UNEXPECTED, DECODE, OVERFLOW, SILENT],
        is_said: |said| matches!(said, Said::Damaged { bit, .. } if (16..24).contains(bit)),
        example: || {
            vec![Said::Damaged { content_type: APPLICATION_DATA, content: vec![1], bit: 16 }]
        },
    },
    Exception {
        name: "a record that is too long is one, whatever is in it",
        sections: &[(Tls13, "8446 5.2"), (Tls12, "5246 6.2.3")],
        what: &["record_overflow"],
        ours: &[OVERFLOW],
        theirs: &[DECODE, BAD_MAC, UNEXPECTED],
        is_said: |said| matches!(said, Said::Plain(_) | Said::Damaged { .. }),
        example: || vec![Said::Plain([&[23, 3, 3, 0x48, 1][..], &[0; 0x4801]].concat())],
    },
    Exception {
        name: "no empty alert",
        sections: &[(Tls13, "8446 5.4"), (Tls12, "5246 6.2.1")],
        what: &["an empty alert record"],
        ours: &[UNEXPECTED],
        theirs: &[DECODE],
        is_said: |said| content_bytes(said) == 0,
        example: || vec![record(ALERT, &[])],
    },
    Exception {
        name: "no empty handshake record",
        sections: &[(Tls13, "8446 5.4"), (Tls12, "5246 6.2.1")],
        what: &["an empty handshake record"],
        ours: &[UNEXPECTED],
        theirs: &[GoesOn],
        is_said: |said| content_bytes(said) == 0,
        example: || vec![record(HANDSHAKE, &[])],
    },
    Exception {
        name: "the description tells how grave an alert is, not the level",
        sections: &[(Tls13, "8446 6")],
        what: &["", "too many warning alerts"],
        ours: &[Closed, PeerFailed, GoesOn, UNEXPECTED],
        theirs: &[DECODE, ILLEGAL, PeerFailed, SILENT],
        is_said: |said| inner_type(said) == ALERT && content_bytes(said) == 2,
        example: || vec![record(ALERT, &[1, 40])],
    },
    Exception {
        name: "a message that may not come is refused by its first byte, before its end",
        sections: &[(Tls13, "8446 4.6"), (Tls12, "5246 7.4")],
        what: &["a handshake message after the handshake"],
        ours: &[UNEXPECTED],
        theirs: &[GoesOn, DECODE],
        is_said: is_handshake,
        example: || vec![record(HANDSHAKE, &[20])],
    },
    Exception {
        name: "a KeyUpdate has a length of one, which its header tells",
        sections: &[(Tls13, "8446 4.6.3")],
        what: &["a KeyUpdate of another length"],
        ours: &[DECODE],
        theirs: &[GoesOn],
        is_said: is_handshake,
        example: || vec![record(HANDSHAKE, &[24, 0, 0, 2])],
    },
    Exception {
        name: "KeyUpdates are limited by time",
        sections: &[(Tls13, "8446 4.6.3")],
        what: &["too many KeyUpdates"],
        ours: &[UNEXPECTED],
        // The next key of a KeyUpdate that rustls takes for an illegal one.
        theirs: &[GoesOn, ILLEGAL],
        is_said: is_handshake,
        example: || vec![vec![record(HANDSHAKE, &[24, 0, 0, 1, 0]), Said::NextKey]; 30].concat(),
    },
    Exception {
        name: "a ChangeCipherSpec is protected like any record",
        sections: &[(Tls12, "5246 6.2.3.3, 7.1")],
        what: &["bad_record_mac", "change_cipher_spec after the handshake"],
        ours: &[BAD_MAC, UNEXPECTED],
        theirs: &[UNEXPECTED, DECODE],
        is_said: |said| may_begin_with(said, |byte| byte == 20),
        example: || vec![Said::Plain(vec![20, 3, 3, 0, 1, 1])],
    },
    Exception {
        name: "what is too short for its tag does not authenticate",
        sections: &[(Tls12, "5246 6.2.3.3")],
        what: &["bad_record_mac"],
        ours: &[BAD_MAC],
        theirs: &[DECODE],
        is_said: |said| matches!(said, Said::Plain(_) | Said::Damaged { .. }),
        example: || vec![Said::Plain(vec![21, 3, 3, 0, 0])],
    },
    Exception {
        name: "other records may come between the parts of a message",
        sections: &[(Tls12, "5246 6.2.1")],
        what: &[],
        ours: &[],
        theirs: &[SILENT, BAD_MAC],
        is_said: |said| !is_handshake(said),
        example: || vec![record(HANDSHAKE, &client_hello()[..9]), record(APPLICATION_DATA, b"x")],
    },
    Exception {
        name: "renegotiations count as the warnings they are answered by",
        sections: &[(Tls12, "5246 7.2.2")],
        what: &["too many warning alerts", "too many attempts to renegotiate"],
        ours: &[UNEXPECTED],
        theirs: &[GoesOn],
        is_said: |said| matches!(inner_type(said), ALERT | HANDSHAKE),
        example: || {
            let hello = record(HANDSHAKE, &client_hello());
            [vec![hello], vec![record(ALERT, &[1, 90]); 4]].concat()
        },
    },
    Exception {
        name: "a renegotiation is refused, not read, and no number of them is named",
        sections: &[(Tls12, "5246 7.2.2, 7.4.1.2")],
        what: &[""],
        ours: &[GoesOn],
        theirs: &[SILENT, DECODE],
        is_said: is_handshake,
        example: || vec![record(HANDSHAKE, &client_hello()); 2],
    },
];

/// Whether what follows may be cut into other records than it was said in.
fn misframes(said: &Said) -> bool {
    match said {
        Said::Damaged { bit, .. } => (24..40).contains(bit),
        Said::Plain(bytes) => {
            bytes.split_first_chunk::<5>().is_none_or(|([.., high, low], body)| {
                body.len() != usize::from(*high) * 256 + usize::from(*low)
            })
        }
        Said::Record { .. } | Said::NextKey => false,
    }
}

fn is_handshake(said: &Said) -> bool {
    inner_type(said) == HANDSHAKE
}

/// Whether the type in the header, which in TLS 1.3 is not the true one, may be such.
fn may_begin_with(said: &Said, is_such: fn(u8) -> bool) -> bool {
    match said {
        Said::Record { content_type, .. } => is_such(*content_type),
        Said::Damaged { content_type, bit, .. } => {
            let mask = if *bit < 8 { 1 << bit } else { 0 };
            is_such(content_type ^ mask) || is_such(APPLICATION_DATA ^ mask)
        }
        Said::Plain(bytes) => bytes.first().is_some_and(|byte| is_such(*byte)),
        Said::NextKey => false,
    }
}

fn inner_type(said: &Said) -> u8 {
    match said {
        Said::Record { content_type, .. } | Said::Damaged { content_type, .. } => *content_type,
        Said::Plain(_) | Said::NextKey => APPLICATION_DATA,
    }
}

fn content_bytes(said: &Said) -> usize {
    match said {
        Said::Record { content, .. } | Said::Damaged { content, .. } => content.len(),
        Said::Plain(bytes) => bytes.len(),
        Said::NextKey => 0,
    }
}

#[test]
fn each_exception_has_an_example_and_its_section() {
    for exception in EXCEPTIONS {
        for (version, section) in exception.sections {
            let comparison = Comparison::of(*version, &(exception.example)());
            let (ours, theirs) = (&comparison.ours, &comparison.theirs);
            let name = exception.name;
            assert!(!section.is_empty());
            assert!(
                exception.covers(&comparison),
                "{name} in {version:?}: {ours:?}, rustls: {theirs:?}"
            );
        }
    }
}

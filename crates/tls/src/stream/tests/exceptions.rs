//! The cases in which rustls decides otherwise and the RFC is on our side. An entry says which; each has an example that shows
//! it.

use super::differential::{
    ALERT, APPLICATION_DATA, Comparison, HANDSHAKE, Said, client_hello, record,
};
use super::peers::Outcome;
use super::peers::Verdict::{self, Closed, Failed, GoesOn, PeerFailed};
use crate::Version::{self, Tls12, Tls13};

/// One way in which both may differ.
pub(super) struct Exception {
    name: &'static str,
    /// The RFC, for each version it holds in.
    sections: &'static [(Version, &'static str)],
    /// The fault that our side must have said the client did; none stands for anything, an empty one for no fault.
    what: &'static [&'static str],
    /// None stands for any.
    ours: &'static [Verdict],
    theirs: &'static [Verdict],
    /// Tells whether the last thing said, behind these, is of the kind.
    is_said: fn(&Said, &[Said]) -> bool,
    example: fn() -> Vec<Said>,
}

impl Exception {
    pub(super) fn covers(&self, comparison: &Comparison) -> bool {
        let Some((last, before)) = comparison.said.split_last() else { return false };
        // It is not known what the last record was, but that nobody sealed it.
        let is_unclear =
            before.iter().any(misframes) && matches!(comparison.ours.verdict, Failed(_));
        self.sections.iter().any(|(version, _)| *version == comparison.version)
            && (self.what.is_empty() || self.what.contains(&comparison.ours.what))
            && (self.ours.is_empty() || self.ours.contains(&comparison.ours.verdict))
            && self.theirs.contains(&comparison.theirs.verdict)
            && (is_unclear || (self.is_said)(last, before))
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
            "an empty alert record",
            "change_cipher_spec after the handshake",
        ],
        ours: &[UNEXPECTED, DECODE],
        theirs: &[SILENT],
        is_said: |_, _| true,
        example: || vec![record(APPLICATION_DATA, &[]); 33],
    },
    Exception {
        name: "an unknown type is an unexpected one",
        sections: &[(Tls13, "8446 5"), (Tls12, "5246 6")],
        what: &["unexpected_record_type"],
        ours: &[UNEXPECTED],
        // rustls waits for the end of the record.
        theirs: &[DECODE, BAD_MAC, GoesOn],
        is_said: |said, _| may_begin_with(said, |byte| !(20..24).contains(&byte)),
        example: || vec![Said::Plain(vec![9, 3, 3, 0, 1, 1])],
    },
    Exception {
        name: "a header is judged when it is complete",
        sections: &[(Tls13, "8446 5.1"), (Tls12, "5246 6.2.1")],
        what: &[""],
        ours: &[GoesOn],
        theirs: &[DECODE],
        is_said: is_part_of_header,
        example: || vec![Said::Plain(vec![9, 3])],
    },
    Exception {
        name: "after the handshake every record is outwardly application data",
        sections: &[(Tls13, "8446 5.2")],
        what: &["unexpected_record_type"],
        ours: &[UNEXPECTED],
        theirs: &[GoesOn, Closed, PeerFailed, BAD_MAC, DECODE, OVERFLOW, ILLEGAL],
        is_said: |said, _| may_begin_with(said, |byte| byte != APPLICATION_DATA),
        example: || vec![Said::Plain(vec![21, 3, 3, 0, 2, 1, 0])],
    },
    Exception {
        name: "the header is authenticated as it was received",
        sections: &[(Tls13, "8446 5.2")],
        what: &["bad_record_mac"],
        ours: &[BAD_MAC],
        theirs: &[GoesOn, Closed, PeerFailed, UNEXPECTED, DECODE, OVERFLOW, SILENT],
        is_said: |said, _| matches!(said, Said::Damaged { bit, .. } if (16..24).contains(bit)),
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
        is_said: |said, _| matches!(said, Said::Plain(_) | Said::Damaged { .. }),
        example: || vec![Said::Plain([&[23, 3, 3, 0x48, 1][..], &[0; 0x4801]].concat())],
    },
    Exception {
        name: "no empty alert",
        sections: &[(Tls13, "8446 5.4"), (Tls12, "5246 6.2.1")],
        what: &["an empty alert record"],
        ours: &[UNEXPECTED],
        theirs: &[DECODE],
        is_said: |said, _| content_bytes(said) == Some(0),
        example: || vec![record(ALERT, &[])],
    },
    Exception {
        name: "no empty handshake record",
        sections: &[(Tls13, "8446 5.4"), (Tls12, "5246 6.2.1")],
        what: &["an empty handshake record"],
        ours: &[UNEXPECTED],
        theirs: &[GoesOn],
        is_said: |said, _| content_bytes(said) == Some(0),
        example: || vec![record(HANDSHAKE, &[])],
    },
    Exception {
        name: "the description tells how grave an alert is, not the level",
        sections: &[(Tls13, "8446 6")],
        what: &["", "too many warning alerts"],
        ours: &[Closed, PeerFailed, GoesOn, UNEXPECTED],
        theirs: &[DECODE, ILLEGAL, PeerFailed, SILENT],
        is_said: |said, _| inner_type(said) == Some(ALERT) && content_bytes(said) == Some(2),
        example: || vec![record(ALERT, &[1, 40])],
    },
    Exception {
        name: "a message that may not come is refused by its first byte, before its end",
        sections: &[(Tls13, "8446 4.6"), (Tls12, "5246 7.4")],
        what: &["a handshake message after the handshake"],
        ours: &[UNEXPECTED],
        theirs: &[GoesOn, DECODE],
        is_said: |said, _| is_handshake(said),
        example: || vec![record(HANDSHAKE, &[20])],
    },
    Exception {
        name: "a KeyUpdate has a length of one, which its header tells",
        sections: &[(Tls13, "8446 4.6.3")],
        what: &["a KeyUpdate of another length"],
        ours: &[DECODE],
        theirs: &[GoesOn],
        is_said: |said, _| is_handshake(said),
        example: || vec![record(HANDSHAKE, &[24, 0, 0, 2])],
    },
    Exception {
        name: "KeyUpdates are limited by time",
        sections: &[(Tls13, "8446 4.6.3")],
        what: &["too many KeyUpdates"],
        ours: &[UNEXPECTED],
        // The next key of a KeyUpdate that rustls takes for an illegal one; it takes 32 in a row, however long that lasts.
        theirs: &[GoesOn, ILLEGAL, SILENT],
        is_said: |said, _| is_handshake(said),
        example: || vec![vec![record(HANDSHAKE, &[24, 0, 0, 1, 0]), Said::NextKey]; 100].concat(),
    },
    Exception {
        name: "a ChangeCipherSpec is protected like any record",
        sections: &[(Tls12, "5246 6.2.3.3, 7.1")],
        what: &["bad_record_mac", "change_cipher_spec after the handshake"],
        ours: &[BAD_MAC, UNEXPECTED],
        theirs: &[UNEXPECTED, DECODE],
        is_said: |said, _| may_begin_with(said, |byte| byte == 20),
        example: || vec![Said::Plain(vec![20, 3, 3, 0, 1, 1])],
    },
    Exception {
        name: "what is too short for its tag does not authenticate",
        sections: &[(Tls12, "5246 6.2.3.3")],
        what: &["bad_record_mac"],
        ours: &[BAD_MAC],
        theirs: &[DECODE],
        is_said: |said, _| matches!(said, Said::Plain(_) | Said::Damaged { .. }),
        example: || vec![Said::Plain(vec![21, 3, 3, 0, 0])],
    },
    Exception {
        name: "other records may come between the parts of a message",
        sections: &[(Tls12, "5246 6.2.1")],
        what: &[],
        ours: &[GoesOn, Closed, PeerFailed, UNEXPECTED, DECODE, ILLEGAL],
        theirs: &[SILENT],
        is_said: |said, before| {
            is_sealed(said) && !is_handshake(said) && is_part_of_message(before)
        },
        example: || vec![record(HANDSHAKE, &client_hello()[..9]), record(APPLICATION_DATA, b"x")],
    },
    Exception {
        name: "renegotiations count as the warnings they are answered by",
        sections: &[(Tls12, "5246 7.2.2")],
        what: &["too many warning alerts", "too many attempts to renegotiate"],
        ours: &[UNEXPECTED],
        theirs: &[GoesOn],
        is_said: |said, _| matches!(inner_type(said), Some(ALERT | HANDSHAKE)),
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
        is_said: |said, _| is_handshake(said),
        example: || vec![record(HANDSHAKE, &client_hello()); 2],
    },
];

/// True if what follows may be cut into other records than it was said in.
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

/// True if the handshake messages in these records end with a part of one.
fn is_part_of_message(said: &[Said]) -> bool {
    let mut messages = Vec::new();
    for said in said {
        if let Said::Record { content_type: HANDSHAKE, content, .. } = said {
            messages.extend_from_slice(content);
        }
    }
    let mut rest = messages.as_slice();
    while let Some(([_, length @ ..], body)) = rest.split_first_chunk::<4>() {
        let bytes = length.iter().fold(0, |bytes, byte| bytes * 256 + usize::from(*byte));
        let Some(next) = body.get(bytes..) else { break };
        rest = next;
    }
    !rest.is_empty()
}

/// True if so little was said behind the last record that it is no header.
fn is_part_of_header(last: &Said, before: &[Said]) -> bool {
    let plain = |said: &Said| if let Said::Plain(bytes) = said { Some(bytes.len()) } else { None };
    let bytes: usize = before.iter().chain([last]).rev().map_while(plain).sum();
    (1..5).contains(&bytes)
}

fn is_sealed(said: &Said) -> bool {
    matches!(said, Said::Record { .. })
}

fn is_handshake(said: &Said) -> bool {
    inner_type(said) == Some(HANDSHAKE)
}

/// True if the type in the header, which in TLS 1.3 is not the true one, may be such.
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

/// The true type of a record that was sealed.
fn inner_type(said: &Said) -> Option<u8> {
    if let Said::Record { content_type, .. } = said { Some(*content_type) } else { None }
}

fn content_bytes(said: &Said) -> Option<usize> {
    if let Said::Record { content, .. } = said { Some(content.len()) } else { None }
}

#[test]
fn each_exception_has_an_example_and_its_section() {
    for exception in EXCEPTIONS {
        for (version, section) in exception.sections {
            let comparison = Comparison::of(*version, &(exception.example)());
            let ours = &comparison.ours;
            let theirs = &comparison.theirs;
            let name = exception.name;
            assert!(!section.is_empty());
            assert!(
                exception.covers(&comparison),
                "{name} in {version:?}: {ours:?}, rustls: {theirs:?}"
            );
        }
    }
}

/// Whatever rustls says of it, and whatever came before.
#[test]
fn no_exception_excuses_a_record_that_nobody_sealed() {
    let parts = [vec![record(HANDSHAKE, &client_hello()[..9])], vec![record(HANDSHAKE, &[24, 0])]];
    let misframed = [
        vec![Said::Damaged { content_type: APPLICATION_DATA, content: vec![1], bit: 39 }],
        vec![Said::Plain(vec![23, 3, 3])],
    ];
    let honest = [vec![], vec![record(APPLICATION_DATA, b"x")], vec![record(ALERT, &[1, 90])]];
    let before = [&parts[..], &misframed, &honest].concat();
    let accepted = [GoesOn, Closed, PeerFailed];
    let theirs =
        [&accepted[..], &[UNEXPECTED, BAD_MAC, OVERFLOW, ILLEGAL, DECODE, SILENT]].concat();
    for (before, forged) in before.iter().flat_map(|before| forged().map(move |it| (before, it))) {
        let said = [&before[..], &[forged]].concat();
        for (ours, theirs) in
            accepted.iter().flat_map(|ours| theirs.iter().map(move |it| (ours, it)))
        {
            for version in [Tls13, Tls12] {
                let [ours, theirs] = [ours, theirs].map(|verdict| Outcome {
                    verdict: *verdict,
                    what: "",
                    data: Vec::new(),
                    has_updated: false,
                });
                let comparison = Comparison { version, said: said.clone(), ours, theirs };
                let excuse = EXCEPTIONS.iter().find(|exception| exception.covers(&comparison));
                let Comparison { ours, theirs, .. } = &comparison;
                assert!(
                    excuse.is_none(),
                    "{}: {said:?}, {ours:?}, rustls: {theirs:?}",
                    excuse.unwrap().name
                );
            }
        }
    }
}

/// Records of every type, whole and damaged in every bit of the header and one of each part behind it, or made up.
pub(super) fn forged() -> impl Iterator<Item = Said> {
    let types = || [0, 20, ALERT, HANDSHAKE, APPLICATION_DATA, 24];
    let bits = (0..40).chain([41, 8 * 8, 8 * 20]);
    let damaged = bits.flat_map(move |bit| {
        let lengths = types()
            .into_iter()
            .flat_map(|content_type| [0, 1, 2, 9].map(|bytes| (content_type, bytes)));
        lengths.map(move |(content_type, bytes)| Said::Damaged {
            content_type,
            content: vec![1; bytes],
            bit,
        })
    });
    let made_up = types()
        .into_iter()
        .flat_map(|content_type| [0, 2, 19, 40].map(|bytes| (content_type, bytes)));
    damaged.chain(made_up.map(|(content_type, bytes): (u8, u8)| {
        Said::Plain([&[content_type, 3, 3, 0, bytes][..], &vec![0; bytes.into()]].concat())
    }))
}

//! The same records to our stream and to rustls: both must come to the same verdict and say so by the same alert, except
//! where the RFC is on our side, which is a list by name (`exceptions`).

use std::fmt;

use proptest::prelude::*;

use super::exceptions::{EXCEPTIONS, forged};
use super::peers::{Outcome, Verdict, to_kettle, to_rustls};
use super::{TLS12, TLS13};
use crate::Version;

/// Something a client puts on the wire.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Said {
    /// A protected record.
    Record { content_type: u8, content: Vec<u8>, padding: usize },
    /// The same with one bit changed, counted from the header on.
    Damaged { content_type: u8, content: Vec<u8>, bit: usize },
    /// Bytes as they are.
    Plain(Vec<u8>),
    /// The next record is under the next key (TLS 1.3).
    NextKey,
}

impl fmt::Debug for Said {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short =
            |bytes: &[u8]| format!("{:?} of {}", &bytes[..bytes.len().min(12)], bytes.len());
        match self {
            Self::Record { content_type, content, padding } => {
                write!(formatter, "Record {content_type} {} + {padding}", short(content))
            }
            Self::Damaged { content_type, content, bit } => {
                write!(formatter, "Damaged {content_type} {} at {bit}", short(content))
            }
            Self::Plain(bytes) => write!(formatter, "Plain {}", short(bytes)),
            Self::NextKey => formatter.write_str("NextKey"),
        }
    }
}

pub(super) fn record(content_type: u8, content: &[u8]) -> Said {
    Said::Record { content_type, content: content.to_vec(), padding: 0 }
}

/// The findings of both on the same records; where they differ, up to the first record that made them differ.
pub(super) struct Comparison {
    pub(super) version: Version,
    pub(super) said: Vec<Said>,
    pub(super) ours: Outcome,
    pub(super) theirs: Outcome,
}

impl Comparison {
    pub(super) fn of(version: Version, said: &[Said]) -> Self {
        Self::of_pieces(version, said, &[])
    }

    /// Of a stream that comes to us in pieces of so many bytes, and all that is left in one.
    fn of_pieces(version: Version, said: &[Said], pieces: &[usize]) -> Self {
        let whole = Self::compare(version, said, pieces);
        if whole.agrees() {
            return whole;
        }
        // Once they differ, they differ for good: both have made up their minds, or one has.
        let mut agreed = 0;
        let mut differs = said.len();
        while differs - agreed > 1 {
            let middle = agreed.midpoint(differs);
            if Self::compare(version, &said[..middle], pieces).agrees() {
                agreed = middle;
            } else {
                differs = middle;
            }
        }
        Self::compare(version, &said[..differs], pieces)
    }

    fn compare(version: Version, said: &[Said], pieces: &[usize]) -> Self {
        let suite = if version == Version::Tls13 { TLS13 } else { TLS12 };
        let ours = to_kettle(suite, said, pieces);
        let theirs = to_rustls(suite, said);
        Self { version, said: said.to_vec(), ours, theirs }
    }

    fn agrees(&self) -> bool {
        // The same verdict, and at the same place.
        self.ours.verdict == self.theirs.verdict && self.ours.data == self.theirs.data
    }

    /// Checks that nothing is wrong: what one side took for data, the other did not take for something else, and where the
    /// verdicts differ the RFC says why.
    fn check(&self) -> Result<(), TestCaseError> {
        let Self { said, ours, theirs, .. } = self;
        let shared = ours.data.len().min(theirs.data.len());
        prop_assert_eq!(&ours.data[..shared], &theirs.data[..shared]);
        if self.agrees() {
            if ours.verdict == Verdict::GoesOn {
                prop_assert_eq!(ours.has_updated, theirs.has_updated, "a KeyUpdate unanswered");
            }
            return Ok(());
        }
        let known = EXCEPTIONS.iter().any(|exception| exception.covers(self));
        prop_assert!(known, "{ours:?}, rustls: {theirs:?}, at {:?} of {said:?}", said.last());
        Ok(())
    }
}

fn record_of(content_type: impl Strategy<Value = u8>, bytes: usize) -> impl Strategy<Value = Said> {
    let content = prop::collection::vec(any::<u8>(), 0..bytes);
    (content_type, content).prop_map(|(content_type, content)| record(content_type, &content))
}

/// A TLS 1.3 KeyUpdate, whole or in pieces.
fn key_update(request: u8, piece_bytes: usize) -> Vec<Said> {
    let message = [24, 0, 0, 1, request];
    let pieces = message.chunks(piece_bytes).map(|piece| record(HANDSHAKE, piece));
    pieces.chain([Said::NextKey]).collect()
}

/// The beginning of a ClientHello that rustls can read.
pub(super) fn client_hello() -> Vec<u8> {
    let body = [&[3, 3][..], &[7; 32], &[0, 0, 2, 0xc0, 0x2b, 1, 0]].concat();
    [&[1, 0, 0, u8::try_from(body.len()).unwrap()], &body[..]].concat()
}

/// Returns the rare words of honest clients.
fn honest(version: Version) -> BoxedStrategy<Vec<Said>> {
    let data = prop_oneof![3 => 1..60_usize, 1 => 16_300..=16_384_usize]
        .prop_map(|bytes| vec![record(APPLICATION_DATA, &vec![b'd'; bytes])]);
    let empty = Just(vec![record(APPLICATION_DATA, &[])]);
    let either = prop_oneof![4 => data, 1 => empty];
    match version {
        Version::Tls13 => prop_oneof![
            4 => either,
            2 => (0..2_u8, 1..6_usize).prop_map(|(request, bytes)| key_update(request, bytes)),
            1 => Just(vec![record(ALERT, &[1, 90])]),
            1 => (0..3_000_usize).prop_map(|padding| {
                vec![Said::Record { content_type: APPLICATION_DATA, content: b"padded".to_vec(), padding }]
            }),
        ]
        .boxed(),
        Version::Tls12 => prop_oneof![
            4 => either,
            1 => (1..60_usize).prop_map(|piece_bytes| {
                client_hello().chunks(piece_bytes).map(|piece| record(HANDSHAKE, piece)).collect()
            }),
            1 => any::<u8>().prop_map(|description| vec![record(ALERT, &[1, description])]),
        ]
        .boxed(),
    }
}

/// Returns the words of no honest client.
fn hostile() -> impl Strategy<Value = Vec<Said>> {
    let byte = prop_oneof![Just(0_u8), Just(1), Just(2), Just(24), any::<u8>()];
    let one = prop_oneof![
        // Alerts of every level and length.
        3 => (0..4_u8, prop_oneof![Just(0_u8), Just(90), any::<u8>()])
            .prop_map(|(level, description)| record(ALERT, &[level, description])),
        1 => record_of(Just(ALERT), 5),
        // Handshake messages, most of them broken.
        4 => prop::collection::vec(byte, 0..9).prop_map(|content| record(HANDSHAKE, &content)),
        // Parts of messages, of which the rest does not come.
        1 => (1..9_usize).prop_map(|bytes| record(HANDSHAKE, &client_hello()[..bytes])),
        1 => (1..8_usize, 0..4_u8).prop_map(|(bytes, more)| {
            let message = [24, 0, 0, 1, 1, more, more, more];
            record(HANDSHAKE, &message[..bytes])
        }),
        // Any type; nothing but padding.
        2 => record_of(any::<u8>(), 8),
        1 => record_of(18..27_u8, 3),
        // Around the longest.
        1 => (16_380..16_390_usize).prop_map(|bytes| record(APPLICATION_DATA, &vec![1; bytes])),
        1 => (16_370..16_400_usize).prop_map(|padding| Said::Record {
            content_type: APPLICATION_DATA,
            content: b"abc".to_vec(),
            padding,
        }),
        2 => (20..24_u8, prop_oneof![Just(0), Just(2), Just(16_384)], any::<usize>())
            .prop_map(|(content_type, bytes, bit)| {
                let content = vec![1; bytes];
                Said::Damaged { content_type, content, bit: bit % (8 * (bytes + 20)) }
            }),
        1 => (any::<u8>(), 0..5_u8, prop::collection::vec(any::<u8>(), 0..40)).prop_map(
            |(content_type, major, body)| {
                let length = u16::try_from(body.len()).unwrap().to_be_bytes();
                Said::Plain([&[content_type, major, 3, length[0], length[1]], &body[..]].concat())
            }
        ),
        1 => (20..24_u8, 16_384..=u16::MAX).prop_map(|(content_type, bytes)| {
            let [high, low] = bytes.to_be_bytes();
            Said::Plain([&[content_type, 3, 3, high, low][..], &vec![0; bytes.into()]].concat())
        }),
        1 => Just(Said::Plain(vec![20, 3, 3, 0, 1, 1])),
        1 => prop::collection::vec(any::<u8>(), 0..300).prop_map(Said::Plain),
    ];
    prop_oneof![
        6 => one.clone().prop_map(|said| vec![said]),
        // Floods.
        1 => (one, 2..70_usize).prop_map(|(said, times)| vec![said; times]),
        1 => (0..2_u8, 2..40_usize).prop_map(|(request, times)| vec![key_update(request, 5); times].concat()),
        1 => (28..40_usize).prop_map(|times| vec![record(APPLICATION_DATA, &[]); times]),
    ]
}

fn stream(version: Version) -> impl Strategy<Value = Vec<Said>> {
    let part = prop_oneof![5 => honest(version), 2 => hostile().boxed()];
    prop::collection::vec(part, 0..8).prop_map(|parts| parts.concat())
}

fn pieces() -> impl Strategy<Value = Vec<usize>> {
    let piece = prop_oneof![4 => 1..40_usize, 2 => 1..2_000_usize, 1 => 1..40_000_usize];
    prop_oneof![Just(Vec::new()), prop::collection::vec(piece, 0..24)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn tls13_streams_end_as_with_rustls(said in stream(Version::Tls13), pieces in pieces()) {
        let _panics = kettle_kernel::bug::panics();
        Comparison::of_pieces(Version::Tls13, &said, &pieces).check()?;
    }

    #[test]
    fn tls12_streams_end_as_with_rustls(said in stream(Version::Tls12), pieces in pieces()) {
        let _panics = kettle_kernel::bug::panics();
        Comparison::of_pieces(Version::Tls12, &said, &pieces).check()?;
    }
}

#[test]
fn honest_records_are_taken_by_both() {
    let said = [
        vec![record(APPLICATION_DATA, b"one"), record(ALERT, &[1, 90])],
        key_update(1, 2),
        key_update(1, 5),
        vec![
            record(APPLICATION_DATA, b"two"),
            record(ALERT, &[1, 0]),
            record(APPLICATION_DATA, b"!"),
        ],
    ]
    .concat();
    let comparison = Comparison::of(Version::Tls13, &said);
    for outcome in [&comparison.ours, &comparison.theirs] {
        assert_eq!((outcome.verdict, &outcome.data[..]), (Verdict::Closed, &b"onetwo"[..]));
    }
    let goes_on = Comparison::of(Version::Tls13, &said[..said.len() - 2]);
    assert_eq!(goes_on.ours.verdict, Verdict::GoesOn);
    assert!(goes_on.ours.has_updated && goes_on.theirs.has_updated);
}

#[test]
fn forged_records_are_data_to_neither_wherever_they_stand() {
    let data = record(APPLICATION_DATA, b"one");
    for (version, part) in [(Version::Tls13, vec![24, 0]), (Version::Tls12, client_hello())] {
        for before in [data.clone(), record(HANDSHAKE, &part[..part.len().min(9)])] {
            for forged in forged().step_by(29) {
                let comparison = Comparison::of(version, &[before.clone(), forged]);
                comparison.check().unwrap();
                assert!(comparison.ours.data.len() <= b"one".len(), "{:?}", comparison.said);
            }
        }
    }
}

pub(super) const ALERT: u8 = 21;
pub(super) const HANDSHAKE: u8 = 22;
pub(super) const APPLICATION_DATA: u8 = 23;

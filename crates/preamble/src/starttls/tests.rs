//! Messages on what went wrong before TLS.

use std::collections::HashSet;

use super::*;

/// The end of a dialogue, if it ends.
pub(super) type End = Option<Result<Next, StartTlsError>>;

/// Returns what a dialogue says and how it ends, when it is given these pieces one after the other.
pub(super) fn told<'p>(
    dialogue: &mut impl Dialogue,
    pieces: impl IntoIterator<Item = &'p [u8]>,
) -> (Vec<u8>, End) {
    let mut answer = Vec::new();
    dialogue.begin(&mut answer);
    let mut end = None;
    for piece in pieces {
        end = Some(dialogue.receive(piece, &mut answer)).filter(|end| *end != Ok(Next::Receive));
        if end.is_some() {
            break;
        }
    }
    (answer, end)
}

/// The same of a dialogue in text.
pub(super) fn told_text<'p>(
    dialogue: &mut impl Dialogue,
    pieces: impl IntoIterator<Item = &'p [u8]>,
) -> (String, End) {
    let (answer, end) = told(dialogue, pieces);
    (String::from_utf8(answer).unwrap(), end)
}

#[test]
fn each_error_has_a_word_and_a_sentence_of_its_own() {
    let errors = [
        StartTlsError::TooLong,
        StartTlsError::TooMany,
        StartTlsError::SaidTooMuch,
        StartTlsError::Malformed,
        StartTlsError::PlainText,
        StartTlsError::Refused("no".to_owned()),
    ];
    let words: HashSet<_> = errors.iter().map(StartTlsError::reason).collect();
    assert!(words.len() == errors.len() && words.iter().all(|it| it.starts_with("starttls_")));
    let sentences: HashSet<_> = errors.iter().map(StartTlsError::to_string).collect();
    assert!(sentences.len() == errors.len() && !sentences.contains(""));
}

#[test]
fn of_a_refusal_the_front_is_told_in_printable_characters() {
    let words = [b"550 \x1b[2J".as_slice(), &[b'x'; 1_000], b"the end"].concat();
    let told = StartTlsError::refused(&words).to_string();
    assert!(told.starts_with("the server refuses TLS: 550 \\x1b[2Jx"), "{told}");
    assert!(told.len() < 2 * WORDS_BYTES_MAX && !told.contains("the end"), "{told}");
}

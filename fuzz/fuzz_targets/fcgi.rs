//! FastCGI records and the head in them: the same outcome however the bytes arrive.

#![no_main]

use kettle_http::cgi::{CgiProgress, parse_head};
use kettle_http::fcgi::{RecordDecoder, RecordError, RecordPiece, RequestEnd};
use libfuzzer_sys::fuzz_target;

/// The response and the ends of requests.
fn decoded(bytes: &[u8], step: usize) -> Result<(Vec<u8>, Vec<RequestEnd>), RecordError> {
    let mut decoder = RecordDecoder::default();
    let mut output = Vec::new();
    let mut ends = Vec::new();
    for mut input in bytes.chunks(step) {
        while let Some(piece) = decoder.next(&mut input)? {
            match piece {
                RecordPiece::Output(data) => output.extend_from_slice(data),
                RecordPiece::Errors(data) => assert!(!data.is_empty()),
                RecordPiece::End(end) => ends.push(end),
            }
        }
        assert!(input.is_empty());
    }
    Ok((output, ends))
}

fuzz_target!(|data: &[u8]| {
    let Some((step, bytes)) = data.split_first() else {
        return;
    };
    let step = usize::from(*step).max(1);
    let whole = decoded(bytes, usize::MAX);
    assert_eq!(whole, decoded(bytes, step));
    // Most inputs are no records, and their heads are worth a look, too.
    for output in [bytes, whole.as_ref().map_or(&[][..], |(output, _)| output)] {
        let has_line = step % 2 == 0;
        let head = parse_head(output, has_line);
        let mut progress =
            if has_line { CgiProgress::with_status_line() } else { CgiProgress::default() };
        let mut by_progress = Ok(None);
        for end in (0..output.len()).step_by(step).chain([output.len()]) {
            by_progress = progress.parse(&output[..end]);
            if !matches!(by_progress, Ok(None)) {
                break;
            }
        }
        let ended = |it: &Option<kettle_http::cgi::CgiHead>| it.as_ref().map(|it| it.bytes);
        assert_eq!(by_progress.as_ref().map(ended), head.as_ref().map(ended));
        let Ok(Some(head)) = head else { continue };
        assert!((200..1000).contains(&head.head.status()));
        for (name, value) in head.head.headers() {
            assert!(!name.is_empty());
            assert!(!value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)));
        }
    }
});

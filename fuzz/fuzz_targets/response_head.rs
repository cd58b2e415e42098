//! Response heads: the same outcome however the bytes arrive, and framing that follows from a head alone.

#![no_main]

use kettle_http::h1::response::{
    ParseResponse, ResponseProgress, parse_response, response_framing,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((cut, bytes)) = data.split_first() else {
        return;
    };
    let whole = parse_response(bytes);
    let step = usize::from(*cut).max(1);
    let mut progress = ResponseProgress::default();
    let mut by_progress = None;
    for end in (0..=bytes.len()).step_by(step).chain([bytes.len()]) {
        match progress.parse(&bytes[..end]) {
            Ok(ParseResponse::Partial) => {}
            Ok(ParseResponse::Complete { bytes, .. }) => {
                by_progress = Some(bytes);
                break;
            }
            Err(error) => {
                assert_eq!(whole.as_ref().err(), Some(&error));
                return;
            }
        }
    }
    if let Ok(ParseResponse::Complete { head, bytes: head_bytes }) = whole {
        assert_eq!(by_progress, Some(head_bytes));
        assert!(bytes[..head_bytes].ends_with(b"\r\n\r\n"));
        for (name, value) in head.headers() {
            assert!(!name.is_empty());
            assert!(!value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)));
        }
        let _ = response_framing(&head, false);
    }
});

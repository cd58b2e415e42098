//! Request heads: one outcome however they arrive, and never more lenient than httparse.

#![no_main]

use kettle_http::h1::framing::{BodyFraming, body_framing};
use kettle_http::h1::parse::{HeadProgress, ParseRequest, parse_request};
use kettle_http::{HeadLimits, RequestError};
use libfuzzer_sys::fuzz_target;

const LIMITS: HeadLimits =
    HeadLimits { head_bytes_max: 512, headers_max: 40, target_bytes_max: 100 };

/// Short inputs are cut at every byte, long ones at about this many places.
const CUTS_MAX: usize = 64;

type ParseOutcome = Result<Option<(usize, Option<String>, BodyFraming, String)>, RequestError>;

fn outcome_of(parse: Result<ParseRequest<'_>, RequestError>) -> ParseOutcome {
    let ParseRequest::Complete { head, bytes } = parse? else {
        return Ok(None);
    };
    let framing = body_framing(&head)?;
    let path = head.target()?.path.to_owned();
    Ok(Some((bytes, head.host().map(str::to_owned), framing, path)))
}

fn assert_well_formed(data: &[u8]) {
    let Ok(ParseRequest::Complete { head, bytes }) = parse_request(data, &LIMITS) else {
        return;
    };
    assert!(data[..bytes].ends_with(b"\r\n\r\n"));
    assert!(head.header_values("Host").count() <= 1);
    for (name, value) in head.headers() {
        assert!(head.header_values(std::str::from_utf8(name).unwrap()).any(|found| found == value));
        assert!(!value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0)));
    }

    // httparse reads the same head, unless the version is one it does not know.
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(data) {
        Ok(httparse::Status::Complete(end)) => {
            assert_eq!(end, bytes);
            assert_eq!(request.path, Some(head.raw_target()));
            assert_eq!(request.method, Some(head.method().as_str()));
            let ours = head.headers();
            let theirs = request.headers.iter().map(|field| (field.name.as_bytes(), field.value));
            assert!(ours.eq(theirs));
        }
        Err(httparse::Error::Version) => {}
        other => panic!("accepted here, but {other:?} there"),
    }
}

fuzz_target!(|data: &[u8]| {
    assert_well_formed(data);
    let whole = outcome_of(parse_request(data, &LIMITS));
    let mut progress = HeadProgress::default();
    let mut is_settled = false;
    let step = 1 + data.len() / CUTS_MAX;
    for end in (0..data.len()).step_by(step).chain([data.len()]) {
        let part = outcome_of(parse_request(&data[..end], &LIMITS));
        assert!(part == Ok(None) || part == whole, "{part:?} then {whole:?}");
        if !is_settled {
            let by_progress = outcome_of(progress.parse(&data[..end], &LIMITS));
            assert!(by_progress == Ok(None) || by_progress == whole);
            is_settled = by_progress != Ok(None);
            // A head that is complete is noticed at once.
            assert!(is_settled || !matches!(part, Ok(Some(_))));
        }
    }
});

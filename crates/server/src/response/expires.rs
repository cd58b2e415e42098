//! `expires` of a route: until when clients may keep its responses.

use std::time::{Duration, SystemTime};

use kettle_config::Expires;
use kettle_http::date::write_imf_fixdate;

use super::configured::CACHE_CONTROL;
use super::{ConfiguredFields, Response};

/// Says until when clients may keep a response, if it is one of those that nginx says it of; before the operator's own
/// `Cache-Control`, and in place of a backend's.
pub fn set_expires(
    response: &mut Response,
    expires: &Expires,
    is_private: bool,
    (configured, now): (&ConfiguredFields, SystemTime),
) {
    if !OF_STATUSES.contains(&response.status) {
        return;
    }
    let (at, mut control) = match expires {
        Expires::ByMap(_) => return,
        Expires::After(span) => (now + *span, format!("max-age={}", span.as_secs())),
        // A second behind it, as nginx has it: some clients take 0 for none.
        Expires::Epoch => (SystemTime::UNIX_EPOCH + Duration::from_secs(1), "no-cache".to_owned()),
    };
    if is_private {
        control.push_str(", private");
    }
    let fields = std::mem::take(&mut response.fields);
    let [ready, own] = fields.lines();
    let has_own = configured.has(CACHE_CONTROL);
    let lines =
        ready.split_inclusive(is_end).chain(own.split_inclusive(is_end).filter(|_| has_own));
    let said: Vec<u8> =
        lines.filter(|it| it.starts_with(b"cache-control:")).flatten().copied().collect();
    response.fields = fields
        .without("expires:")
        .without("cache-control:")
        .with_own("expires", write_imf_fixdate(at))
        .with_own(CACHE_CONTROL, control)
        .with_lines(&said);
}

fn is_end(byte: &u8) -> bool {
    *byte == b'\n'
}

/// Those of nginx's `expires` and `add_header`.
const OF_STATUSES: [u16; 10] = [200, 201, 204, 206, 301, 302, 303, 304, 307, 308];

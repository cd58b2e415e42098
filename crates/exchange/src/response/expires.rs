//! Until when clients may keep the responses of a route (`expires`), and which responses are for one client's cache alone.

use std::time::{Duration, SystemTime};

use kettle_config::Expires;
use kettle_http::date::write_imf_fixdate;

use super::configured::{CACHE_CONTROL, forbidding};
use super::{ConfiguredFields, Response, ResponseFields};

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

/// Lets no cache keep a response but the client's own. Headers to caches that many share go: those would heed them before
/// anything else (RFC 9213 §2.2, `Surrogate-Control`).
pub fn make_private(mut fields: ResponseFields) -> ResponseFields {
    let said = fields.values(CACHE_CONTROL).collect::<Vec<_>>().join(&b", "[..]);
    let mut said = String::from_utf8_lossy(&said).to_ascii_lowercase();
    if said.contains('"') {
        // A list of names has commas of its own.
        said = forbidding(&said).unwrap_or_default();
    }
    let of_many =
        |it: &&str| matches!(*it, "" | "public" | "private") || it.starts_with("s-maxage");
    let mut kept: Vec<&str> = said.split(',').map(str::trim).filter(|it| !of_many(it)).collect();
    if !kept.contains(&"no-store") {
        kept.insert(0, "private");
    }
    let names = fields.lines().concat();
    let names = names.split(|byte| *byte == b'\n').filter_map(|line| {
        let name = line.split(|byte| *byte == b':').next()?;
        let is_told = name.ends_with(b"cache-control") || name == b"surrogate-control";
        is_told.then(|| String::from_utf8_lossy(name).into_owned())
    });
    for name in names {
        fields = fields.without_all(&name);
    }
    fields.with(CACHE_CONTROL, kept.join(", "))
}

fn is_end(byte: &u8) -> bool {
    *byte == b'\n'
}

/// Those of nginx's `expires` and `add_header`.
const OF_STATUSES: [u16; 10] = [200, 201, 204, 206, 301, 302, 303, 304, 307, 308];

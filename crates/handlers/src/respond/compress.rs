//! Decides whether a backend's response is compressed on its way, and what its head says then.

use std::mem;

use kettle_config::Coding;
use kettle_exchange::request::Head;
use kettle_exchange::response::{Response, ResponseFields};
use kettle_http::{field, range};
use kettle_runtime::encoder::OF_BYTES;

use crate::files::handler::Files;
use crate::files::precompressed::{CodingPreference, CompressionRules, token};
use crate::proxy_cache::{self, CodedForm};
use crate::route::{Handler, Route};

/// Has the response of a route compressed where its client takes that. All responses of what may be compressed say so, for caches.
pub(super) fn compress(route: Option<&Route>, files: &Files, head: &Head, response: &mut Response) {
    let Some(compression) = route.and_then(|route| route.compression.as_deref()) else { return };
    if !may_be_compressed(compression, response) {
        return;
    }
    let fields = mem::take(&mut response.fields);
    let is_said = ["accept-encoding", "*"]
        .iter()
        .any(|it| field::has_member(fields.values("vary"), it.as_bytes()));
    response.fields = if is_said { fields } else { fields.with("vary", "accept-encoding") };
    // A client that has a part of the plain form may get the rest of it.
    if response.status == PARTIAL || range::requested(head).is_some() || !compression.is_for(head) {
        return;
    }
    let accepted = head.header_values("accept-encoding");
    let preference = CodingPreference::negotiate(&compression.codings, accepted);
    let mut codings = preference.codings();
    if response.status == NOT_MODIFIED {
        if codings.next().is_some() {
            weaken_unless_known(head, response);
        }
        return;
    }
    if let Some(stored) = response.stored.take()
        && let Some(Route { handler: Handler::Cached(cached), .. }) = route
        && let Some(coding) = preference.codings().next()
    {
        match proxy_cache::coded_form(cached, files, stored, coding) {
            CodedForm::Smaller(body) => {
                response.body = body;
                response.fields = coded(mem::take(&mut response.fields), coding);
                return;
            }
            CodedForm::NoSmaller => return,
            CodedForm::NotAtHand => {}
        }
    }
    let bytes = response.body.length();
    let encoder =
        codings.find_map(|coding| Some((coding, files.encoders().encoder(coding, bytes)?)));
    if let Some((coding, encoder)) = encoder {
        response.body.encode(encoder);
        response.fields = coded(mem::take(&mut response.fields), coding);
    }
}

/// True if a client that takes a coding may get it. Of a 304 it is what the response would be that it stands for, as far as that is said.
fn may_be_compressed(
    compression: &CompressionRules,
    Response { status, fields, body, .. }: &Response,
) -> bool {
    let mut types = fields.values("content-type");
    let is_text = match (types.next(), types.next()) {
        (Some(kind), None) => compression.is_text(&String::from_utf8_lossy(kind)),
        (None, _) => *status == NOT_MODIFIED,
        _ => false,
    };
    let has_bytes = match (*status, body.length()) {
        (NOT_MODIFIED | PARTIAL, _) => true,
        (100..=199 | 204 | 205, _) | (_, Some(0)) => false,
        (_, bytes) => bytes.is_none_or(|bytes| bytes >= compression.bytes_min),
    };
    is_text
        && has_bytes
        && fields.values("content-encoding").all(|it| it.eq_ignore_ascii_case(b"identity"))
        && (*status == PARTIAL || fields.values("content-range").next().is_none())
        && !field::has_member(fields.values("cache-control"), b"no-transform")
}

/// The fields of the compressed form: what was said of the bytes of the plain one goes, and its tag is no longer that of each byte.
fn coded(fields: ResponseFields, coding: Coding) -> ResponseFields {
    let etag = fields.values("etag").next().map(weak);
    let fields = fields.without_fields(&["accept-ranges", "content-encoding", "etag"]);
    let mut fields = fields.without_fields(&OF_BYTES).with("content-encoding", token(coding));
    if let Some(etag) = etag {
        fields.add("etag", &etag);
    }
    fields
}

/// Makes the tag of a 304 weak, as that of the compressed form is, unless it is the plain form that the client has: a cache gives what it
/// has the fields of the 304, and by a strong tag it would put a part of the plain form behind a part of the other.
fn weaken_unless_known(head: &Head, response: &mut Response) {
    let Some(etag) = response.fields.values("etag").next() else { return };
    if field::has_member(head.header_values("if-none-match"), etag) {
        return;
    }
    let etag = weak(etag);
    let fields = mem::take(&mut response.fields);
    response.fields = fields.without_fields(&["etag"]).with("etag", etag);
}

fn weak(etag: &[u8]) -> Vec<u8> {
    match etag.starts_with(b"W/") {
        true => etag.to_vec(),
        false => [b"W/", etag].concat(),
    }
}

const PARTIAL: u16 = 206;
const NOT_MODIFIED: u16 = 304;

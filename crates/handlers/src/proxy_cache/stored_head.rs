//! The fields that are kept of the head of a response.

use std::time::SystemTime;

use bytes::Bytes;
use kettle_cache::ObjectHead;
use kettle_http::caching::control::Control;
use kettle_http::caching::vary;
use kettle_http::date;
use kettle_http::h1::response::ResponseHead;
use kettle_http::h1::write::write_field;

use super::fetching::Fetching;
use super::stored_response::ObjectVersion;
use super::{TAGS_MAX, lines};
use crate::proxy::Asker;

impl Fetching {
    /// Returns the part of a response's head that is kept.
    pub(super) fn stored(&self, head: &ResponseHead<Bytes>, answered: SystemTime) -> ObjectHead {
        let fields: Vec<_> = head.headers().collect();
        let has_coding = head.header_values("content-encoding").next().is_some();
        let names = vary::names(&fields).unwrap_or_default();
        let ObjectVersion { etag, modified } = ObjectVersion::said(head);
        let control = Control::of(&fields, self.route.targeted.as_deref());
        ObjectHead {
            key: self.asked.key().to_owned(),
            vary: self.asked.vary_of(names, has_coding),
            status: head.status(),
            is_for_everybody: control.is_for_everybody(),
            lines: self.own_lines(head, answered),
            etag,
            modified,
            tags: self.tags(head).unwrap_or_default(),
            generation: self.arriving.generation(),
            ..ObjectHead::default()
        }
    }

    /// The tags of a response, or more than it may have; `None` if it says nothing of them.
    pub(super) fn tags(&self, head: &ResponseHead<Bytes>) -> Option<Vec<String>> {
        let mut values = head.header_values(self.route.tags.as_ref()?).peekable();
        values.peek()?;
        let tags = values.flat_map(|value| {
            value.split(|byte| matches!(byte, b',' | b' ')).filter(|tag| !tag.is_empty())
        });
        let tags = tags.take(TAGS_MAX + 1).map(|tag| String::from_utf8_lossy(tag).into_owned());
        Some(tags.collect())
    }

    /// The backend's own lines, without what is only for us, and with a date (RFC 9110 §6.6.1).
    pub(super) fn own_lines(&self, head: &ResponseHead<Bytes>, answered: SystemTime) -> Vec<u8> {
        let fields = self.route.proxy.fields(head, Asker::Many(&self.asked.target));
        let [_, own] = fields.lines();
        let is_ours = |name: &[u8]| matches!(name, b"age" | b"accept-ranges" | b"content-range");
        let mut out = Vec::with_capacity(own.len());
        for (name, value) in lines::fields(own).into_iter().filter(|(name, _)| !is_ours(name)) {
            write_field(&mut out, name, value);
        }
        if !fields.is_dated() {
            write_field(&mut out, "date", &date::write_imf_fixdate(answered));
        }
        out
    }
}

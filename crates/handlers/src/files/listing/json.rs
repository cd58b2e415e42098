//! A listing for programs.

use std::borrow::Cow;

use serde::Serialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::{Item, Listing, View};

#[derive(Serialize)]
struct JsonPage<'p> {
    path: &'p str,
    entries: Vec<JsonItem<'p>>,
    /// On all pages.
    total: u64,
    /// The number of those that come before this page.
    before: u64,
    /// The queries for the pages around this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    previous: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    /// True if there is more than is listed here.
    truncated: bool,
}

#[derive(Serialize)]
struct JsonItem<'p> {
    name: Cow<'p, str>,
    /// Not there if any request for it would be refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    href: Option<String>,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    /// RFC 3339, in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    modified: Option<String>,
}

/// The listing of a folder, by its path on the site.
pub fn write_json(listing: &Listing, path: &str, view: &View) -> String {
    let query = |start| view.query_at(&start);
    let page = JsonPage {
        path,
        entries: listing.items.iter().map(entry).collect(),
        total: listing.total(),
        before: listing.before,
        previous: listing.previous().map(query),
        next: listing.next().map(query),
        truncated: listing.is_cut || listing.items.len() as u64 != listing.total(),
    };
    // Strings and numbers only, so there is nothing that cannot be written.
    serde_json::to_string(&page).unwrap_or_default()
}

fn entry(item: &Item) -> JsonItem<'_> {
    let time = item.modified.and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok());
    JsonItem {
        name: String::from_utf8_lossy(&item.name),
        href: item.link(),
        kind: if item.is_folder { "directory" } else { "file" },
        bytes: (!item.is_folder).then_some(item.bytes),
        modified: time.and_then(|time| time.format(&Rfc3339).ok()),
    }
}

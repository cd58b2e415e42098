//! A listing for programs.

use serde::Serialize;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::{Item, Listing};

#[derive(Serialize)]
struct Page<'p> {
    path: &'p str,
    entries: Vec<Entry<'p>>,
    /// Whether there is more than is listed.
    truncated: bool,
}

#[derive(Serialize)]
struct Entry<'p> {
    name: &'p str,
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    /// RFC 3339, in UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    modified: Option<String>,
}

/// The listing of a folder, by its path on the site.
#[must_use]
pub fn write_json(listing: &Listing, path: &str) -> String {
    let entries = listing.items.iter().map(entry).collect();
    let page = Page { path, entries, truncated: listing.is_cut };
    // Strings and numbers only, so there is nothing that cannot be written.
    serde_json::to_string(&page).unwrap_or_default()
}

fn entry(item: &Item) -> Entry<'_> {
    let time = OffsetDateTime::from_unix_timestamp(item.modified).ok();
    Entry {
        name: &item.name,
        kind: if item.is_folder { "directory" } else { "file" },
        bytes: (!item.is_folder).then_some(item.bytes),
        modified: time.and_then(|time| time.format(&Rfc3339).ok()),
    }
}

//! Which part of a folder a query asks for, in which order, and the queries that lead to others.
//!
//! A page is named by the entry before or behind it, not by a number: entries that come and go
//! while somebody turns pages shift nothing.

use std::cmp::Ordering;

use kettle_http::uri::{decode_query_value, percent_encode_path};

use super::Item;
use super::order::compare_names;

/// The wishes of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// In which order.
    pub sort: Sort,
    /// The text that a name must contain, in lower case; empty for anything. No longer than a name: pages say it again and
    /// again.
    pub filter: String,
    /// Which page.
    pub start: PageStart,
}

/// Which page of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageStart {
    /// The first one.
    First,
    /// The entries behind this one.
    After(Item),
    /// The entries before this one.
    Before(Item),
    /// The last one.
    Last,
}

/// The key by which a listing is sorted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortKey {
    /// The name, in natural order.
    Name,
    /// The length.
    Size,
    /// The last modification.
    Time,
}

/// The order of a listing. Folders always come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sort {
    /// By what.
    pub key: SortKey,
    /// True if the greatest comes first.
    pub descends: bool,
}

impl SortKey {
    /// Every key, in the order of the columns.
    pub const ALL: [SortKey; 3] = [SortKey::Name, SortKey::Size, SortKey::Time];

    /// The word in a query.
    pub fn as_str(self) -> &'static str {
        match self {
            SortKey::Name => "name",
            SortKey::Size => "size",
            SortKey::Time => "time",
        }
    }
}

impl Sort {
    /// The order of two entries; no two of a folder tie.
    pub fn compare(self, left: &Item, right: &Item) -> Ordering {
        let by_key = match self.key {
            SortKey::Name => Ordering::Equal,
            SortKey::Size => left.bytes.cmp(&right.bytes),
            SortKey::Time => left.modified.cmp(&right.modified),
        };
        let ascending = by_key.then_with(|| compare_names(&left.name, &right.name));
        let by_key = if self.descends { ascending.reverse() } else { ascending };
        right.is_folder.cmp(&left.is_folder).then(by_key)
    }
}

impl View {
    /// Reads the wishes of a query: `sort=name|size|time`, `order=asc|desc`, `filter=TEXT`, and
    /// `after=`, `before=` or `last=` for a page. A parameter that cannot be read is ignored.
    pub fn from_query(query: Option<&str>) -> Self {
        let mut sort = Sort { key: SortKey::Name, descends: false };
        let mut filter = String::new();
        let mut cursor = None;
        for pair in query.unwrap_or("").split('&') {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match name {
                "sort" => {
                    let known = SortKey::ALL.into_iter().find(|key| key.as_str() == value);
                    sort.key = known.unwrap_or(sort.key);
                }
                "order" => sort.descends = value == "desc",
                "filter" => {
                    let text = decode_query_value(value).unwrap_or_default();
                    filter = String::from_utf8_lossy(&text).trim().to_lowercase();
                    filter.truncate(filter.floor_char_boundary(NAME_BYTES_MAX));
                }
                "after" | "before" | "last" => cursor = Some((name, value)),
                _ => {}
            }
        }
        let start = cursor.and_then(|(name, value)| match name {
            "after" => read_cursor(sort.key, value).map(PageStart::After),
            "before" => read_cursor(sort.key, value).map(PageStart::Before),
            _ => Some(PageStart::Last),
        });
        Self { sort, filter, start: start.unwrap_or(PageStart::First) }
    }

    /// True if the filter lets a name through.
    pub fn fits(&self, name: &[u8]) -> bool {
        self.filter.is_empty()
            || String::from_utf8_lossy(name).to_lowercase().contains(&self.filter)
    }

    /// The query for the same order and filter at another page, with its question mark.
    pub fn query_at(&self, start: &PageStart) -> String {
        let mut query = self.query_by(self.sort);
        let key = self.sort.key;
        match start {
            PageStart::First => {}
            PageStart::After(item) => query.push_str(&format!("&after={}", cursor(key, item))),
            PageStart::Before(item) => query.push_str(&format!("&before={}", cursor(key, item))),
            PageStart::Last => query.push_str("&last="),
        }
        query
    }

    /// The query for the first page in another order.
    pub fn query_by(&self, sort: Sort) -> String {
        let order = if sort.descends { "desc" } else { "asc" };
        let mut query = format!("?sort={}&order={order}", sort.key.as_str());
        if !self.filter.is_empty() {
            query.push_str("&filter=");
            query.push_str(&percent_encode_path(&self.filter));
        }
        query
    }
}

/// NAME_MAX of Linux.
const NAME_BYTES_MAX: usize = 255;

/// An entry's place in the order, as text: `f` or `d`, what it is sorted by, its name.
fn cursor(key: SortKey, item: &Item) -> String {
    let kind = if item.is_folder { 'd' } else { 'f' };
    let number = match key {
        SortKey::Name => 0,
        SortKey::Size => i128::from(item.bytes),
        SortKey::Time => i128::from(item.modified.unwrap_or_default()),
    };
    let mut text = format!("{kind}{number}:").into_bytes();
    text.extend_from_slice(&item.name);
    percent_encode_path(text)
}

fn read_cursor(key: SortKey, value: &str) -> Option<Item> {
    let text = decode_query_value(value)?;
    let colon = text.iter().position(|byte| *byte == b':')?;
    let place = std::str::from_utf8(&text[..colon]).ok()?;
    let name = text[colon + 1..].to_vec();
    let (kind, number) = place.split_at_checked(1)?;
    let is_folder = match kind {
        "d" => true,
        "f" => false,
        _ => return None,
    };
    let mut item = Item { name, is_folder, bytes: 0, modified: None };
    match key {
        SortKey::Name => {}
        SortKey::Size => item.bytes = number.parse().ok()?,
        SortKey::Time => item.modified = Some(number.parse().ok()?),
    }
    Some(item)
}

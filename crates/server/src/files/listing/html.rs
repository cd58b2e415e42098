//! A listing as a page: readable on a phone, in light and dark, without scripts.

use std::fmt::Write;

use kettle_http::html::escape;
use kettle_http::uri::percent_encode_path;
use time::OffsetDateTime;

use super::{Item, Listing, Sort, SortKey};

/// The page for a folder, by its path on the site (`/pictures/`).
#[must_use]
pub fn write_html(listing: &Listing, path: &str, sort: Sort) -> String {
    let mut page = String::with_capacity(PAGE_BYTES + listing.items.len() * ITEM_BYTES);
    let title = escape(path);
    // Writing to a String cannot fail.
    let _ =
        write!(page, "{TOP}<title>Index of {title}</title>\n{STYLE}</head>\n<body>\n<h1>Index of ");
    write_trail(&mut page, path);
    page.push_str("</h1>\n<table>\n<thead><tr>");
    for (key, label) in SortKey::ALL.into_iter().zip(["Name", "Size", "Modified (UTC)"]) {
        write_column(&mut page, key, label, sort);
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    if path != "/" {
        page.push_str("<tr><td><a href=\"../\">../</a></td><td></td><td></td></tr>\n");
    }
    for item in &listing.items {
        write_item(&mut page, item);
    }
    page.push_str("</tbody>\n</table>\n");
    if listing.is_cut {
        let _ = writeln!(page, "<p>Only the first {} are shown.</p>", listing.items.len());
    }
    page.push_str("</body>\n</html>\n");
    page
}

/// The path as links to each folder above.
fn write_trail(page: &mut String, path: &str) {
    let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
    let _ = write!(page, "<a href=\"./{}\">/</a>", "../".repeat(names.len()));
    for (place, name) in names.iter().enumerate() {
        let up = "../".repeat(names.len() - 1 - place);
        let _ = write!(page, "<a href=\"./{up}\">{}/</a>", escape(name));
    }
}

/// A heading that sorts by its column, and the other way round when it already does.
fn write_column(page: &mut String, key: SortKey, label: &str, sort: Sort) {
    let is_current = sort.key == key;
    let order = if is_current && !sort.descends { "desc" } else { "asc" };
    let (state, arrow) = match (is_current, sort.descends) {
        (false, _) => ("", ""),
        (true, false) => (" aria-sort=\"ascending\"", " ▲"),
        (true, true) => (" aria-sort=\"descending\"", " ▼"),
    };
    let _ = write!(
        page,
        "<th{state}><a href=\"?sort={}&amp;order={order}\">{label}{arrow}</a></th>",
        key.as_str()
    );
}

fn write_item(page: &mut String, item: &Item) {
    let slash = if item.is_folder { "/" } else { "" };
    // "./" keeps a name such as "a:b" from being read as a scheme.
    let _ = write!(
        page,
        "<tr><td><a href=\"./{}{slash}\">{}{slash}</a></td>",
        escape(&percent_encode_path(&item.name)),
        escape(&item.name)
    );
    if item.is_folder {
        page.push_str("<td></td>");
    } else {
        let _ = write!(page, "<td title=\"{} bytes\">", item.bytes);
        write_size(page, item.bytes);
        page.push_str("</td>");
    }
    match OffsetDateTime::from_unix_timestamp(item.modified) {
        Ok(time) => {
            let (date, month) = (time.date(), u8::from(time.month()));
            let _ = write!(
                page,
                "<td>{:04}-{month:02}-{:02} {:02}:{:02}</td>",
                date.year(),
                date.day(),
                time.hour(),
                time.minute()
            );
        }
        Err(_) => page.push_str("<td></td>"),
    }
    page.push_str("</tr>\n");
}

/// A length in the largest unit that leaves at least one, with one decimal.
fn write_size(page: &mut String, bytes: u64) {
    let mut unit_bytes = 1;
    let mut unit = "B";
    for larger in ["KiB", "MiB", "GiB", "TiB", "PiB"] {
        if bytes / unit_bytes < 1024 {
            break;
        }
        unit_bytes *= 1024;
        unit = larger;
    }
    let whole = bytes / unit_bytes;
    let _ = if unit_bytes == 1 {
        write!(page, "{whole} {unit}")
    } else {
        write!(page, "{whole}.{} {unit}", bytes % unit_bytes * 10 / unit_bytes)
    };
}

const TOP: &str = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
    <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
    <meta name=\"color-scheme\" content=\"light dark\">\n";
const STYLE: &str = "<style>\n\
    body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:0 auto;padding:1rem}\n\
    h1{font-size:1.25rem;overflow-wrap:anywhere}\n\
    a{text-decoration:none}a:hover,a:focus{text-decoration:underline}\n\
    table{width:100%;border-collapse:collapse}\n\
    th,td{text-align:left;white-space:nowrap;font-variant-numeric:tabular-nums;\
    padding:.35rem 0 .35rem 1.5rem;border-bottom:1px solid #8884}\n\
    th:first-child,td:first-child{width:100%;padding-left:0;white-space:normal;overflow-wrap:anywhere}\n\
    th:nth-child(2),td:nth-child(2){text-align:right}\n\
    @media(max-width:34rem){th:nth-child(3),td:nth-child(3){display:none}}\n\
    </style>\n";
/// Everything but the items, about.
const PAGE_BYTES: usize = 2048;
/// One item, about.
const ITEM_BYTES: usize = 192;

//! A listing as a page: readable on a phone, in light and dark, without scripts.

use std::fmt::Write;

use kettle_http::html::escape;
use time::OffsetDateTime;

use super::{ENTRIES_MAX, Item, Listing, PageStart, Sort, SortKey, View};

/// The rights of such a page to load and act: nothing but its own style and its own form. Names are escaped;
/// this holds even where a browser reads them in another way.
pub const CONTENT_SECURITY_POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'";

/// The page for a folder, by its path on the site (`/pictures/`).
pub fn write_html(listing: &Listing, path: &str, view: &View) -> String {
    let mut page = String::with_capacity(PAGE_BYTES + listing.items.len() * ITEM_BYTES);
    let title = escape(path);
    // Writing to a String cannot fail.
    let _ =
        write!(page, "{TOP}<title>Index of {title}</title>\n{STYLE}</head>\n<body>\n<h1>Index of ");
    write_trail(&mut page, path);
    page.push_str("</h1>\n");
    write_filter(&mut page, view);
    write_summary(&mut page, listing);
    page.push_str("<table>\n<thead><tr>");
    for (key, label) in SortKey::ALL.into_iter().zip(["Name", "Size", "Modified (UTC)"]) {
        write_column(&mut page, key, label, view);
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    if path != "/" {
        page.push_str("<tr><td><a class=\"up\" href=\"../\">../</a></td><td></td><td></td></tr>\n");
    }
    for item in &listing.items {
        write_item(&mut page, item);
    }
    page.push_str("</tbody>\n</table>\n");
    write_pages(&mut page, listing, view);
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

/// A form that asks for the entries whose name contains a text, on all pages.
fn write_filter(page: &mut String, view: &View) {
    let order = if view.sort.descends { "desc" } else { "asc" };
    let _ = writeln!(
        page,
        "<form role=\"search\"><input type=\"search\" name=\"filter\" value=\"{}\" \
         placeholder=\"Filter by name\" aria-label=\"Filter by name\">\
         <input type=\"hidden\" name=\"sort\" value=\"{}\">\
         <input type=\"hidden\" name=\"order\" value=\"{order}\"><button>Filter</button></form>",
        escape(&view.filter),
        view.sort.key.as_str(),
    );
}

/// The number of entries there are, and which of them are shown.
fn write_summary(page: &mut String, listing: &Listing) {
    let count = |number: u64, one: &str, many: &str| {
        format!("{} {}", grouped(number), if number == 1 { one } else { many })
    };
    let _ = write!(
        page,
        "<p>{}, {}",
        count(listing.folders, "folder", "folders"),
        count(listing.files, "file", "files")
    );
    let shown = listing.items.len() as u64;
    if shown < listing.total() && shown > 0 {
        let first = grouped(listing.before + 1);
        let last = grouped(listing.before + shown);
        let _ = write!(page, "; {first} to {last} of {} shown", grouped(listing.total()));
    }
    if listing.is_cut {
        let most = grouped(ENTRIES_MAX as u64);
        let _ = write!(page, ". The folder has more than {most} entries; the rest is left out");
    }
    page.push_str("</p>\n");
}

/// A heading that sorts by its column, and the other way round when it already does.
fn write_column(page: &mut String, key: SortKey, label: &str, view: &View) {
    let is_current = view.sort.key == key;
    let descends = is_current && !view.sort.descends;
    let (state, arrow) = match (is_current, view.sort.descends) {
        (false, _) => ("", ""),
        (true, false) => (" aria-sort=\"ascending\"", " ▲"),
        (true, true) => (" aria-sort=\"descending\"", " ▼"),
    };
    let query = view.query_by(Sort { key, descends });
    let _ = write!(page, "<th{state}><a href=\"{}\">{label}{arrow}</a></th>", escape(&query));
}

fn write_item(page: &mut String, item: &Item) {
    let slash = if item.is_folder { "/" } else { "" };
    let text = item.text();
    let _ = match item.link() {
        Some(link) => {
            write!(page, "<tr><td><a href=\"{}\">{}{slash}</a></td>", escape(&link), escape(&text))
        }
        None => write!(
            page,
            "<tr><td><span title=\"This name cannot be asked for\">{}{slash}</span></td>",
            escape(&text)
        ),
    };
    if item.is_folder {
        page.push_str("<td></td>");
    } else {
        let _ = write!(page, "<td title=\"{} bytes\">", grouped(item.bytes));
        write_size(page, item.bytes);
        page.push_str("</td>");
    }
    let time = item.modified.and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok());
    match time {
        Some(time) => {
            let date = time.date();
            let month = u8::from(time.month());
            let _ = write!(
                page,
                "<td>{:04}-{month:02}-{:02} {:02}:{:02}</td>",
                date.year(),
                date.day(),
                time.hour(),
                time.minute()
            );
        }
        None => page.push_str("<td></td>"),
    }
    page.push_str("</tr>\n");
}

/// The ways to the other pages, if there are any.
fn write_pages(page: &mut String, listing: &Listing, view: &View) {
    let previous = listing.previous();
    let next = listing.next();
    if previous.is_none() && next.is_none() {
        return;
    }
    page.push_str("<nav aria-label=\"Pages\">");
    let links = [
        ("First", previous.is_some().then_some(PageStart::First)),
        ("Previous", previous),
        ("Next", next.clone()),
        ("Last", next.is_some().then_some(PageStart::Last)),
    ];
    for (label, start) in links {
        let _ = match start.map(|start| view.query_at(&start)) {
            Some(query) => write!(page, "<a href=\"{}\">{label}</a>", escape(&query)),
            None => write!(page, "<span>{label}</span>"),
        };
    }
    page.push_str("</nav>\n");
}

/// A length in the largest unit that leaves at least one, rounded to one decimal.
fn write_size(page: &mut String, bytes: u64) {
    if bytes < 1024 {
        let _ = write!(page, "{bytes} B");
        return;
    }
    let mut unit_bytes = 1024;
    let mut unit = "KiB";
    for larger in ["MiB", "GiB", "TiB", "PiB", "EiB"] {
        if tenths(bytes, unit_bytes) < 10_240 {
            break;
        }
        (unit_bytes, unit) = (unit_bytes * 1024, larger);
    }
    let tenths = tenths(bytes, unit_bytes);
    let _ = write!(page, "{}.{} {unit}", tenths / 10, tenths % 10);
}

/// The number of tenths of a unit a length comes to.
fn tenths(bytes: u64, unit_bytes: u128) -> u128 {
    (u128::from(bytes) * 10 + unit_bytes / 2) / unit_bytes
}

/// A number with commas between its thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

const TOP: &str = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
    <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
    <meta name=\"color-scheme\" content=\"light dark\">\n";
/// The icons are shapes cut out of a colour: nothing is loaded.
const STYLE: &str = "<style>\n\
    body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:0 auto;padding:1rem}\n\
    h1{font-size:1.25rem;overflow-wrap:anywhere}\n\
    a{text-decoration:none}a:hover,a:focus{text-decoration:underline}\n\
    form{display:flex;gap:.5rem}input,button{font:inherit;padding:.25rem .6rem}\n\
    input[type=search]{flex:1;min-width:0;max-width:24rem}\n\
    p{opacity:.75;margin:.75rem 0}\n\
    table{width:100%;border-collapse:collapse}\n\
    th,td{text-align:left;vertical-align:top;white-space:nowrap;\
    font-variant-numeric:tabular-nums;padding:.35rem 0 .35rem 1.5rem;border-bottom:1px solid #8884}\n\
    th:first-child,td:first-child{width:100%;padding-left:0;white-space:normal;overflow-wrap:anywhere}\n\
    th:nth-child(2),td:nth-child(2){text-align:right}\n\
    td:first-child{padding-left:1.6rem}\n\
    td>a,td>span{unicode-bidi:isolate}\n\
    td>a::before,td>span::before{content:\"\";float:left;width:1.05rem;height:1.05rem;\
    margin:.2rem 0 0 -1.6rem;background:#8a94a0;\
    clip-path:polygon(14% 2%,62% 2%,62% 27%,88% 27%,88% 98%,14% 98%)}\n\
    td>a[href$=\"/\"]::before{background:#c9942a;\
    clip-path:polygon(0 12%,38% 12%,48% 25%,100% 25%,100% 90%,0 90%)}\n\
    td>a.up::before{background:#8a94a0;\
    clip-path:polygon(50% 8%,92% 52%,63% 52%,63% 92%,37% 92%,37% 52%,8% 52%)}\n\
    nav{display:flex;gap:1.5rem;padding:1rem 0}nav span{color:#8888}\n\
    @media(max-width:34rem){tr{display:grid;grid-template-columns:1fr auto;\
    border-bottom:1px solid #8884;padding:.35rem 0}\
    th,td,th:first-child,td:first-child{border:0;padding:0;width:auto}\
    th:first-child,td:first-child{grid-column:1/-1}td:first-child{padding-left:1.6rem}\
    th:nth-child(3),td:nth-child(3){grid-area:2/1}td:nth-child(3){padding-left:1.6rem}\
    td:nth-child(n+2){font-size:.85rem;opacity:.75}}\n\
    </style>\n";
/// Everything but the items, about.
const PAGE_BYTES: usize = 4096;
/// One item, about.
const ITEM_BYTES: usize = 192;

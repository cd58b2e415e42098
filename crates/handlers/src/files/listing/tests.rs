use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use kettle_config::Symlinks;
use rustix::fs::{CWD, Mode, mkfifoat};

use super::*;
use crate::files::root::Dotfiles;

fn read(root: &Root, relative: &str, view: &View) -> Result<Listing, Errno> {
    Listing::read(root, relative, view, |_| false, Reach::Anywhere, &Abandoned::default())
}

fn item(name: &str, is_folder: bool, bytes: u64, modified: i64) -> Item {
    Item { name: name.into(), is_folder, bytes, modified: Some(modified) }
}

fn view(query: &str) -> View {
    View::from_query(Some(query))
}

/// The page a view shows of these entries.
fn page(items: &[Item], view: &View) -> Listing {
    let mut page = ListingPage::new(view);
    for item in items {
        page.offer(item.clone());
    }
    page.finish(false)
}

fn sample(query: &str) -> Listing {
    let items = [
        item("b.txt", false, 10, 300),
        item("z", true, 0, 100),
        item("a.txt", false, 2000, 200),
        item("c.txt", false, 10, 400),
    ];
    page(&items, &view(query))
}

fn names(listing: &Listing) -> Vec<&str> {
    listing.items.iter().map(|item| std::str::from_utf8(&item.name).unwrap()).collect()
}

fn html(items: &[Item], path: &str, query: &str) -> String {
    write_html(&page(items, &view(query)), path, &view(query))
}

fn json(listing: &Listing, query: &str) -> serde_json::Value {
    serde_json::from_str(&write_json(listing, "/a/", &view(query))).unwrap()
}

#[test]
fn folders_come_first_in_every_order() {
    for (query, expected) in [
        ("", ["z", "a.txt", "b.txt", "c.txt"]),
        ("sort=name&order=desc", ["z", "c.txt", "b.txt", "a.txt"]),
        ("sort=size", ["z", "b.txt", "c.txt", "a.txt"]),
        ("order=desc&sort=size", ["z", "a.txt", "c.txt", "b.txt"]),
        ("sort=time&order=desc", ["z", "c.txt", "b.txt", "a.txt"]),
        ("sort=evil&order=evil&x&after=%&before=", ["z", "a.txt", "b.txt", "c.txt"]),
    ] {
        assert_eq!(names(&sample(query)), expected, "{query:?}");
    }
}

/// More entries than fit two pages, in no order, of sizes and times that tie.
fn many() -> Vec<Item> {
    let count = 4 * PAGE_ITEMS as i64 + 321;
    let entry = |number: i64| {
        let bytes = if number % 7 == 0 { 0 } else { (number % 5).unsigned_abs() };
        item(&format!("file {number}"), number % 7 == 0, bytes, number % 3)
    };
    // Every number once, because the step and the count have no common divisor.
    (0..count).map(|step| entry(step * 1_009 % count)).collect()
}

#[test]
fn every_order_can_be_paged_through_forwards_and_backwards() {
    let items = many();
    for query in ["", "order=desc", "sort=size", "sort=size&order=desc", "sort=time&filter=FILE"] {
        let mut expected = items.clone();
        expected.sort_by(|left, right| view(query).sort.compare(left, right));

        let mut seen = Vec::new();
        let mut next = Some(format!("?{query}"));
        while let Some(query) = next {
            let view = view(&query[1..]);
            let listing = page(&items, &view);
            assert_eq!(listing.before, seen.len() as u64);
            assert_eq!(listing.total(), items.len() as u64);
            assert!(listing.items.len() <= PAGE_ITEMS);
            next = listing.next().map(|start| view.query_at(&start));
            seen.extend(listing.items);
        }
        assert_eq!(seen, expected, "{query}");

        let mut seen = Vec::new();
        let mut previous = Some(view(query).query_at(&PageStart::Last));
        while let Some(query) = previous {
            let view = view(&query[1..]);
            let listing = page(&items, &view);
            previous = listing.previous().map(|start| view.query_at(&start));
            let before = usize::try_from(listing.before).unwrap();
            assert_eq!(before + listing.items.len() + seen.len(), items.len());
            seen.splice(0..0, listing.items);
        }
        assert_eq!(seen, expected, "{query} backwards");
    }
}

#[test]
fn entries_that_come_and_go_shift_no_page() {
    let mut items = many();
    let first = page(&items, &view(""));
    let next = view(&view("").query_at(&first.next().unwrap())[1..]);
    let before = names_of(&page(&items, &next));
    items.retain(|item| !first.items.contains(item));
    items.push(item("A new folder", true, 0, 0));
    assert_eq!(names_of(&page(&items, &next)), before);
}

fn names_of(listing: &Listing) -> Vec<Vec<u8>> {
    listing.items.iter().map(|item| item.name.clone()).collect()
}

#[test]
fn a_listing_holds_at_most_two_pages_at_a_time() {
    let view = view("sort=size");
    let mut page = ListingPage::new(&view);
    for item in many() {
        page.offer(item);
        assert!(page.items.len() < 2 * PAGE_ITEMS);
    }
}

#[test]
fn the_filter_is_for_any_part_of_a_name_in_any_case() {
    let view = view("filter=+B.T%C3%84");
    for (name, expected) in [("a b.tät", true), ("B.TÄ", true), ("b_tä", false), ("b.ta", false)]
    {
        assert_eq!(view.fits(name.as_bytes()), expected, "{name}");
    }
    assert!(View::from_query(Some("filter=%&x")).fits(b"\xff"));
    assert!(view.query_by(view.sort).ends_with("&filter=b.t%C3%A4"));
    let long = View::from_query(Some(&format!("filter={}", "%C3%84".repeat(500))));
    assert_eq!(long.filter, "ä".repeat(127), "of 255 bytes what is whole");
}

#[test]
fn only_what_can_be_fetched_is_listed() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    fs::create_dir_all(root.join("sub/folder")).unwrap();
    fs::write(folder.path().join("secret"), "x").unwrap();
    fs::write(root.join("sub/file"), "12345").unwrap();
    fs::write(root.join("sub/.hidden"), "x").unwrap();
    symlink("../../secret", root.join("sub/out")).unwrap();
    symlink("file", root.join("sub/link")).unwrap();
    symlink("nowhere", root.join("sub/dangling")).unwrap();
    mkfifoat(CWD, root.join("sub/fifo"), Mode::RUSR).unwrap();
    let opened = Root::open(&root, Symlinks::Beneath, Dotfiles::Hidden).unwrap();
    symlink(root.join("sub/folder"), root.join("sub/absolute")).unwrap();
    for query in ["", "sort=size"] {
        let listing = read(&opened, "sub/", &view(query)).unwrap();
        assert_eq!(names(&listing), ["absolute", "folder", "file", "link"], "{query}");
        assert_eq!((listing.folders, listing.files), (2, 2));
        assert!(listing.items.iter().all(|item| item.modified.is_some()));
        assert_eq!([listing.items[2].bytes, listing.items[3].bytes], [5, 5]);
    }
    let filtered = read(&opened, "sub/", &view("filter=LIN")).unwrap();
    assert_eq!((names(&filtered), filtered.total()), (vec!["link"], 1));

    let strict = Root::open(&root, Symlinks::Never, Dotfiles::Hidden).unwrap();
    assert_eq!(read(&strict, "sub/", &view("")).unwrap().items.len(), 2);
    let serves_hidden = Root::open(&root, Symlinks::Never, Dotfiles::Served).unwrap();
    assert_eq!(read(&serves_hidden, "sub/", &view("")).unwrap().items.len(), 2);
}

#[test]
fn a_listing_that_nobody_waits_for_any_more_ends() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    let root = Root::open(folder.path(), Symlinks::Beneath, Dotfiles::Hidden).unwrap();
    let abandoned = Abandoned::already();
    let listing = Listing::read(&root, "", &view(""), |_| false, Reach::Device, &abandoned);
    assert_eq!(listing.unwrap_err(), Errno::CANCELED);
}

#[test]
fn a_folder_with_links_that_lead_further_is_left_to_who_may_follow_them() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("file"), "").unwrap();
    symlink("file", folder.path().join("near")).unwrap();
    let root = Root::open(folder.path(), Symlinks::Beneath, Dotfiles::Hidden).unwrap();
    let read = |reach| Listing::read(&root, "", &view(""), |_| false, reach, &Abandoned::default());
    assert_eq!(names(&read(Reach::Device).unwrap()), ["file", "near"]);
    symlink(folder.path().join("file"), folder.path().join("far")).unwrap();
    assert_eq!(read(Reach::Device).unwrap_err(), Errno::XDEV);
    assert_eq!(names(&read(Reach::Anywhere).unwrap()), ["far", "file", "near"]);
}

#[test]
fn a_large_folder_is_sorted_before_it_is_cut_into_pages() {
    let folder = tempfile::tempdir().unwrap();
    for number in (1..=2_500).rev() {
        fs::write(folder.path().join(format!("file{number}")), "").unwrap();
    }
    let root = Root::open(folder.path(), Symlinks::Beneath, Dotfiles::Hidden).unwrap();
    let mut view = view("");
    for expected in [1..=1_000, 1_001..=2_000, 2_001..=2_500] {
        let listing = read(&root, "", &view).unwrap();
        let expected: Vec<String> = expected.map(|number| format!("file{number}")).collect();
        assert_eq!(names(&listing), expected);
        assert_eq!((listing.total(), listing.is_cut), (2_500, false));
        view.start = listing.next().unwrap_or(PageStart::First);
    }
    assert_eq!(view.start, PageStart::First);
}

#[test]
fn names_that_can_only_be_refused_are_shown_without_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let odd: [&[u8]; 5] = [b"back\\slash", b"line\nbreak", b"tab\t", b"del\x7f", b"not \xff UTF-8"];
    for name in odd {
        fs::write(folder.path().join(OsStr::from_bytes(name)), "x").unwrap();
    }
    fs::write(folder.path().join("plain"), "x").unwrap();
    let root = Root::open(folder.path(), Symlinks::Beneath, Dotfiles::Hidden).unwrap();
    let listing = read(&root, "", &view("")).unwrap();
    assert_eq!(listing.items.len(), 6);
    let text = write_html(&listing, "/", &view(""));
    assert_eq!(text.matches("<td><a href").count(), 1, "{text}");
    assert!(text.contains("href=\"./plain\"") && text.contains(">line\u{fffd}break<"), "{text}");
    let listed = json(&listing, "");
    for entry in listed["entries"].as_array().unwrap() {
        assert_eq!(entry.get("href").is_some(), entry["name"] == "plain", "{entry}");
    }
}

#[test]
fn the_page_escapes_names_and_encodes_links() {
    let evil = "<script>alert('&\"')?#%: .txt";
    let page = html(&[item(evil, false, 1, 0)], "/<b>/", "");
    assert!(!page.contains("<script>"), "{page}");
    assert!(!page.contains("<b>"), "{page}");
    let link = "href=\"./%3Cscript%3Ealert%28%27%26%22%27%29%3F%23%25%3A%20.txt\"";
    assert!(page.contains(link), "{page}");
    assert!(page.contains(">&lt;script&gt;alert(&#39;&amp;&quot;&#39;)?#%: .txt<"), "{page}");
}

#[test]
fn the_page_sorts_by_links_and_shows_the_order() {
    let page = write_html(&sample("sort=size"), "/a/", &view("sort=size&filter=%22%3E"));
    let query = "?sort=size&amp;order=desc&amp;filter=%22%3E";
    assert!(page.contains(&format!("<th aria-sort=\"ascending\"><a href=\"{query}\">")), "{page}");
    assert!(page.contains("<th><a href=\"?sort=time&amp;order=asc&amp;filter=%22%3E\">"));
    assert!(page.contains("value=\"&quot;&gt;\""), "{page}");
    assert!(page.contains("<p>1 folder, 3 files</p>"), "{page}");
    assert!(!page.contains("<nav"), "all is on one page");
    assert!(page.contains("<a class=\"up\" href=\"../\">../</a>"));
    assert!(page.contains("name=\"viewport\""));
    assert!(page.contains("@media(max-width"), "narrow screens have a form of their own");
    assert!(page.contains("a.up::before"), "folders and files have signs");
    assert!(page.contains("name=\"color-scheme\" content=\"light dark\""));
    assert!(!page.contains("<script"));
    let top = html(&[], "/", "");
    assert!(!top.contains("../"), "nothing lies above the root: {top}");
}

#[test]
fn sizes_and_times_are_readable() {
    let sizes = [
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536, "1.5 KiB"),
        (1_996, "1.9 KiB"),
        (1_997, "2.0 KiB"),
        (1_048_524, "1023.9 KiB"),
        (1_048_525, "1.0 MiB"),
        (u64::MAX, "16.0 EiB"),
    ];
    for (bytes, expected) in sizes {
        let page = html(&[item("a", false, bytes, 951_782_400)], "/", "");
        assert!(page.contains(&format!(">{expected}<")), "{bytes}: {page}");
        assert!(page.contains("<td>2000-02-29 00:00</td>"), "{page}");
    }
    assert!(html(&[item("a", false, 12_345_678, i64::MAX)], "/", "").contains("12,345,678 bytes"));
}

#[test]
fn the_page_says_how_many_there_are_and_leads_to_the_others() {
    let first = html(&many(), "/", "sort=time");
    assert!(
        first.contains("<p>618 folders, 3,703 files; 1 to 1,000 of 4,321 shown</p>"),
        "{first}"
    );
    assert!(first.contains("<span>Previous</span><a href=\"?sort=time&amp;order=asc&amp;after=f"));
    let last = html(&many(), "/", "sort=time&last=");
    assert!(last.contains("; 3,322 to 4,321 of 4,321 shown"), "{last}");
    assert!(last.contains("<span>Next</span><span>Last</span>"), "{last}");
    let cut = Listing { is_cut: true, ..sample("") };
    let cut = write_html(&cut, "/", &view(""));
    assert!(cut.contains("more than 1,000,000 entries"), "{cut}");
}

#[test]
fn programs_get_the_same_as_json() {
    let page = json(&sample(""), "");
    assert_eq!(page["path"], "/a/");
    assert_eq!(page["truncated"], false);
    assert_eq!((&page["total"], &page["before"]), (&4.into(), &0.into()));
    assert_eq!(page.get("next"), None);
    let modified = "1970-01-01T00:01:40Z";
    assert_eq!(
        page["entries"][0],
        serde_json::json!({"name": "z", "href": "./z/", "type": "directory", "modified": modified})
    );
    assert_eq!(page["entries"][1]["bytes"], 2000);
    assert_eq!(page["entries"][1]["type"], "file");

    let first = json(&self::page(&many(), &view("")), "");
    assert_eq!((&first["total"], &first["truncated"]), (&4_321.into(), &true.into()));
    let next = first["next"].as_str().unwrap();
    let second = json(&self::page(&many(), &view(&next[1..])), &next[1..]);
    assert_eq!(second["before"], 1_000);
    assert!(second["previous"].is_string() && second["next"].is_string());
}

use std::fs;
use std::os::unix::fs::symlink;

use kettle_config::Symlinks;
use rustix::fs::{CWD, Mode, mkfifoat};

use super::*;

fn item(name: &str, is_folder: bool, bytes: u64, modified: i64) -> Item {
    Item { name: name.to_owned(), is_folder, bytes, modified }
}

fn sample() -> Listing {
    let items = vec![
        item("b.txt", false, 10, 300),
        item("z", true, 0, 100),
        item("a.txt", false, 2000, 200),
        item("c.txt", false, 10, 400),
    ];
    Listing { items, is_cut: false }
}

fn names(listing: &Listing) -> Vec<&str> {
    listing.items.iter().map(|item| item.name.as_str()).collect()
}

#[test]
fn folders_come_first_in_every_order() {
    for (query, expected) in [
        (None, ["z", "a.txt", "b.txt", "c.txt"]),
        (Some("sort=name&order=desc"), ["z", "c.txt", "b.txt", "a.txt"]),
        (Some("sort=size"), ["z", "b.txt", "c.txt", "a.txt"]),
        (Some("order=desc&sort=size"), ["z", "a.txt", "c.txt", "b.txt"]),
        (Some("sort=time&order=desc"), ["z", "c.txt", "b.txt", "a.txt"]),
        (Some("sort=evil&order=evil&x"), ["z", "a.txt", "b.txt", "c.txt"]),
    ] {
        let mut listing = sample();
        listing.sort(Sort::from_query(query));
        assert_eq!(names(&listing), expected, "{query:?}");
    }
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
    let opened = Root::open(&root, Symlinks::Beneath, false).unwrap();
    let mut listing = Listing::read(&opened, "sub/").unwrap();
    listing.sort(Sort::from_query(None));
    assert_eq!(names(&listing), ["folder", "file", "link"]);
    assert_eq!(listing.items[2].bytes, 5);

    let strict = Root::open(&root, Symlinks::Never, false).unwrap();
    assert_eq!(Listing::read(&strict, "sub/").unwrap().items.len(), 2);
}

#[test]
fn the_page_escapes_names_and_encodes_links() {
    let evil = "<script>alert('&\"')?#%: .txt";
    let listing = Listing { items: vec![item(evil, false, 1, 0)], is_cut: false };
    let page = write_html(&listing, "/<b>/", Sort::from_query(None));
    assert!(!page.contains("<script>"), "{page}");
    assert!(!page.contains("<b>"), "{page}");
    let link = "href=\"./%3Cscript%3Ealert%28%27%26%22%27%29%3F%23%25%3A%20.txt\"";
    assert!(page.contains(link), "{page}");
    assert!(page.contains(">&lt;script&gt;alert(&#39;&amp;&quot;&#39;)?#%: .txt<"), "{page}");
}

#[test]
fn the_page_sorts_by_links_and_shows_the_order() {
    let page = write_html(&sample(), "/a/", Sort::from_query(Some("sort=size")));
    assert!(page.contains("<th aria-sort=\"ascending\"><a href=\"?sort=size&amp;order=desc\">"));
    assert!(page.contains("<th><a href=\"?sort=time&amp;order=asc\">"));
    assert!(page.contains("<a href=\"../\">../</a>"));
    assert!(page.contains("name=\"viewport\""));
    assert!(page.contains("name=\"color-scheme\" content=\"light dark\""));
    assert!(!page.contains("<script"));
    let top = write_html(&sample(), "/", Sort::from_query(None));
    assert!(!top.contains("../"), "nothing lies above the root: {top}");
}

#[test]
fn sizes_and_times_are_readable() {
    let items = vec![
        item("a", false, 1023, 0),
        item("b", false, 1536, 951_782_400),
        item("c", false, u64::MAX, i64::MAX),
    ];
    let page = write_html(&Listing { items, is_cut: true }, "/", Sort::from_query(None));
    assert!(page.contains(">1023 B<"), "{page}");
    assert!(page.contains(">1.5 KiB<"), "{page}");
    assert!(page.contains("<td>2000-02-29 00:00</td>"), "{page}");
    assert!(page.contains("Only the first 3 are shown."), "{page}");
}

#[test]
fn programs_get_the_same_as_json() {
    let mut listing = sample();
    listing.sort(Sort::from_query(None));
    let page: serde_json::Value = serde_json::from_str(&write_json(&listing, "/a/")).unwrap();
    assert_eq!(page["path"], "/a/");
    assert_eq!(page["truncated"], false);
    assert_eq!(
        page["entries"][0],
        serde_json::json!({"name": "z", "type": "directory", "modified": "1970-01-01T00:01:40Z"})
    );
    assert_eq!(page["entries"][1]["bytes"], 2000);
    assert_eq!(page["entries"][1]["type"], "file");
}

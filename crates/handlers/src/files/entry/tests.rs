use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

use kettle_config::{CacheRule, Coding, Route, Site};

use super::super::file_route::SiteRoutes;
use super::super::locate::{self, Sought, locate};
use super::super::precompressed::CodingPreference;
use super::super::root::Reach;
use super::*;

fn route(folder: &Path, change: impl FnOnce(&mut Route)) -> FileRoute {
    let mut route = Route::default();
    change(&mut route);
    FileRoute::open(&SiteRoutes::of(&Site::default()), &route, folder).unwrap()
}

/// A folder with one file, last modified so many seconds after 1970.
fn folder(name: &str, modified_seconds: u64) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, "hello").unwrap();
    let modified = UNIX_EPOCH + Duration::from_secs(modified_seconds);
    fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    folder
}

fn facts(route: &FileRoute, name: &str, preference: CodingPreference) -> Facts {
    let sought = Sought { preference, ..Sought::file(name) };
    match locate(&route.root, sought, Reach::Anywhere) {
        locate::LocateOutcome::File(found) => found.facts,
        other => panic!("no file: {other:?}"),
    }
}

fn entry_at(route: &FileRoute, facts: &Facts, wall_seconds: u64) -> Entry {
    entry_by(route, facts, Mark::Hash([1; 16]), wall_seconds)
}

fn entry_by(route: &FileRoute, facts: &Facts, mark: Mark, wall_seconds: u64) -> Entry {
    let content = Content::Memory(Bytes::from_static(b"hello"));
    let wall = UNIX_EPOCH + Duration::from_secs(wall_seconds);
    Entry::new(route, facts, (content, mark), wall, Look::default())
}

fn lines(entry: &Entry) -> String {
    String::from_utf8(entry.lines.all().to_vec()).unwrap()
}

#[test]
fn the_lines_say_what_the_file_is() {
    let folder = folder("a.html", 784_111_777);
    let route = route(folder.path(), |_| {});
    let entry = entry_at(&route, &facts(&route, "a.html", CodingPreference::NONE), 1_000_000_000);
    let expected = "server: kettle\r\netag: ETAG\r\n\
        last-modified: Sun, 06 Nov 1994 08:49:37 GMT\r\naccept-ranges: bytes\r\n\
        content-type: text/html; charset=utf-8\r\n";
    assert_eq!(entry.etag, format!("\"{}\"", "01".repeat(16)));
    assert_eq!(lines(&entry), expected.replace("ETAG", &entry.etag));
}

/// Sets the time of modification until the kernel's own time, which goes by ticks, is another than it was.
fn touch(path: &Path, seconds: u64) {
    let changed = || locate::identity_of(fs::File::open(path).unwrap()).unwrap().changed;
    let before = changed();
    while changed() == before {
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(UNIX_EPOCH + Duration::from_secs(seconds)).unwrap();
    }
}

/// By its mark, on a route for the only copies or for some of several.
fn tag(folder: &tempfile::TempDir, mark: Mark, same_files: bool) -> String {
    let route = route(folder.path(), |route| route.same_files = same_files);
    entry_by(&route, &facts(&route, "a", CodingPreference::NONE), mark, 1_000_000_000).etag
}

#[test]
fn two_hosts_with_the_same_file_agree_on_its_tag_where_they_can() {
    let one = folder("a", 784_111_777);
    let other = folder("a", 784_111_777);
    touch(&other.path().join("a"), 784_111_777);
    let agree = |mark, same_files| tag(&one, mark, same_files) == tag(&other, mark, same_files);
    assert!(agree(Mark::Hash([1; 16]), false));
    assert!(!agree(Mark::Times, false), "the kernel's own time differs");
    assert!(agree(Mark::Times, true));
    let expected = format!("\"{:x}-5\"", 784_111_777_000_000_000_u64);
    assert_eq!(tag(&one, Mark::Times, true), expected);
}

#[test]
fn a_tag_changes_with_the_content_though_the_time_is_the_same() {
    let folder = folder("a", 1);
    let before = tag(&folder, Mark::Times, false);
    let path = folder.path().join("a");
    fs::write(&path, "olleh").unwrap();
    touch(&path, 1);
    assert_ne!(tag(&folder, Mark::Times, false), before);
    assert_ne!(tag(&folder, Mark::Hash([1; 16]), false), tag(&folder, Mark::Hash([2; 16]), false));
}

#[test]
fn a_time_that_is_none_makes_no_tag_and_is_not_told() {
    for (seconds, is_dated) in [(0, false), (1, false), (315_619_199, false), (315_619_200, true)] {
        let folder = folder("a", seconds);
        assert_eq!(!tag(&folder, Mark::Times, true).is_empty(), is_dated, "{seconds}");
        assert!(!tag(&folder, Mark::Times, false).is_empty());
        assert!(!tag(&folder, Mark::Hash([1; 16]), true).is_empty());
        let route = route(folder.path(), |route| route.same_files = true);
        let facts = facts(&route, "a", CodingPreference::NONE);
        let entry = entry_by(&route, &facts, Mark::Times, 1_000_000_000);
        let lines = lines(&entry);
        assert_eq!(lines.contains("etag: "), is_dated, "{lines}");
        assert_eq!(lines.contains("last-modified: "), is_dated, "{lines}");
    }
    let changing = folder("a", 784_111_777);
    for same_files in [true, false] {
        assert_eq!(tag(&changing, Mark::Nothing, same_files), "");
    }
    // The time may be that of the content before.
    let route = route(changing.path(), |_| {});
    let facts = facts(&route, "a", CodingPreference::NONE);
    let entry = entry_by(&route, &facts, Mark::Nothing, 1_000_000_000);
    assert!(entry.modified.is_none() && !lines(&entry).contains("last-modified: "));
}

#[test]
fn a_date_tells_contents_apart_only_where_the_kernel_gave_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    fs::write(&path, "hello").unwrap();
    let route = route(folder.path(), |_| {});
    let shares_date = || {
        let facts = facts(&route, "a", CodingPreference::NONE);
        entry_at(&route, &facts, 4_000_000_000).shares_date
    };
    assert!(!shares_date());
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(UNIX_EPOCH + Duration::from_secs(784_111_777)).unwrap();
    assert!(shares_date());
}

#[test]
fn a_coded_sibling_has_its_own_tag_and_the_type_of_its_file() {
    let folder = folder("a.css", 784_111_777);
    fs::copy(folder.path().join("a.css"), folder.path().join("a.css.br")).unwrap();
    let sibling = fs::File::options().write(true).open(folder.path().join("a.css.br")).unwrap();
    sibling.set_modified(UNIX_EPOCH + Duration::from_secs(784_111_777)).unwrap();
    let route = route(folder.path(), |route| route.precompressed = vec![Coding::Br]);
    let brotli = CodingPreference::negotiate(&[Coding::Br], [b"br".as_slice()]);
    let plain = entry_at(&route, &facts(&route, "a.css", CodingPreference::NONE), 1_000_000_000);
    let coded = entry_at(&route, &facts(&route, "a.css", brotli), 1_000_000_000);
    assert_ne!(plain.etag, coded.etag);
    assert!(lines(&coded).contains("content-encoding: br\r\ncontent-type: text/css"));
    assert!(!lines(&plain).contains("content-encoding"));
    for entry in [&plain, &coded] {
        assert!(lines(entry).contains("vary: accept-encoding\r\n"), "{}", lines(entry));
    }
}

#[test]
fn a_pattern_decides_about_caching_before_the_headers() {
    let folder = folder("a.css", 0);
    let route = route(folder.path(), |route| {
        route.prefix = Some("/assets".to_owned());
        route.headers = vec![("cache-control".to_owned(), vec!["no-store".into()])];
        let rule = |pattern: &str, value: &str| CacheRule {
            pattern: pattern.to_owned(),
            value: value.to_owned(),
        };
        route.cache_control = vec![
            rule("/other/**", "max-age=1"),
            rule("/assets/*.css", "max-age=2"),
            rule("*.css", "max-age=3"),
        ];
    });
    let entry = entry_at(&route, &facts(&route, "a.css", CodingPreference::NONE), 1_000_000_000);
    assert!(lines(&entry).contains("cache-control: max-age=2\r\n"), "{}", lines(&entry));
    assert!(!lines(&entry).contains("no-store"), "{}", lines(&entry));
}

#[test]
fn headers_decide_about_caching_where_no_pattern_fits() {
    let folder = folder("a.css", 0);
    let route = route(folder.path(), |route| {
        route.headers = vec![("cache-control".to_owned(), vec!["no-store".into()])];
    });
    let entry = entry_at(&route, &facts(&route, "a.css", CodingPreference::NONE), 1_000_000_000);
    assert!(lines(&entry).contains("cache-control: no-store\r\n"), "{}", lines(&entry));
}

#[test]
fn a_date_to_come_is_not_passed_on() {
    let folder = folder("a", 2_000_000_000);
    let route = route(folder.path(), |_| {});
    let entry = entry_at(&route, &facts(&route, "a", CodingPreference::NONE), 784_111_777);
    let line = "last-modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    assert!(lines(&entry).contains(line), "{}", lines(&entry));
}

#[test]
fn a_file_changed_just_now_is_not_trusted_to_be_the_same() {
    let folder = folder("a", 1_000_000_000);
    let route = route(folder.path(), |_| {});
    let facts = facts(&route, "a", CodingPreference::NONE);
    assert!(!entry_at(&route, &facts, 1_000_000_001).is_still(&facts));
    assert!(entry_at(&route, &facts, 1_000_000_003).is_still(&facts));
}

#[test]
fn a_part_beyond_the_end_of_memory_is_cut() {
    let content = Content::Memory(Bytes::from_static(b"hello"));
    for (start, bytes, expected) in [(1, 3, &b"ell"[..]), (3, 99, b"lo"), (u64::MAX, 1, b"")] {
        match content.part(ByteRange { start, bytes }) {
            Part::Memory(part) => assert_eq!(part, expected),
            Part::File { .. } => panic!("not in memory"),
        }
    }
}

use std::fs::{self, File};

use kettle_kernel::file_system::FileSystem;

use super::*;

#[test]
fn what_belongs_to_no_site_is_answered_with_a_short_page() {
    let response = plain(&431.into(), &RequestId::said(b"abc-1").unwrap());
    assert_eq!(response.status, 431);
    let lines = response.fields.lines().concat();
    let expected = "server: kettle\r\ncontent-type: text/html; charset=utf-8\r\n";
    assert_eq!(String::from_utf8(lines).unwrap(), expected);
    let Body::Memory(body) = response.body else { panic!("no body") };
    let body = String::from_utf8(body.to_vec()).unwrap();
    assert!(body.contains("Request Header Fields Too Large"), "{body}");
    assert!(body.contains("Request abc-1<"), "{body}");
}

#[test]
fn an_overloaded_server_says_when_to_come_back() {
    let error = HttpError::from(503);
    assert_eq!(error.fields, [("retry-after", "1".to_owned())]);
    assert_eq!(HttpError::from(404).fields, []);
}

#[test]
fn a_page_larger_than_the_bound_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("404.html");
    let read = || ErrorPage::read(File::open(&path).unwrap(), String::new());
    let largest = usize::try_from(ERROR_PAGE_BYTES_MAX).unwrap();
    fs::write(&path, vec![b'x'; largest]).unwrap();
    assert_eq!(read().unwrap().bytes.len(), largest);
    fs::write(&path, vec![b'x'; largest + 1]).unwrap();
    assert!(read().is_err());
}

const NOW: Duration = Duration::from_secs(9);
const AGE_MAX: Duration = Duration::from_secs(1);

fn page(text: &str) -> ErrorPage {
    ErrorPage { bytes: text.to_owned().into(), content_type: String::new() }
}

fn device() -> Arc<Device> {
    Arc::new(Device::new(FileSystem::default()))
}

#[test]
fn responses_have_one_copy_of_a_page_until_it_is_another() {
    let mut pages = ErrorPages::default();
    let path = Path::new("/x/404.html");
    let first = pages.remember(path, page("first"), device(), NOW);
    // Many streams may have read it at the same time.
    let again = pages.remember(path, page("first"), device(), NOW);
    assert_eq!(again.bytes.as_ptr(), first.bytes.as_ptr());
    let found = pages.find(path, NOW, AGE_MAX).unwrap();
    assert_eq!(found.bytes.as_ptr(), first.bytes.as_ptr());
    let later = NOW + AGE_MAX;
    assert!(pages.find(path, later, AGE_MAX).is_none());
    assert_eq!(pages.remember(path, page("second"), device(), later).bytes, "second");
    assert_eq!(pages.find(path, later, AGE_MAX).unwrap().bytes, "second");
}

#[test]
fn as_many_pages_are_remembered_as_there_are() {
    let mut pages = ErrorPages::default();
    let path = |number: u32| PathBuf::from(format!("/x/{number}.html"));
    for number in 0..200 {
        pages.remember(&path(number), page("a page"), device(), NOW);
    }
    assert!((0..200).all(|number| pages.find(&path(number), NOW, AGE_MAX).is_some()));
}

#[test]
fn another_configuration_reads_all_pages_again_and_forgets_those_nobody_asks_for() {
    let mut pages = ErrorPages::default();
    let path = Path::new("/x/404.html");
    pages.remember(path, page("first"), device(), NOW);
    pages.forget();
    assert!(pages.find(path, NOW, AGE_MAX).is_none());
    assert_eq!(pages.outdated(path, NOW).unwrap().bytes, "first", "where its disk does not answer");
    assert_eq!(pages.find(path, NOW, AGE_MAX).unwrap().bytes, "first", "it is not asked at once");
    pages.forget();
    pages.forget();
    assert!(pages.outdated(path, NOW).is_none());
}

#[test]
fn a_page_is_read_where_it_was_or_where_its_neighbours_are() {
    let mut pages = ErrorPages::default();
    let here = device();
    let there = device();
    let other = Path::new("/y/503.html");
    pages.remember(Path::new("/x/404.html"), page(""), Arc::clone(&here), NOW);
    assert!(pages.device_of(other).is_none());
    pages.remember(other, page(""), Arc::clone(&there), NOW);
    for (path, device) in [("/x/404.html", &here), ("/x/503.html", &here), ("/y/503.html", &there)]
    {
        assert!(Arc::ptr_eq(&pages.device_of(Path::new(path)).unwrap(), device), "{path}");
    }
}

#[test]
fn a_page_has_the_type_its_name_says() {
    assert_eq!(content_type_of(Path::new("/x/404.html")), "text/html; charset=utf-8");
    assert_eq!(content_type_of(Path::new("/x/404.json")), "application/json");
    assert_eq!(content_type_of(Path::new("/x/404")), "text/html; charset=utf-8");
}

use std::fs;

use super::*;

#[test]
fn what_belongs_to_no_site_is_answered_with_a_short_page() {
    let response = plain(&431.into());
    assert_eq!(response.status, 431);
    let lines = response.fields.lines().concat();
    let expected = "server: kettle\r\ncontent-type: text/html; charset=utf-8\r\n";
    assert_eq!(String::from_utf8(lines).unwrap(), expected);
    let Body::Memory(body) = response.body else { panic!("no body") };
    let body = String::from_utf8(body.to_vec()).unwrap();
    assert!(body.contains("Request Header Fields Too Large"), "{body}");
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
    let largest = usize::try_from(PAGE_BYTES_MAX).unwrap();
    fs::write(&path, vec![b'x'; largest]).unwrap();
    assert_eq!(ErrorPage::read(&path, String::new()).unwrap().bytes.len(), largest);
    fs::write(&path, vec![b'x'; largest + 1]).unwrap();
    assert!(ErrorPage::read(&path, String::new()).is_err());
}

#[test]
fn responses_have_one_copy_of_a_page_until_it_is_another() {
    let (mut pages, path) = (ErrorPages::default(), Path::new("/x/404.html"));
    let page =
        |text: &str| ErrorPage { bytes: text.to_owned().into(), content_type: String::new() };
    let (now, age_max) = (Duration::from_secs(9), Duration::from_secs(1));
    let first = pages.remember(path, page("first"), now);
    // Many streams may have read it at the same time.
    assert_eq!(pages.remember(path, page("first"), now).bytes.as_ptr(), first.bytes.as_ptr());
    let found = pages.find(path, now, age_max).unwrap();
    assert_eq!(found.bytes.as_ptr(), first.bytes.as_ptr());
    assert!(pages.find(path, now + age_max, age_max).is_none());
    assert_eq!(pages.remember(path, page("second"), now + age_max).bytes, "second");
    assert_eq!(pages.find(path, now + age_max, age_max).unwrap().bytes, "second");
    for number in 0..2 * PAGES_MAX {
        pages.remember(&path.join(number.to_string()), page(""), now);
        assert!(pages.0.len() <= PAGES_MAX);
    }
}

#[test]
fn a_page_has_the_type_its_name_says() {
    assert_eq!(content_type_of(Path::new("/x/404.html")), "text/html; charset=utf-8");
    assert_eq!(content_type_of(Path::new("/x/404.json")), "application/json");
    assert_eq!(content_type_of(Path::new("/x/404")), "text/html; charset=utf-8");
}

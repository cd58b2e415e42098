use std::cell::Cell;
use std::os::fd::BorrowedFd;

use rustix::io::pread;

use super::super::tests::{KEY, TestStore, key, vary};
use super::*;

const PLAIN: &[u8] = b"plain plain plain plain";

fn put(store: &Arc<Store>, head: ObjectHead, body: &[u8]) -> Result<Reference, StoreError> {
    store.keep(&head, body)
}

fn keep(store: &Arc<Store>, object: &Object, coded: Option<&[u8]>) -> Result<(), StoreError> {
    store.keep_form(&of(object), || Ok(coded.map(<[u8]>::to_vec)))
}

fn of(object: &Object) -> FormOf<'_> {
    let Object { head, body, reference, .. } = object;
    FormOf { reference, head, body: *body, coding: "br" }
}

fn found(store: &Store, key: &str) -> Object {
    store.find(key, &|_| b"a".to_vec()).unwrap().unwrap()
}

fn form(store: &Store, of: &FormOf<'_>) -> Option<Vec<u8>> {
    let read = |file: BorrowedFd<'_>, page: &mut [u8], more_bytes: usize| {
        let page_bytes = pread(file, &mut *page, 0).ok()?;
        let mut more = vec![0; more_bytes];
        let read_bytes = pread(file, &mut *more, page_bytes as u64).ok()?;
        more.truncate(read_bytes);
        Some((page_bytes, more))
    };
    let how = AtOnce { read: &read, takes: &|_| true, wants_state: false };
    store.find_form_at_once(of, &how).ok().map(|found| found.body.unwrap())
}

#[test]
fn a_form_is_found_by_its_object_and_never_in_its_place() {
    let store = TestStore::new();
    put(&store, store.head(KEY), PLAIN).unwrap();
    let object = found(&store, KEY);
    assert_eq!(form(&store, &of(&object)), None);
    keep(&store, &object, Some(b"coded")).unwrap();
    assert_eq!(form(&store, &of(&object)).unwrap(), b"coded");
    assert_eq!(form(&store, &FormOf { coding: "gzip", ..of(&object) }), None);
    assert_eq!(found(&store, KEY).reference, object.reference);
    let made = Cell::new(false);
    store.keep_form(&of(&object), || Ok(Some(vec![u8::from(made.replace(true))]))).unwrap();
    assert!(!made.get(), "it is there");
}

#[test]
fn a_form_is_there_in_the_next_life_of_the_store() {
    let store = TestStore::new();
    put(&store, store.head(KEY), PLAIN).unwrap();
    keep(&store, &found(&store, KEY), Some(b"coded")).unwrap();
    let store = store.reopened();
    store.scan(&|| false).unwrap();
    assert_eq!(form(&store, &of(&found(&store, KEY))).unwrap(), b"coded");
}

#[test]
fn a_form_of_a_variant_is_that_variants() {
    let store = TestStore::new();
    let variant = |value| ObjectHead { vary: vary(value), ..store.head(KEY) };
    put(&store, variant("a"), PLAIN).unwrap();
    put(&store, variant("b"), PLAIN).unwrap();
    let object = found(&store, KEY);
    keep(&store, &object, Some(b"coded")).unwrap();
    assert_eq!(form(&store, &of(&object)).unwrap(), b"coded");
    let other = store.find(KEY, &|_| b"b".to_vec()).unwrap().unwrap();
    assert_eq!(form(&store, &of(&other)), None);
    assert_eq!(store.marker(KEY).unwrap().unwrap().head.vary.len(), 1);
}

#[test]
fn an_object_that_came_or_was_validated_since_has_no_form() {
    let store = TestStore::new();
    put(&store, store.head(KEY), PLAIN).unwrap();
    let mut object = found(&store, KEY);
    keep(&store, &object, Some(b"coded")).unwrap();
    let times = Times { arrived: 7, ..Times::default() };
    let validated = ObjectHead { times, ..object.head.clone() };
    store.refresh(&mut object, validated).unwrap();
    assert_eq!(form(&store, &of(&object)), None);
    keep(&store, &object, Some(b"coded again")).unwrap();
    put(&store, ObjectHead { times, ..store.head(KEY) }, b"other other other other").unwrap();
    let object = found(&store, KEY);
    assert_eq!(form(&store, &of(&object)), None);
    keep(&store, &object, Some(b"coded other")).unwrap();
    assert_eq!(form(&store, &of(&object)).unwrap(), b"coded other");
    assert_eq!(store.files().len(), 2, "one form takes the place of the other");
}

#[test]
fn what_was_validated_by_its_tag_keeps_its_form() {
    let store = TestStore::new();
    put(&store, ObjectHead { etag: b"\"a\"".to_vec(), ..store.head(KEY) }, PLAIN).unwrap();
    let mut object = found(&store, KEY);
    keep(&store, &object, Some(b"coded")).unwrap();
    let times = Times { arrived: 7, ..Times::default() };
    let validated = ObjectHead { times, ..object.head.clone() };
    store.refresh(&mut object, validated).unwrap();
    assert_eq!(form(&store, &of(&object)).unwrap(), b"coded");
}

#[test]
fn a_purge_takes_forms_along_those_that_are_made_meanwhile_too() {
    let store = TestStore::new();
    put(&store, store.head(KEY), PLAIN).unwrap();
    let object = found(&store, KEY);
    keep(&store, &object, Some(b"coded")).unwrap();
    store.purge(&key(KEY)).unwrap();
    assert!(store.files().is_empty());
    assert!(matches!(keep(&store, &object, Some(b"coded")), Err(StoreError::Purged)));
    put(&store, store.head(KEY), PLAIN).unwrap();
    let object = found(&store, KEY);
    let made_while_purged = || {
        store.purge(&key(KEY)).unwrap();
        Ok(Some(b"coded".to_vec()))
    };
    let kept = store.keep_form(&of(&object), made_while_purged);
    assert!(matches!(kept, Err(StoreError::Purged)));
    assert!(store.files().is_empty());
}

#[test]
fn what_a_coding_makes_no_smaller_has_an_empty_form() {
    let store = TestStore::new();
    put(&store, store.head(KEY), PLAIN).unwrap();
    let object = found(&store, KEY);
    keep(&store, &object, None).unwrap();
    assert_eq!(form(&store, &of(&object)).unwrap(), b"");
}

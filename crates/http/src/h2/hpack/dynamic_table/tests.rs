//! The entries that the table holds. Which entries go is asked in `decode/tests.rs`.

use super::*;

#[test]
fn an_empty_table_holds_no_memory() {
    let mut table = DynamicTable::new(100);
    assert_eq!(table.entries.capacity(), 0);
    table.insert(Entry::new(b"name", b"value"));
    table.release_if_empty();
    assert_eq!(table.field_line(0), Some((b"name".as_slice(), b"value".as_slice())));
    table.resize(0);
    table.release_if_empty();
    assert_eq!((table.bytes, table.entries.capacity()), (0, 0));
}

#[test]
fn an_entry_counts_for_its_strings_and_32_bytes() {
    let mut table = DynamicTable::new(100);
    table.insert(Entry::new(b"name", b"value"));
    assert_eq!(table.bytes, 41);
    assert!(table.has_room_for(b"name", &[b'v'; 64]));
    assert!(!table.has_room_for(b"name", &[b'v'; 65]));
    table.clear();
    assert_eq!(table.bytes, 0);
}

use super::*;

fn name(number: usize) -> Name {
    Name::of_key(&number.to_string())
}

#[test]
fn what_is_used_stays_and_what_is_not_goes_oldest_first() {
    let index = Index::default();
    for number in 0..5 {
        index.insert(name(number), 1);
    }
    assert!(index.find(name(0)).is_some() && index.find(name(2)).is_some());
    let evicted: Vec<_> = (0..5).map(|_| index.evict().unwrap().0).collect();
    assert_eq!(evicted, [1, 3, 4, 0, 2].map(name));
    assert_eq!((index.evict(), index.len(), index.bytes()), (None, 0, 0));
}

#[test]
fn sizes_are_counted_in_blocks_and_replacing_counts_once() {
    let index = Index::default();
    let first = index.insert(name(1), 4_097);
    assert_eq!(index.bytes(), 8_192);
    let second = index.insert(name(1), 0);
    assert_eq!((index.bytes(), index.len()), (4_096, 1));
    assert_eq!(index.find(name(1)), Some(second));
    assert_eq!(index.insert_found(name(1), 1_000_000), second);
    assert!(!index.remove(name(1), Some(first)), "another object has the name");
    let third = index.renew(name(1), second).unwrap();
    assert_eq!(index.renew(name(1), second), None);
    assert!(index.remove(name(1), Some(third)));
    assert_eq!((index.bytes(), index.len()), (0, 0));
}

#[test]
fn the_object_under_the_hand_may_be_removed() {
    let index = Index::default();
    for number in 0..4 {
        index.insert(name(number), 1);
    }
    index.find(name(0));
    assert_eq!(index.evict(), Some((name(1), BLOCK_BYTES)));
    // The hand is at 2.
    assert!(index.remove(name(2), None));
    index.insert(name(4), 1);
    assert_eq!(index.evict(), Some((name(3), BLOCK_BYTES)));
    assert_eq!(index.evict(), Some((name(4), BLOCK_BYTES)));
    assert_eq!(index.evict(), Some((name(0), BLOCK_BYTES)));
    assert_eq!(index.evict(), None);
}

#[test]
fn an_eviction_ends_though_everything_is_used() {
    let index = Index::default();
    for number in 0..3 * STEPS_MAX {
        index.insert(name(number), 1);
        index.find(name(number));
    }
    assert_eq!(index.evict(), Some((name(STEPS_MAX), BLOCK_BYTES)));
}

/// Growing vectors and maps are counted by the capacity they reach.
#[test]
fn an_entry_takes_at_most_200_bytes() {
    let index = Index::default();
    for number in 0..100_000 {
        index.insert(name(number), 1);
    }
    let entries = index.read();
    // A control byte beside each place of the map, one place in eight of which stays empty.
    let places = (entries.by_name.capacity() * 8).div_ceil(7);
    let map = places * (size_of::<(Name, u32)>() + 1);
    let bytes = map + entries.slots.capacity() * size_of::<Slot>();
    assert!(bytes / 100_000 <= 200, "{} bytes an entry", bytes / 100_000);
    assert_eq!(size_of::<Slot>(), 64);
}

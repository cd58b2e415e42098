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
    assert_eq!(index.insert_found(name(1), 1_000_000), None, "it may be another");
    assert_eq!((index.find(name(1)), index.bytes()), (Some(second), 4_096));
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

fn variant(key: usize, number: usize) -> Name {
    name(key).variant(&[("accept".to_owned(), number.to_string().into_bytes())])
}

#[test]
fn variants_are_taken_by_their_key_a_few_at_a_time() {
    let index = Index::default();
    index.insert(name(1), 1);
    for number in 0..5 {
        index.insert(variant(1, number), 1);
        index.insert(variant(2, number), 1);
    }
    // The newest, the oldest and one between them go by themselves, and one comes anew.
    for number in [4, 0, 2] {
        assert!(index.remove(variant(1, number), None));
    }
    index.insert(variant(1, 1), 1);
    assert_eq!(index.take_variants(name(1), 1), [variant(1, 1)]);
    assert_eq!(index.take_variants(variant(1, 9), 9), [variant(1, 3)]);
    assert_eq!(index.take_variants(name(1), 9), []);
    assert!(!index.lacks(name(1)), "what lookup finds first is none");
    assert_eq!(index.take_variants(name(2), 9).len(), 5);
    assert_eq!((index.len(), index.read().variants.len()), (1, 0));
    index.insert(variant(1, 0), 1);
    assert_eq!(index.take_variants(name(1), 9), [variant(1, 0)]);
}

#[test]
fn a_variant_that_is_evicted_leaves_its_list() {
    let index = Index::default();
    for number in 0..4 {
        index.insert(variant(1, number), 1);
    }
    assert_eq!(index.evict(), Some((variant(1, 0), BLOCK_BYTES)));
    let left = [3, 2, 1].map(|number| variant(1, number));
    assert_eq!(index.take_variants(name(1), 9), left);
}

/// Growing vectors and maps are counted by the capacity they reach.
#[test]
fn an_entry_takes_at_most_200_bytes() {
    for has_variants in [false, true] {
        let index = Index::default();
        for number in 0..100_000 {
            // At worst each is the only one of its key.
            index.insert(if has_variants { variant(number, 0) } else { name(number) }, 1);
        }
        let entries = index.read();
        // A control byte beside each place of the map, one place in eight of which stays empty.
        let places = |capacity: usize| (capacity * 8).div_ceil(7);
        let map = places(entries.by_name.capacity()) * (size_of::<(Name, Place)>() + 1)
            + places(entries.variants.capacity()) * (size_of::<([u8; HASH_BYTES], Place)>() + 1);
        let bytes = (map + entries.slots.capacity() * size_of::<Slot>()) / 100_000;
        assert!(bytes <= 200, "{bytes} bytes an entry");
        println!("{bytes} bytes an entry");
        assert_eq!(size_of::<Slot>(), 64);
    }
}

use proptest::prelude::*;

use super::slot::{Place, Slot};
use super::*;
use crate::name::HASH_BYTES;

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
    assert_eq!((index.len(), sum(&index, |shard| shard.variants.len())), (1, 0));
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

#[test]
fn of_a_key_with_too_many_variants_the_oldest_go() {
    let index = Index::default();
    index.insert(name(1), 1);
    for number in 0..10_000 {
        index.insert(variant(1, number), 1);
        index.insert(variant(2, 0), 1);
        let surplus = number.checked_sub(VARIANTS_MAX).map(|oldest| variant(1, oldest));
        assert_eq!(index.take_surplus(variant(1, number)), surplus);
        assert_eq!(index.take_surplus(variant(2, 0)), None);
    }
    assert_eq!(index.len(), VARIANTS_MAX + 2);
    // Those that go by themselves are counted, at either end and between.
    for number in [9_999, 10_000 - VARIANTS_MAX, 9_000] {
        assert!(index.remove(variant(1, number), None));
    }
    for number in 0..3 {
        index.insert(variant(1, number), 1);
        assert_eq!(index.take_surplus(name(1)), None);
    }
    index.insert(variant(1, 3), 1);
    assert_eq!(index.take_surplus(name(1)), Some(variant(1, 10_001 - VARIANTS_MAX)));
    let all = index.take_variants(name(1), usize::MAX);
    assert_eq!((all.len(), all[0], index.len()), (VARIANTS_MAX, variant(1, 3), 2));
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
        // A control byte beside each place of the map, one place in eight of which stays empty.
        let places = |capacity: usize| (capacity * 8).div_ceil(7);
        let all = sum(&index, |shard| {
            places(shard.by_name.sizes().0) * (size_of::<(Name, Place)>() + 1)
                + places(shard.variants.sizes().0) * (size_of::<([u8; HASH_BYTES], Place)>() + 1)
                + size_of_val(shard)
                + shard.slots.capacity() * size_of::<Slot>()
        });
        let bytes = all / 100_000;
        assert!(bytes <= 200, "{bytes} bytes an entry");
        println!("{bytes} bytes an entry");
        assert_eq!(size_of::<Slot>(), 64);
    }
}

fn sum(index: &Index, count: impl Fn(&Shard) -> usize) -> usize {
    index.shards.iter().map(|part| count(&part.shard.read().unwrap())).sum()
}

/// The longest that a worker may find a lock taken for is as long as what grows at once takes to move.
#[test]
fn no_insert_moves_more_than_one_in_a_thousand() {
    for has_variants in [false, true] {
        let index = Index::default();
        for number in 0..100_000 {
            index.insert(if has_variants { variant(number, 0) } else { name(number) }, 1);
        }
        let moved = index.shards.iter().map(|part| {
            let shard = part.shard.read().unwrap();
            shard.by_name.sizes().1.max(shard.variants.sizes().1)
        });
        let largest = moved.max().unwrap();
        assert!((49..=100).contains(&largest), "{largest} of 100,000");
    }
}

#[test]
fn the_variants_of_one_key_are_no_table_s_alone() {
    let index = Index::default();
    for number in 0..VARIANTS_MAX {
        index.insert(variant(1, number), 1);
    }
    let largest = sum(&index, |shard| shard.by_name.sizes().1);
    assert!((512..700).contains(&largest), "{largest} of {VARIANTS_MAX}");
}

#[test]
fn an_object_that_is_renewed_without_an_end_has_no_number_twice() {
    let index = Index::default();
    let mut serial = index.insert(name(0), 1);
    index.insert(name(1), 1);
    for _ in 0..(1 << 20) + 1 {
        let next = index.renew(name(0), serial).unwrap();
        assert!(next > serial);
        serial = next;
    }
    assert_eq!((index.find(name(0)), index.len()), (Some(serial), 2));
}

#[test]
fn numbers_are_right_whatever_threads_do_at_once() {
    let index = Index::default();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let index = &index;
            scope.spawn(move || {
                for number in 0..2_000 {
                    let name = name(thread * 1_000 + number);
                    index.insert(name, 1);
                    index.find(name);
                    if number % 3 == 0 {
                        index.remove(name, None);
                    }
                    if number % 5 == 0 {
                        index.evict();
                    }
                }
            });
        }
    });
    let left = sum(&index, |shard| usize::try_from(shard.size().1).unwrap());
    assert_eq!((index.len(), index.bytes()), (left, left as u64 * BLOCK_BYTES));
    while index.evict().is_some() {}
    assert_eq!((index.len(), index.bytes()), (0, 0));
}

/// The same in one list, where everything is looked for from the front.
#[derive(Default)]
struct Model {
    /// From old to new: name, number, blocks, mark, what was checked.
    objects: Vec<(Name, u64, u64, bool, bool)>,
    hand: usize,
    changes: u64,
}

impl Model {
    fn at(&self, name: Name) -> Option<usize> {
        self.objects.iter().position(|object| object.0 == name)
    }

    fn remove(&mut self, at: usize) {
        self.objects.remove(at);
        self.changes += 1;
        if self.hand > at {
            self.hand -= 1;
        }
    }

    fn evict(&mut self) -> Option<(Name, u64)> {
        loop {
            if self.hand >= self.objects.len() {
                self.hand = 0;
            }
            let object = self.objects.get_mut(self.hand)?;
            let evicted = (!std::mem::take(&mut object.3)).then_some((object.0, object.2));
            match evicted {
                Some(_) => self.remove(self.hand),
                None => self.hand += 1,
            }
            if self.hand >= self.objects.len() {
                self.hand = 0;
            }
            if evicted.is_some() {
                return evicted;
            }
        }
    }
}

fn one_of_a_few(number: usize) -> Name {
    if number.is_multiple_of(2) { name(number / 2) } else { variant(number / 8, number) }
}

proptest! {
    #[test]
    fn shards_do_what_one_list_does(steps in prop::collection::vec((0_usize..8, 0_usize..40, 0_u64..9_000), 1..300)) {
        let _panics = kettle_kernel::bug::panics();
        let index = Index::default();
        let mut model = Model::default();
        for (step, number, bytes) in steps {
            let name = one_of_a_few(number);
            let at = model.at(name);
            let known = at.map(|at| model.objects[at]);
            match step {
                0 | 1 => {
                    let serial = index.insert(name, bytes);
                    if let Some(at) = at {
                        model.remove(at);
                    }
                    prop_assert!(model.objects.iter().all(|object| object.1 != serial));
                    model.objects.push((name, serial, bytes.div_ceil(BLOCK_BYTES).max(1) * BLOCK_BYTES, false, false));
                }
                2 => {
                    let found = index.look(name).map(|it| (it.serial, it.bytes, it.is_checked));
                    prop_assert_eq!(found, known.map(|it| (it.1, it.2, it.4)));
                    if let Some(at) = at {
                        model.objects[at].3 = true;
                    }
                }
                3 => {
                    prop_assert_eq!(index.remove(name, None), at.is_some());
                    if let Some(at) = at {
                        model.remove(at);
                    }
                }
                4 => prop_assert_eq!(index.evict(), model.evict()),
                5 => if let Some((at, known)) = at.zip(known) {
                    model.objects[at].1 = index.renew(name, known.1).unwrap();
                    model.changes += 1;
                    prop_assert!(!index.holds(name, known.1));
                },
                6 => if let Some((at, known)) = at.zip(known) {
                    index.set_checked(name, known.1);
                    model.objects[at].4 = true;
                },
                _ => {
                    let mut taken = index.take_variants(name, 2);
                    prop_assert!(taken.len() <= 2);
                    taken.reverse();
                    for taken in taken {
                        let same_key = taken.first() == name.first() && !taken.is_first();
                        let at = model.at(taken);
                        prop_assert!(same_key && at.is_some());
                        model.remove(at.unwrap());
                    }
                }
            }
            prop_assert_eq!(index.lacks(name), model.at(name).is_none());
            let blocks: u64 = model.objects.iter().map(|object| object.2).sum();
            prop_assert_eq!((index.len(), index.bytes()), (model.objects.len(), blocks));
        }
        prop_assert!(index.changes() <= model.changes, "at most one for each object");
        while let Some(evicted) = model.evict() {
            prop_assert_eq!(index.evict(), Some(evicted));
        }
        prop_assert_eq!(index.evict(), None);
    }
}

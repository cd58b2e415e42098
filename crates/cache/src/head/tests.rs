use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn head() -> impl Strategy<Value = ObjectHead> {
    let bytes = || vec(any::<u8>(), 0..40);
    let times = any::<[u64; 5]>().prop_map(|[arrived, age, fresh_for, swr, sie]| Times {
        arrived,
        age,
        fresh_for,
        stale_while_revalidate: swr,
        stale_if_error: sie,
    });
    let modified = proptest::option::of(0..u64::MAX);
    let numbers = (any::<(u16, bool)>(), modified, times, any::<u64>());
    let vary = vec(("[a-z-]{0,12}", bytes()), 0..4);
    ("\\PC{0,60}", vary, bytes(), bytes(), vec("\\PC{0,12}", 0..4), numbers).prop_map(
        |(key, vary, lines, etag, tags, (status, modified, times, generation))| ObjectHead {
            key,
            vary,
            status: status.0,
            is_for_everybody: status.1,
            lines,
            etag,
            modified,
            times,
            tags,
            generation,
        },
    )
}

proptest! {
    #[test]
    fn a_head_is_read_as_it_was_written(head in head(), pages in 1..9_u64, bytes: u32, sum: Option<u32>, more in vec(any::<u8>(), 0..9)) {
        let _panics = kettle_kernel::bug::panics();
        let extent = BodyExtent { offset: pages * BODY_ALIGNMENT, bytes: bytes.into(), sum };
        let mut file = head.encode(extent).unwrap();
        file.extend(more);
        prop_assert_eq!(ObjectHead::decode(&file), Ok((head, extent)));
    }

    #[test]
    fn a_changed_or_missing_byte_is_noticed(head in head(), at: prop::sample::Index, change in 1..=255_u8) {
        let _panics = kettle_kernel::bug::panics();
        let extent = BodyExtent { offset: BODY_ALIGNMENT, bytes: 5, sum: None };
        let whole = head.encode(extent).unwrap();
        let mut changed = whole.clone();
        let at = at.index(whole.len());
        changed[at] ^= change;
        prop_assert_eq!(ObjectHead::decode(&changed), Err(DamagedHead));
        prop_assert_eq!(ObjectHead::decode(&whole[..at]), Err(DamagedHead));
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(mut bytes in vec(any::<u8>(), 0..300), is_ours: bool) {
        if is_ours && bytes.len() >= PREFIX_BYTES {
            bytes[..8].copy_from_slice(MAGIC);
            seal(&mut bytes);
        }
        if let Ok((head, extent)) = ObjectHead::decode(&bytes) {
            prop_assert!(head.encode(extent).is_some());
        }
    }
}

#[test]
fn a_head_beyond_the_limit_is_not_written() {
    let extent = BodyExtent { offset: HEAD_BYTES_MAX as u64, bytes: 0, sum: None };
    assert_eq!(HEAD_BYTES_MAX, 65_536);
    let mut head = ObjectHead { status: 200, ..ObjectHead::default() };
    let empty = head.encode(extent).unwrap().len();
    head.lines = vec![b'x'; HEAD_BYTES_MAX - empty];
    let whole = head.encode(extent).unwrap();
    assert_eq!(ObjectHead::decode(&whole), Ok((head.clone(), extent)));
    head.lines.push(b'x');
    assert_eq!(head.encode(extent), None);
    assert_eq!(head.body_offset(None), None);
}

#[test]
fn a_head_is_damaged_whose_sum_is_right_but_not_its_numbers() {
    let head = ObjectHead { status: 200, ..ObjectHead::default() };
    let at = |offset, bytes| head.encode(BodyExtent { offset, bytes, sum: None }).unwrap();
    let length = at(BODY_ALIGNMENT, 5).len() as u64;
    assert!(ObjectHead::decode(&at(length, 5)).is_ok());
    assert!(ObjectHead::decode(&at(u64::MAX - 5, 5)).is_ok());
    for (what, bytes) in [
        ("the body begins in the head", at(length - 1, 5)),
        ("the body ends beyond all numbers", at(u64::MAX - 4, 5)),
        ("more stands in the head than is read", {
            let mut longer = at(BODY_ALIGNMENT, 5);
            longer.push(0);
            seal(&mut longer);
            longer
        }),
    ] {
        assert_eq!(ObjectHead::decode(&bytes), Err(DamagedHead), "{what}");
    }
    assert_eq!(DamagedHead.to_string(), "the object's head is damaged");
}

/// Writes length and sum of a head anew.
fn seal(head: &mut [u8]) {
    let length = u32::try_from(head.len()).unwrap();
    head[8..12].copy_from_slice(&length.to_le_bytes());
    let sum = crc32fast::hash(&head[SUMMED_FROM..]);
    head[12..16].copy_from_slice(&sum.to_le_bytes());
}

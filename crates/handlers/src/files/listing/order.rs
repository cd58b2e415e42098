//! The order of names people expect: `file2` before `file10`.
//!
//! Digits in a row are one number, and ASCII letters have no case; everything else is compared byte
//! by byte, so that names that are not UTF-8 have their place too. Names that come out equal
//! (`a1`, `A1`, `a01`) are compared as bytes: no two names of a folder ever tie.

use std::cmp::Ordering;

/// The order of two names.
pub fn compare_names(left: &[u8], right: &[u8]) -> Ordering {
    let mut left_rest = left;
    let mut right_rest = right;
    loop {
        let by_token = match (left_rest, right_rest) {
            ([], []) => return left.cmp(right),
            ([b'0'..=b'9', ..], [b'0'..=b'9', ..]) => {
                compare_numbers(take_number(&mut left_rest), take_number(&mut right_rest))
            }
            ([first, left_after @ ..], [second, right_after @ ..]) => {
                (left_rest, right_rest) = (left_after, right_after);
                first.to_ascii_lowercase().cmp(&second.to_ascii_lowercase())
            }
            ([], _) => Ordering::Less,
            (_, []) => Ordering::Greater,
        };
        if by_token != Ordering::Equal {
            return by_token;
        }
    }
}

/// Takes the digits at the beginning, and gives back those that count.
fn take_number<'n>(name: &mut &'n [u8]) -> &'n [u8] {
    let digits = name.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (mut number, rest) = name.split_at(digits);
    *name = rest;
    while let [b'0', significant @ ..] = number {
        number = significant;
    }
    number
}

/// Of two numbers without leading zeros the longer one is the greater.
fn compare_numbers(left: &[u8], right: &[u8]) -> Ordering {
    left.len().cmp(&right.len()).then_with(|| left.cmp(right))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_are_in_the_order_people_expect() {
        let expected: [&[u8]; 19] = [
            b"",
            b"0",
            b"00",
            b"1",
            b"01",
            b"1.2.9",
            b"1.2.10",
            b"2",
            b"10",
            b"99999999999999999999999999999998",
            b"99999999999999999999999999999999",
            b"a",
            b"File",
            b"file2",
            b"file02",
            b"FILE2x",
            b"file10",
            b"\xc3\xa4",
            b"\xff",
        ];
        // Equal but for zeros and case: by their bytes.
        let mut expected: Vec<&[u8]> = expected.into();
        expected.swap(3, 4);
        expected.swap(14, 13);
        let mut sorted = expected.clone();
        sorted.reverse();
        sorted.sort_by(|left, right| compare_names(left, right));
        assert_eq!(sorted, expected);
    }

    fn name() -> impl Strategy<Value = Vec<u8>> {
        proptest::collection::vec(
            prop_oneof![Just(b'0'), b'0'..=b'3', Just(b'a'), Just(b'A'), any::<u8>()],
            0..6,
        )
    }

    proptest! {
        #[test]
        fn the_order_is_total(a in name(), b in name(), c in name()) {
            prop_assert_eq!(compare_names(&a, &b), compare_names(&b, &a).reverse());
            prop_assert_eq!(compare_names(&a, &b) == Ordering::Equal, a == b);
            if compare_names(&a, &b).is_lt() && compare_names(&b, &c).is_lt() {
                prop_assert!(compare_names(&a, &c).is_lt());
            }
        }
    }
}

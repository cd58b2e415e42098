use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn a_byte_is_found_where_it_stands_first(
        bytes in prop::collection::vec(prop_oneof![any::<u8>(), Just(9), Just(11), Just(0x8a), Just(b'\n')], 0..40),
    ) {
        let expected = bytes.iter().position(|byte| *byte == b'\n');
        prop_assert_eq!(position(&bytes, b'\n'), expected);
    }
}

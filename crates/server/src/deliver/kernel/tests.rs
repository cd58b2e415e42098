use rustix::io::Errno;

use super::*;

fn first(head_bytes: usize, start: u64, bytes: u64) -> u64 {
    first_call_bytes(head_bytes, ByteRange { start, bytes })
}

#[test]
fn a_body_that_fits_beside_its_head_goes_in_one_call() {
    assert_eq!(first(300, 0, 16_084), 16_084);
    assert_eq!(first(300, 5, 1), 1);
}

#[test]
fn a_larger_body_goes_on_where_a_page_begins() {
    assert_eq!(first(300, 0, 16_085), 12_288);
    assert_eq!(first(300, 4_095, 1 << 20), 12_289);
    assert_eq!(first(4_096, 0, 1 << 20), 12_288);
}

#[test]
fn a_head_that_leaves_no_whole_page_fills_its_record() {
    assert_eq!(first(16_000, 100, 1 << 20), 384);
    assert_eq!(first(20_000, 0, 1 << 20), 12_288);
}

#[test]
fn what_a_disk_says_is_no_failure_of_the_connection() {
    for (error, is_the_clients) in [
        (Errno::PIPE, true),
        (Errno::CONNRESET, true),
        (Errno::TIMEDOUT, true),
        (Errno::HOSTUNREACH, true),
        (Errno::NETUNREACH, true),
        // Kernel TLS could not encrypt.
        (Errno::BADMSG, true),
        (Errno::IO, false),
        (Errno::INVAL, false),
        (Errno::STALE, false),
        (Errno::NODATA, false),
    ] {
        assert_eq!(is_of_socket(&error.into()), is_the_clients, "{error}");
    }
}

proptest::proptest! {
    #[test]
    fn the_first_record_is_never_too_long(
        head_bytes in 1_usize..40_000,
        start in 0_u64..100_000,
        bytes in 1_u64..1 << 30,
    ) {
        let _panics = kettle_kernel::bug::panics();
        let of_file = first(head_bytes, start, bytes);
        let of_head = head_bytes % PLAINTEXT_BYTES_MAX;
        proptest::prop_assert!(0 < of_file && of_file <= bytes);
        proptest::prop_assert!(of_head as u64 + of_file <= PLAINTEXT_BYTES_MAX as u64);
    }
}

#[test]
fn no_call_reads_what_was_not_made_sure_of() {
    let span = ByteRange { start: 5_000, bytes: 5 * CALL_BYTES };
    let end = span.start + span.bytes;
    let mut call_end = span.start + first_call_bytes(300, span);
    let mut warm_until = 0;
    let mut waits = 0;
    let mut is_first = true;
    while call_end < end {
        if warm_until < call_end {
            warm_until = warm_end(call_end, is_first);
            waits += 1;
        }
        assert!(call_end <= warm_until);
        (call_end, is_first) = (call_end + CALL_BYTES, false);
    }
    assert_eq!(waits, 4, "one for the first two calls, then one for each");
}

//! Dates out and in.

use proptest::prelude::*;

use super::*;

fn text(seconds: u64) -> String {
    let time = UNIX_EPOCH + Duration::from_secs(seconds);
    String::from_utf8(write_imf_fixdate(time).to_vec()).unwrap()
}

#[test]
fn dates_are_written_as_the_rfc_shows() {
    assert_eq!(text(784_111_777), "Sun, 06 Nov 1994 08:49:37 GMT");
    assert_eq!(text(0), "Thu, 01 Jan 1970 00:00:00 GMT");
    assert_eq!(text(951_782_400), "Tue, 29 Feb 2000 00:00:00 GMT");
}

#[test]
fn times_out_of_range_become_the_nearest_date() {
    assert_eq!(text(SECONDS_MAX), "Fri, 31 Dec 9999 23:59:59 GMT");
    assert_eq!(text(SECONDS_MAX + 1), "Fri, 31 Dec 9999 23:59:59 GMT");
    let before = UNIX_EPOCH - Duration::from_secs(5);
    assert_eq!(&write_imf_fixdate(before), b"Thu, 01 Jan 1970 00:00:00 GMT");
}

#[test]
fn three_formats_are_read_and_others_are_not() {
    let time = Some(UNIX_EPOCH + Duration::from_secs(784_111_777));
    assert_eq!(parse(b"Sun, 06 Nov 1994 08:49:37 GMT"), time);
    assert_eq!(parse(b"Sunday, 06-Nov-94 08:49:37 GMT"), time);
    assert_eq!(parse(b"Sun Nov  6 08:49:37 1994"), time);
    for value in [
        "",
        "0",
        "784111777",
        "Mon, 06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 31 Feb 1994 08:49:37 GMT",
        "1994-11-06T08:49:37Z",
        "Sun, 06 Nov 1994 24:49:37 GMT",
        "sun, 06 nov 1994 08:49:37 gmt",
    ] {
        assert_eq!(parse(value.as_bytes()), None, "{value}");
    }
    assert_eq!(parse(b"\xff"), None);
}

proptest! {
    #[test]
    fn a_written_date_is_read_back(seconds in 0..=SECONDS_MAX, nanoseconds in 0_u32..1_000_000_000) {
        let time = UNIX_EPOCH + Duration::new(seconds, nanoseconds);
        prop_assert_eq!(parse(&write_imf_fixdate(time)), Some(whole_second(time)));
    }

    #[test]
    fn any_bytes_are_survived(value in proptest::collection::vec(any::<u8>(), 0..40)) {
        let _ = parse(&value);
    }
}

#[test]
fn what_is_no_date_is_none_behind_one() {
    let one = b"Sun, 06 Nov 1994 08:49:37 GMT";
    let other = b"Mon, 06 Nov 1994 08:49:37 GMT";
    for _ in 0..2 {
        assert!(is_date(one) && is_date(b"Sunday, 06-Nov-94 08:49:37 GMT"));
        assert!(!is_date(other) && !is_date(b"0") && !is_date(&[0; 29]));
    }
}

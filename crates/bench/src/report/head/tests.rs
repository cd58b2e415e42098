use super::*;

#[test]
fn seconds_become_dates() {
    assert_eq!(date(0), "1970-01-01 00:00 UTC");
    assert_eq!(date(951_826_200), "2000-02-29 12:10 UTC");
    assert_eq!(date(1_795_305_600), "2026-11-22 00:00 UTC");
}

#[test]
fn processors_lose_their_marks() {
    assert_eq!(plain("Intel(R) Xeon(R) CPU @ 2.50GHz"), "Intel Xeon @ 2.50GHz");
}

//! When certificates are valid, and when they should have been replaced.

use super::*;

#[test]
fn dates_outside_validity_are_serious_and_shown() {
    let files = Files::new();
    let (leaf, issuer, key) = issued(&["a.example"]);
    let both = files.write("both.pem", leaf + &issuer + &key);
    let at = |seconds| {
        let moment = UNIX_EPOCH + Duration::from_secs(seconds);
        Identity::load_at(&both, &both, None, moment).expect("an identity").1
    };

    // The certificate runs from 2026-01-01 to 2027-01-01, both at midnight.
    assert_eq!(at(1_767_225_600), []);
    let last_day = 24 * 3_600;
    assert_eq!(at(1_798_761_600 - 14 * last_day), []);
    for second in [1_798_761_601 - 14 * last_day, 1_798_761_600] {
        let soon = at(second);
        assert!(soon[0].to_string().contains("ends at 2027-01-01 00:00:00 UTC"), "{}", soon[0]);
        assert!(!soon[0].is_serious() && soon.len() == 1);
    }
    let early = at(1_767_225_599);
    assert!(early[0].to_string().contains("valid from 2026-01-01 00:00:00 UTC"), "{}", early[0]);
    let late = at(1_798_761_601);
    assert!(late[0].to_string().contains("expired at 2027-01-01 00:00:00 UTC"), "{}", late[0]);
    assert!(early[0].is_serious() && late[0].is_serious());
    assert_eq!((early.len(), late.len()), (1, 1));
}

#[test]
fn short_lived_certificates_are_warned_of_in_their_last_third() {
    let day = Duration::from_secs(24 * 3_600);
    let begin = UNIX_EPOCH + 20_000 * day;
    // Days of validity, and how many of them are left when the first warning comes.
    for (lifetime, warned) in
        [(397, 14.0), (90, 14.0), (42, 14.0), (30, 10.0), (6, 2.0), (1, 1.0 / 3.0)]
    {
        let end = begin + lifetime * day;
        let first = end - day.mul_f64(warned);
        let second = Duration::from_secs(1);
        assert!(!ends_soon(begin, end, first - second), "{lifetime}");
        assert!(ends_soon(begin, end, first + second), "{lifetime}");
        assert!(ends_soon(begin, end, end) && !ends_soon(begin, end, end + second), "{lifetime}");
        // Such as that of a machine that does not know the time.
        assert!(!ends_soon(begin, end, begin - second) && !ends_soon(begin, end, UNIX_EPOCH));
    }
    assert!(!ends_soon(begin, begin, begin) && !ends_soon(begin + day, begin, begin));
}

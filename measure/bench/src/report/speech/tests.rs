use super::*;

#[test]
fn shares_are_said_as_people_say_them() {
    let time = "processor time";
    assert_eq!(share(0.471, "nginx", time), "0.47 of nginx's processor time");
    assert_eq!(share(1.3, "hitch", time), "1.30 times hitch's processor time");
    assert_eq!(share(0.2, "stunnel", ""), "0.20 of stunnel's");
    let ratio = Interval { middle: 0.43, low: 0.361, high: 0.462 };
    assert_eq!(share_within(&ratio, "nginx", ""), "0.43 (0.36 to 0.46) of nginx's");
}

#[test]
fn multiples_keep_two_decimals_below_ten() {
    for (ratio, text) in [
        (0.4321, "0.43"),
        (0.0312, "0.031"),
        (0.997, "1.00"),
        (1.2, "1.20"),
        (2.149, "2.15"),
        (12.4, "12"),
    ] {
        assert_eq!(multiple(ratio), text);
    }
}

#[test]
fn names_keep_their_small_letter() {
    assert_eq!(capital("for 1 MiB"), "For 1 MiB");
    assert_eq!(capital("aes-128-gcm: more"), "aes-128-gcm: more");
    assert_eq!(capital("kettle needs"), "kettle needs");
    for (sentence, behind) in
        [("Least with it", "least with it"), ("No more", "no more"), ("CPU: 1", "CPU: 1")]
    {
        assert_eq!(small(sentence), behind);
    }
}

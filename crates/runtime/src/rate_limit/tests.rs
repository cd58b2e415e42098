use super::*;

fn limit(requests: u32, burst: u32, concurrent: Option<u32>) -> RateLimit {
    let settings = kettle_config::RateLimit { requests, burst, concurrent, ..Default::default() };
    RateLimit::new(&settings, None)
}

fn client(text: &str) -> ClientHost {
    ClientHost::Ip(text.parse().unwrap())
}

#[test]
fn a_bucket_empties_by_requests_and_fills_by_time() {
    let limit = limit(2, 3, None);
    let ann = client("192.0.2.1");
    let at = Duration::from_millis;
    for _ in 0..3 {
        assert!(limit.take(ann, at(0)).is_ok());
    }
    assert_eq!(limit.take(ann, at(0)).unwrap_err(), Exceeded::Client { seconds: 1 });
    assert_eq!(limit.take(ann, at(499)).unwrap_err(), Exceeded::Client { seconds: 1 });
    assert!(limit.take(ann, at(500)).is_ok());
    assert!(limit.take(ann, at(500)).is_err());
    assert!(limit.take(client("192.0.2.0"), at(500)).is_ok(), "another client");
    for neighbour in ["192.0.2.2", "192.0.2.3"] {
        for _ in 0..3 {
            assert!(limit.take(client(neighbour), at(500)).is_ok(), "{neighbour}");
        }
    }
    for _ in 0..3 {
        assert!(limit.take(ann, at(60_000)).is_ok(), "never more than it holds");
    }
    assert!(limit.take(ann, at(60_000)).is_err());
}

#[test]
fn what_was_counted_goes_on_under_the_same_settings_only() {
    let ann = client("192.0.2.1");
    let before = limit(2, 1, Some(1));
    let under_way = before.take(ann, Duration::ZERO).unwrap();
    let after = RateLimit::new(&before.settings, Some(&before));
    let at = Duration::from_secs(9);
    assert!(after.take(ann, at).is_err(), "one is under way");
    drop((before, under_way));
    assert!(after.take(ann, at).is_ok());
    assert!(after.take(ann, at).is_err(), "one was enough");
    let settings = kettle_config::RateLimit { burst: 2, ..after.settings.clone() };
    assert!(RateLimit::new(&settings, Some(&after)).take(ann, at).is_ok());
}

#[test]
fn the_first_64_bits_of_ipv6_are_one_client_and_mapped_ipv4_is_ipv4() {
    let limit = limit(1, 1, None);
    for (first, second) in
        [("2001:db8::1", "2001:db8::2"), ("192.0.2.1", "::ffff:192.0.2.1"), ("::", "::9")]
    {
        assert!(limit.take(client(first), Duration::ZERO).is_ok());
        assert!(limit.take(client(second), Duration::ZERO).is_err(), "{second}");
    }
    assert!(limit.take(client("2001:db8:0:1::1"), Duration::ZERO).is_ok());
}

#[test]
fn requests_under_way_are_counted_until_they_end() {
    let limit = limit(1000, 1000, Some(2));
    let ann = client("192.0.2.1");
    let first = limit.take(ann, Duration::ZERO).unwrap();
    let _second = limit.take(ann, Duration::ZERO).unwrap();
    assert_eq!(limit.take(ann, Duration::ZERO).unwrap_err(), Exceeded::Client { seconds: 1 });
    drop(first);
    assert!(limit.take(ann, Duration::ZERO).is_ok());
}

#[test]
fn a_crowd_does_not_make_a_limited_client_unknown() {
    let limit = limit(1, 5, None);
    let ann = client("192.0.2.1");
    while limit.take(ann, Duration::from_secs(1)).is_ok() {}
    for number in 0..400_000_u32 {
        let other = ClientHost::Ip((0x0a00_0000_u32 + number).to_be_bytes().into());
        assert!(limit.take(other, Duration::from_secs(1)).is_ok());
    }
    assert!(limit.take(ann, Duration::from_secs(1)).is_err());
}

#[test]
fn a_crowd_with_requests_under_way_leaves_nobody_unlimited() {
    let limit = limit(1, 5, Some(1));
    let begun: Vec<_> = (0..80_000_u32)
        .map(|number| {
            let other = ClientHost::Ip((0x0a00_0000_u32 + number).to_be_bytes().into());
            limit.take(other, Duration::ZERO)
        })
        .collect();
    assert!(begun.iter().all(|one| matches!(one, Ok(Some(_)) | Err(Exceeded::Crowd))));
    let refused = begun.iter().filter(|one| one.is_err()).count();
    assert!(refused > 0, "more clients than there are places");
    drop(begun);
    assert!(limit.take(client("192.0.2.1"), Duration::ZERO).is_ok());
}

use super::*;

#[test]
fn what_is_missing_is_said_as_a_number() {
    assert_eq!(too_many(1000, 1, 1200), None);
    let why = too_many(10_000, 1, 4096).unwrap();
    assert!(why.contains("need 10200 open files") && why.contains("6104 fewer"));
    assert!(too_many(10_000, 2, 20_000).unwrap().contains("need 20200 open files"));
}

#[test]
fn few_connections_come_from_one_address() {
    assert_eq!(sources(0, 0.0), 1);
    assert_eq!(sources(1000, 0.0), 1);
}

#[test]
fn a_flood_comes_from_many_addresses_but_never_too_many() {
    assert_eq!(sources(1000, 2000.0), 9);
    assert_eq!(sources(u32::MAX, 1e9), SOURCES_MAX);
    assert_eq!(sources(1, f64::NAN), 1);
}

use super::*;

fn key(subject: &str, size: f64, round: u32) -> Key {
    Key {
        scenario: "web-sizes".to_owned(),
        subject: subject.to_owned(),
        part: String::new(),
        point: Point::from([("size".to_owned(), Value::Number(size))]),
        round,
    }
}

#[test]
fn rounds_go_over_all_subjects_in_turn() {
    let order: Vec<_> = interleaved(2, &["a", "b", "c"]).map(|(round, it)| (round, *it)).collect();
    assert_eq!(order, [(0, "a"), (0, "b"), (0, "c"), (1, "a"), (1, "b"), (1, "c")]);
}

#[test]
fn a_sample_is_there_only_with_its_own_key() {
    let mut taken = Taken::default();
    taken.add(&key("nginx user", 1024.0, 0));
    assert!(taken.has(&key("nginx user", 1024.0, 0)));
    assert!(!taken.has(&key("nginx user", 1024.0, 1)));
    assert!(!taken.has(&key("nginx user", 1025.0, 0)));
    assert!(!taken.has(&key("kettle user", 1024.0, 0)));
    let step = Key { part: "step".to_owned(), ..key("nginx user", 1024.0, 0) };
    assert!(!taken.has(&step));
}

#[test]
fn keys_survive_a_results_file() {
    let rate = Point::from([("rate".to_owned(), Value::Number(1.0 / 3.0))]);
    let sample = Sample {
        scenario: "tps-ramp".to_owned(),
        subject: "hitch".to_owned(),
        part: "step".to_owned(),
        point: rate,
        round: 3,
        ..Sample::default()
    };
    let mut taken = Taken::default();
    taken.add(&Key::of(&sample));
    let text = serde_json::to_string(&sample).unwrap();
    let read: Sample = serde_json::from_str(&text).unwrap();
    assert!(taken.has(&Key::of(&read)));
}

#[test]
fn the_time_left_follows_what_samples_took() {
    let mut remaining = Remaining::new(10, 4, Duration::from_secs(5));
    assert_eq!(remaining.left(Duration::ZERO), Duration::from_secs(30));
    assert_eq!(remaining.left(Duration::from_secs(2)), Duration::from_secs(28));
    remaining.took(Duration::from_secs(7));
    assert_eq!(remaining.left(Duration::ZERO), Duration::from_secs(35));
    assert_eq!((remaining.there, remaining.planned()), (5, 10));
}

#[test]
fn more_samples_than_planned_leave_no_time() {
    let mut remaining = Remaining::new(1, 0, Duration::from_secs(5));
    remaining.took(Duration::from_secs(5));
    remaining.took(Duration::from_secs(5));
    assert_eq!(remaining.left(Duration::ZERO), Duration::ZERO);
    assert_eq!(remaining.planned(), 2);
}

//! One certificate, seen from many days.

use kettle_runtime::metrics::{Metrics, render};
use kettle_tls::self_signed;

use super::*;

/// A certificate of 397 days for this name.
fn identity(name: &str) -> Arc<Identity> {
    Arc::new(self_signed::generate_in_memory(&[name.to_owned()]).unwrap())
}

fn of(identities: &[Arc<Identity>]) -> CertificateEnds {
    CertificateEnds::of(identities, None)
}

#[test]
fn a_warning_comes_once_a_day_from_two_weeks_before_the_end_on() {
    let identity = identity("a.example");
    let ends = of(&[Arc::clone(&identity)]);
    let end = identity.not_after();
    let mut told = EndsTold::default();
    let start = Instant::now();
    let mut said = Vec::new();
    // Three weeks, minute by minute: two before the end and one behind it, and a week of nothing.
    for minute in 0..28 * 24 * 60 {
        let passed = Duration::from_secs(minute * 60);
        said.extend(told.due(&ends, end - 21 * DAY + passed, start + passed));
    }
    assert_eq!(said.len(), 14 + 7, "{said:#?}");
    let (before, behind) = said.split_at(14);
    let ends = format!("the certificate for a.example (ecdsa) ends at {}; put", Utc(end));
    let expired = format!("the certificate for a.example (ecdsa) expired at {}, so", Utc(end));
    assert!(before.iter().all(|it| it.starts_with(&ends)), "{before:#?}");
    assert!(behind.iter().all(|it| it.starts_with(&expired)), "{behind:#?}");
}

#[test]
fn a_clock_that_knows_no_time_or_jumps_brings_no_flood() {
    let identity = identity("a.example");
    let ends = of(&[Arc::clone(&identity)]);
    let end = identity.not_after();
    let mut told = EndsTold::default();
    let start = Instant::now();
    assert_eq!(told.due(&ends, UNIX_EPOCH, start), [""; 0]);
    assert_eq!(told.due(&ends, end - DAY, start).len(), 1);
    for minute in 0..60 {
        let clock = start + Duration::from_secs(minute * 60);
        for now in [UNIX_EPOCH, end - 2 * DAY, end - 30 * DAY, end - DAY] {
            assert_eq!(told.due(&ends, now, clock), [""; 0]);
        }
    }
}

#[test]
fn many_that_end_at_once_are_named_in_part_and_counted() {
    let all: Vec<_> = (0..100).map(|number| identity(&format!("{number:03}.example"))).collect();
    let ends = of(&all);
    let now = all[0].not_after() - DAY;
    let mut told = EndsTold::default();
    let said = told.due(&ends, now, Instant::now());
    assert_eq!(said.len(), LOGGED_MAX + 1);
    assert!(said[LOGGED_MAX].starts_with("80 more certificates"), "{}", said[LOGGED_MAX]);
    assert_eq!(told.due(&ends, now, Instant::now()), [""; 0]);
    let status = ends.status(now);
    assert_eq!((status.ending, status.soonest.len()), (100, SHOWN_MAX));
    assert_eq!(of(&all).status(now - 30 * DAY), CertificatesStatus::default());
}

#[test]
fn a_generated_certificate_gets_the_help_of_its_own() {
    let identity = identity("a.example");
    let ends = CertificateEnds::of([&identity], Some(&identity));
    let said = EndsTold::default().due(&ends, identity.not_after(), Instant::now());
    assert!(said[0].ends_with("; reload, and kettle makes a new one"), "{said:?}");
}

#[test]
fn prometheus_gets_the_first_end_of_each_name_and_type_of_key() {
    let [one, other] = ["b.example", "a.example"].map(identity);
    let again = Arc::clone(&one);
    let metrics = Metrics::new(1);
    metrics.set_source(Arc::new(of(&[one, other, again])));
    let text = render(&metrics, Duration::ZERO).unwrap();
    let seconds = |name: &str, moment: &str| {
        let sample =
            format!("kettle_certificate_{moment}_seconds{{name=\"{name}\",key=\"ecdsa\"}} ");
        let mut found = text.lines().filter_map(|line| line.strip_prefix(&sample));
        let value = found.next().unwrap_or_else(|| panic!("no {sample}in\n{text}"));
        assert_eq!(found.next(), None);
        value.parse::<u64>().unwrap()
    };
    for name in ["a.example", "b.example"] {
        let lifetime = seconds(name, "not_after") - seconds(name, "not_before");
        assert_eq!(lifetime, 397 * DAY.as_secs());
    }
}

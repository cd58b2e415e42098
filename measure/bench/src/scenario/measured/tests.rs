use hdrhistogram::serialization::Deserializer;
use kettle_loadgen::client::outcome::Handshakes;

use super::*;
use crate::figure;
use crate::results::Point;

fn histogram(values: &[u64]) -> Histogram<u64> {
    let mut histogram = Histogram::new(3).unwrap();
    for value in values {
        histogram.record(*value).unwrap();
    }
    histogram
}

/// 1,000 requests of 1,000 bytes in 2 s; the server's window is 4 s long, with 2 s of processor time in it.
pub(in crate::scenario) fn measured() -> Measured {
    let outcome = Outcome {
        elapsed: Duration::from_secs(2),
        attempted: 1_010,
        succeeded: 1_000,
        failures: [("reset", 10)].into(),
        body_bytes: 1_000_000,
        handshakes: Handshakes {
            full: 25,
            by_ticket: 75,
            full_bytes: 50_000,
            resumed_bytes: 60_000,
            ..Handshakes::default()
        },
        latency: histogram(&[100, 200, 300]),
        thread_busy: vec![0.25, 0.5],
        ..Outcome::nothing(histogram(&[]))
    };
    let usage = Usage {
        elapsed: Duration::from_secs(4),
        cpu: Duration::from_secs(2),
        user_share: 0.25,
        switches: 4_000,
        ..Usage::default()
    };
    Measured {
        outcome,
        usage,
        is_whole: false,
        kernel_connections: Some(7),
        server_cpus: 2,
        client_cpus: 2,
        warnings: Vec::new(),
        implausible: None,
        replaced: BTreeMap::new(),
    }
}

#[test]
fn figures_are_rates_and_costs() {
    let figures = measured().figures();
    for (name, value) in [
        ("requests_per_second", 500.0),
        ("attempted_per_second", 505.0),
        ("failed_per_second", 5.0),
        ("gigabits_per_second", 0.004),
        ("full_share", 0.25),
        ("wire_bytes_per_full_handshake", 2_000.0),
        ("wire_bytes_per_resumed_handshake", 800.0),
        ("client_busy", 0.5),
        // One second of processor time belongs to the client's two seconds.
        ("cpu_ns_per_request", 1e6),
        ("cpu_us_per_transaction", 1e3),
        ("cpu_ns_per_byte", 1e3),
        ("cpu_percent", 50.0),
        ("cpu_user_percent", 12.5),
        ("cpu_system_percent", 37.5),
        ("server_busy", 0.25),
        ("context_switches_per_request", 2.0),
        ("kernel_tls_connections", 7.0),
        ("max_us", 300.0),
    ] {
        let found = figures[name];
        assert!((found - value).abs() < value * 1e-9, "{name}: {found}, not {value}");
    }
    assert!(!figures.contains_key("first_byte_p99_us"));
}

#[test]
fn every_figure_is_a_known_one() {
    for name in measured().figures().keys() {
        assert!(figure::find(name).is_some(), "{name}");
    }
}

#[test]
fn a_window_that_covers_the_whole_load_is_not_scaled() {
    let whole = Measured { is_whole: true, ..measured() };
    assert_eq!(whole.cpu(), Duration::from_secs(2));
    assert_eq!(measured().cpu(), Duration::from_secs(1));
}

#[test]
fn a_backend_on_the_clients_processors_is_part_of_its_side() {
    let mut terminated = measured();
    assert_eq!((terminated.client_busy(), terminated.client_limited()), (0.5, None));
    // The threads have half of two processors, the backend the other half.
    terminated.usage.client = Duration::from_secs_f64(7.8);
    assert_eq!(terminated.figures()["client_busy"], 0.975);
    let said = terminated.client_limited().unwrap();
    assert!(said.contains("98 %"), "{said}");
    // curl has one thread, however many processors there are.
    terminated.outcome.thread_busy.clear();
    terminated.usage.client = Duration::from_secs_f64(1.9);
    assert_eq!(terminated.client_busy(), 0.95);
}

#[test]
fn a_scenario_puts_figures_of_its_own_in_their_place() {
    let mut own = measured();
    own.replaced = [("stalls_per_1000", Some(3.0)), ("cpu_ns_per_byte", None)].into();
    let figures = own.figures();
    assert_eq!(figures["stalls_per_1000"], 3.0);
    assert!(!figures.contains_key("cpu_ns_per_byte"));
}

#[test]
fn nothing_succeeded_gives_no_costs() {
    let mut failed = measured();
    failed.outcome.succeeded = 0;
    failed.outcome.body_bytes = 0;
    let figures = failed.figures();
    assert!(!figures.contains_key("cpu_ns_per_request"));
    assert!(!figures.contains_key("cpu_ns_per_byte"));
    assert_eq!(figures["requests_per_second"], 0.0);
}

#[test]
fn the_histogram_comes_back_from_a_sample() {
    let key = Key {
        scenario: "s".to_owned(),
        subject: "kettle auto".to_owned(),
        part: String::new(),
        point: Point::new(),
        round: 2,
    };
    let sample = measured().sample(&key);
    assert_eq!(Key::of(&sample), key);
    assert_eq!(sample.failures["reset"], 10);
    let bytes = STANDARD.decode(sample.histogram.unwrap()).unwrap();
    let read: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
    assert_eq!(read.len(), 3);
    assert_eq!(read.max(), 300);
    assert_eq!(encode(&histogram(&[])), None);
}

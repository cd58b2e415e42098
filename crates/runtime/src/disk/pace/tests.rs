use super::*;

const QUICK: Duration = Duration::from_micros(50);
const SLOW: Duration = Duration::from_millis(3);
const NOW: Duration = Duration::from_secs(9);

fn proves_itself(pace: &ReadPace) {
    for _ in 0..PROOF_READS {
        pace.took(QUICK);
    }
}

#[test]
fn a_device_is_trusted_once_it_has_proved_quick_and_until_it_is_slow() {
    let pace = ReadPace::default();
    for _ in 0..PROOF_READS {
        assert!(!pace.is_quick(NOW), "not measured yet");
        pace.took(QUICK);
    }
    assert!(pace.is_quick(NOW));
    pace.held_up(QUICK, NOW);
    assert!(pace.is_quick(NOW));
    pace.held_up(SLOW, NOW);
    assert!(!pace.is_quick(NOW));
}

#[test]
fn memory_needs_no_proof_until_it_is_slow() {
    let pace = ReadPace::proved();
    assert!(pace.is_quick(Duration::ZERO));
    pace.held_up(SLOW, NOW);
    assert!(!pace.is_quick(NOW + 100 * PAUSE), "swapped out");
}

#[test]
fn a_slow_device_is_trusted_again_after_a_while_and_with_proof() {
    let pace = ReadPace::default();
    proves_itself(&pace);
    pace.held_up(SLOW, NOW);
    proves_itself(&pace);
    assert!(!pace.is_quick(NOW + PAUSE / 2), "too soon");
    assert!(pace.is_quick(NOW + PAUSE));
    pace.took(SLOW);
    assert!(!pace.is_quick(NOW + PAUSE), "slow again");
    assert!(!pace.is_quick(NOW + 100 * PAUSE), "without proof");
    proves_itself(&pace);
    assert!(pace.is_quick(NOW + PAUSE));
}

#[test]
fn work_is_no_waiting_however_long_it_takes() {
    let long = 5 * QUICK_MAX;
    let work = || {
        let started = Instant::now();
        while started.elapsed() < long {
            std::hint::spin_loop();
        }
    };
    assert_eq!(waited(work).1, Duration::ZERO);
    let (_sender, receiver) = std::sync::mpsc::channel::<()>();
    let (ended, waited) = waited(|| receiver.recv_timeout(long));
    assert!(ended.is_err() && waited >= long, "{waited:?}");
}

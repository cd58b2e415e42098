use super::*;

const QUICK: Duration = Duration::from_micros(50);
const DOUBTFUL: Duration = Duration::from_millis(3);
const SLOW: Duration = Duration::from_millis(100);
const NOW: Duration = Duration::from_secs(9);

fn proves_itself(pace: &Pace) {
    for _ in 0..PROOF_READS {
        pace.took(QUICK);
    }
}

#[test]
fn a_device_is_trusted_until_it_is_slow() {
    let pace = Pace::default();
    assert!(pace.is_quick(NOW));
    pace.held_up(QUICK, NOW);
    assert!(pace.is_quick(NOW));
    pace.held_up(SLOW, NOW);
    assert!(!pace.is_quick(NOW));
}

#[test]
fn one_doubtful_read_among_many_quick_ones_is_an_accident() {
    let pace = Pace::default();
    for _ in 0..3 {
        pace.held_up(DOUBTFUL, NOW);
        assert!(pace.is_quick(NOW));
        for _ in 0..DOUBT_READS {
            pace.held_up(QUICK, NOW);
        }
    }
    pace.held_up(DOUBTFUL, NOW);
    pace.held_up(QUICK, NOW);
    assert!(pace.is_quick(NOW));
    pace.held_up(DOUBTFUL, NOW);
    assert!(!pace.is_quick(NOW));
}

#[test]
fn a_slow_device_is_trusted_again_after_a_while_and_with_proof() {
    let pace = Pace::default();
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

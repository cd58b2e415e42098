//! The crossover search on made-up figures.

use super::*;

const KIB: u64 = 1024;
const SIZES: [u64; 6] = [KIB, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, 1024 * KIB];
const ROUNDS: usize = 50;

fn exact(cost: f64) -> Estimate {
    Estimate { median: cost, low: cost * 0.99, high: cost * 1.01, drift: 0.0, samples: ROUNDS }
}

/// User space costs 1 everywhere; the kernel costs these, by both of its paths.
fn rows(kernel: [f64; 6]) -> Vec<CostRow> {
    let row = |(bytes, cost)| CostRow {
        body_bytes: bytes,
        user: exact(1.0),
        kernel_write: Some(exact(cost)),
        kernel_sendfile: Some(exact(cost)),
    };
    SIZES.into_iter().zip(kernel).map(row).collect()
}

fn verdict(kernel: [f64; 6]) -> CrossoverVerdict {
    find(&rows(kernel), ROUNDS, 0)
}

#[test]
fn crossover_is_where_the_kernel_starts_to_win_for_good() {
    assert_eq!(verdict([1.4, 1.2, 1.1, 0.9, 0.7, 0.6]), CrossoverVerdict::From(64 * KIB));
}

#[test]
fn passing_win_at_a_small_size_does_not_count() {
    assert_eq!(verdict([0.9, 1.2, 1.1, 1.1, 0.7, 0.6]), CrossoverVerdict::From(256 * KIB));
}

#[test]
fn overlapping_intervals_are_no_win() {
    assert_eq!(verdict([1.4, 1.2, 1.1, 0.985, 0.7, 0.6]), CrossoverVerdict::From(256 * KIB));
}

#[test]
fn kernel_that_always_wins_crosses_at_the_smallest_size() {
    assert_eq!(verdict([0.9; 6]), CrossoverVerdict::From(KIB));
}

#[test]
fn kernel_that_loses_at_the_largest_size_never_wins() {
    assert_eq!(verdict([0.5, 0.5, 0.5, 0.5, 0.5, 1.1]), CrossoverVerdict::Never);
    assert_eq!(verdict([1.1; 6]), CrossoverVerdict::Never);
}

#[test]
fn a_draw_at_the_largest_size_decides_nothing() {
    assert_eq!(verdict([1.4, 1.2, 1.1, 0.9, 0.7, 0.985]), CrossoverVerdict::Undecided);
    assert_eq!(verdict([1.4, 1.2, 1.1, 0.9, 0.7, 1.015]), CrossoverVerdict::Undecided);
    assert_eq!(verdict([1.0; 6]), CrossoverVerdict::Undecided);
}

#[test]
fn hot_files_are_judged_by_kernel_write_and_others_by_sendfile() {
    let mut rows = rows([1.5; 6]);
    for row in &mut rows {
        row.kernel_write = Some(exact(0.8));
    }
    assert_eq!(find(&rows, ROUNDS, 0), CrossoverVerdict::Never);
    assert_eq!(find(&rows, ROUNDS, 1024 * KIB), CrossoverVerdict::From(KIB));

    for row in rows.iter_mut().filter(|row| row.body_bytes > 16 * KIB) {
        row.kernel_sendfile = Some(exact(0.8));
        row.kernel_write = Some(exact(1.5));
    }
    assert_eq!(find(&rows, ROUNDS, 16 * KIB), CrossoverVerdict::From(KIB));
}

#[test]
fn one_noisy_row_is_borne() {
    let mut rows = rows([1.4, 1.2, 1.1, 0.9, 0.7, 0.6]);
    rows[0].user.drift = 0.3;
    assert_eq!(find(&rows, ROUNDS, 0), CrossoverVerdict::From(64 * KIB));
}

#[test]
fn noisy_machine_gets_no_crossover() {
    let mut rows = rows([1.4, 1.2, 1.1, 0.9, 0.7, 0.6]);
    for row in rows.iter_mut().take(3) {
        row.user.drift = 0.3;
    }
    let expected = CrossoverVerdict::TooNoisy { body_bytes: SIZES[..3].to_vec() };
    assert_eq!(find(&rows, ROUNDS, 0), expected);
}

#[test]
fn noise_where_it_would_decide_is_not_taken_for_a_loss() {
    let mut rows = rows([1.4, 1.2, 1.1, 0.9, 0.7, 0.6]);
    rows[5].user.low = 0.5;
    assert_eq!(find(&rows, ROUNDS, 0), CrossoverVerdict::TooNoisy { body_bytes: vec![1024 * KIB] });
}

#[test]
fn wide_interval_and_drift_of_any_path_are_noise() {
    let mut row = rows([1.0; 6])[0];
    assert!(!row.is_noisy());
    row.kernel_sendfile = Some(Estimate { high: 1.2, ..exact(1.0) });
    assert!(row.is_noisy());
    row.kernel_sendfile = Some(Estimate { drift: 0.11, ..exact(1.0) });
    assert!(row.is_noisy());
}

#[test]
fn too_few_rounds_say_nothing() {
    assert_eq!(find(&rows([0.5; 6]), 7, 0), CrossoverVerdict::TooShort);
    assert_eq!(find(&[], 0, 0), CrossoverVerdict::TooShort);
}

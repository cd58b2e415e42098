//! A whole run, short, on whatever kernel there is.

use std::env::temp_dir;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use super::*;

#[test]
fn short_run_ends_in_time_with_a_row_for_each_size() {
    let steps = AtomicUsize::new(0);
    let start = Instant::now();
    let step = |_, _| _ = steps.fetch_add(1, Relaxed);
    let calibration = run(Duration::from_secs(1), &temp_dir(), &step).expect("a calibration");

    assert!(steps.into_inner() > 0);
    // One round more than planned, on a machine that is busy with other tests.
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    if calibration.rounds > 0 {
        assert_eq!(calibration.rows.len(), rounds::BODY_BYTES.len());
        assert!(calibration.rows.iter().all(|row| row.user.median > 0.0));
    }
    let has_kernel = calibration.kernel_refusal.is_none();
    assert_eq!(has_kernel, calibration.verdict != CrossoverVerdict::NoKernelTls);
    assert_eq!(has_kernel, calibration.rows.iter().any(|row| row.kernel_write.is_some()));
}

#[test]
fn missing_directory_is_named() {
    let directory = Path::new("/nonexistent/kettle");
    let error = run(Duration::from_secs(1), directory, &|_, _| {}).expect_err("no directory");
    assert!(error.contains("cannot make the file to send in /nonexistent/kettle"), "{error}");
}

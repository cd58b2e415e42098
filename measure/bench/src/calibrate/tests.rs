//! A whole run, short, on whatever kernel there is.

use std::time::Instant;

use super::*;

#[test]
fn short_run_ends_in_time_with_a_row_for_each_size() {
    let options = CalibrateOptions { time: Duration::from_secs(1), ..CalibrateOptions::default() };
    let mut steps = Vec::new();
    let start = Instant::now();
    let calibration = run(&options, &mut |step| steps.push(step)).expect("a calibration");

    assert!(!steps.is_empty());
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
    let options = CalibrateOptions {
        directory: PathBuf::from("/nonexistent/kettle"),
        ..CalibrateOptions::default()
    };
    let error = run(&options, &mut |_| {}).expect_err("no directory");
    assert!(error.contains("cannot make the file to send in /nonexistent/kettle"), "{error}");
}

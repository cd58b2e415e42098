//! The output for people and programs.

use std::time::Duration;

use super::*;

fn exact(seconds: f64) -> Estimate {
    Estimate {
        median: seconds,
        low: seconds * 0.99,
        high: seconds * 1.01,
        drift: 0.01,
        samples: 60,
    }
}

fn calibration(verdict: CrossoverVerdict) -> Calibration {
    let row = |body_bytes, user, write, sendfile| CostRow {
        body_bytes,
        user: exact(user),
        kernel_write: Some(exact(write)),
        kernel_sendfile: Some(exact(sendfile)),
    };
    Calibration {
        kernel_release: "6.12.117+deb12-cloud-amd64".to_owned(),
        kernel_refusal: None,
        switch_cost: Some(Duration::from_micros(21)),
        rounds: 118,
        elapsed: Duration::from_secs(15),
        rows: vec![
            row(1024, 4.2e-6, 5.9e-6, 8.1e-6),
            row(1 << 20, 1_234.5e-6, 900.0e-6, 650.0e-6),
            row(4 << 20, 123_456.7e-6, 99_999.9e-6, 88_888.8e-6),
        ],
        verdict,
    }
}

fn without_kernel() -> Calibration {
    let mut calibration = calibration(CrossoverVerdict::NoKernelTls);
    for row in &mut calibration.rows {
        (row.kernel_write, row.kernel_sendfile) = (None, None);
    }
    calibration.switch_cost = None;
    let step = kettle_kernel::ktls::KtlsStep::Attach;
    let refusal =
        kettle_kernel::ktls::KtlsError { step, error: std::io::Error::from_raw_os_error(ENOENT) };
    calibration.kernel_refusal = Some(refusal.in_words());
    calibration
}

#[test]
fn crossover_ends_in_the_line_for_the_configuration() {
    let text = calibration(CrossoverVerdict::From(65_536)).render();
    assert!(text.ends_with("\n\n    crossover = \"64 KiB\"\n"), "{text}");
    assert!(text.contains("From 64 KiB on"), "{text}");
    assert!(text.contains("costs 21 µs once"), "{text}");
}

#[test]
fn table_compares_the_path_the_server_would_take() {
    let text = calibration(CrossoverVerdict::From(65_536)).render();
    let line = |size: &str| {
        let found = text.lines().find(|line| line.trim_start().starts_with(size));
        found.expect("a line").to_owned()
    };
    // 1 KiB is hot and written: 5.9 / 4.2. 1 MiB goes by sendfile: 650 / 1234.5.
    assert!(line("1 KiB").ends_with("1.40×"), "{text}");
    assert!(line("1 MiB").ends_with("0.53×"), "{text}");
}

#[test]
fn kernel_that_never_wins_is_turned_off() {
    assert_eq!(
        calibration(CrossoverVerdict::Never).config_line().as_deref(),
        Some("path = \"user\"")
    );
}

#[test]
fn doubtful_figures_give_no_line() {
    let noisy = CrossoverVerdict::TooNoisy { body_bytes: vec![1024] };
    for verdict in [noisy, CrossoverVerdict::TooShort, CrossoverVerdict::Undecided] {
        let calibration = calibration(verdict);
        assert_eq!(calibration.config_line(), None);
        assert!(!calibration.render().contains("crossover ="));
    }
}

#[test]
fn noisy_rows_are_marked_and_explained() {
    let mut calibration = calibration(CrossoverVerdict::From(65_536));
    assert!(!calibration.render().contains('?'));
    calibration.rows[1].user.drift = 0.5;
    let text = calibration.render();
    assert_eq!(text.lines().filter(|line| line.ends_with(" ?")).count(), 1, "{text}");
    assert!(text.contains("A ? marks"), "{text}");
}

#[test]
fn without_kernel_tls_the_reason_and_the_user_figures_stay() {
    let text = without_kernel().render();
    let words: Vec<_> = text.split_whitespace().collect();
    assert!(words.join(" ").contains("not measured: this kernel has no kTLS"), "{text}");
    assert!(!text.contains("ulp_missing") && !text.contains("os error"), "{text}");
    assert!(text.contains("kettle doctor"), "{text}");
    assert!(text.contains("1234.5"), "{text}");
    assert!(!text.contains("kernel-write") && !text.contains("crossover ="), "{text}");
}

#[test]
fn every_line_fits_80_columns() {
    let mut noisy = calibration(CrossoverVerdict::TooNoisy { body_bytes: vec![1024] });
    noisy.rows[2].user.low = 0.0;
    let [never, undecided] =
        [CrossoverVerdict::Never, CrossoverVerdict::Undecided].map(calibration);
    for calibration in [never, undecided, noisy, without_kernel()] {
        for line in calibration.render().lines() {
            assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
        }
    }
}

#[test]
fn json_holds_the_verdict_and_every_figure() {
    let json = calibration(CrossoverVerdict::From(65_536)).to_json();
    assert_eq!(json["verdict"], "from");
    assert_eq!(json["crossover_bytes"], 65_536);
    assert_eq!(json["rows"][0]["kernel_write"]["median"], 5.9e-6);
    assert_eq!(json["rows"].as_array().map(Vec::len), Some(3));

    let json = without_kernel().to_json();
    assert_eq!(json["verdict"], "no_kernel_tls");
    assert!(json["crossover_bytes"].is_null() && json["rows"][0]["kernel_write"].is_null());
}

#[test]
fn sizes_are_written_as_the_configuration_takes_them() {
    assert_eq!(size(1024), "1 KiB");
    assert_eq!(size(512 << 10), "512 KiB");
    assert_eq!(size(4 << 20), "4 MiB");
    assert_eq!(size(1500), "1500");
}

/// The answer of a kernel without kTLS.
const ENOENT: i32 = 2;

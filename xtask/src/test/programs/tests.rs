use super::*;

#[test]
fn the_guests_program_names_have_no_hash() {
    assert_eq!(short_name(Path::new("/t/deps/kettle_kernel-0123456789abcdef")), "kettle_kernel");
    assert_eq!(short_name(Path::new("/t/plain")), "plain");
}

#[test]
fn the_kernel_crates_tests_run_before_the_suite() {
    let programs = Programs {
        kernel_tests: "kernel".into(),
        suite: vec!["suite".into()],
        ..Programs::default()
    };
    assert_eq!(programs_for_kernels(&programs), [PathBuf::from("kernel"), PathBuf::from("suite")]);
}

#[test]
fn every_program_runs_even_after_a_failure() {
    let script = RUN_EACH.replace("/kettle/", "");
    let output = Command::new("sh").args(["-c", &script, "false echo", "said"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "said\n");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn results_and_skips_of_a_command_are_counted() {
    let script = "echo 'running 2 tests'; echo 'KETTLE-SKIP a: no kTLS' >>\"$KETTLE_SKIP_LOG\"; \
                  echo 'test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured'";
    let tally = run_command(Command::new("sh").args(["-c", script]), "unit").unwrap();
    assert_eq!(tally.to_string(), "1 passed, 0 failed, 1 skipped");
}

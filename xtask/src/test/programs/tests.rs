use super::*;

#[test]
fn the_guests_program_names_have_no_hash() {
    assert_eq!(short_name(Path::new("/t/deps/kettle_kernel-0123456789abcdef")), "kettle_kernel");
    assert_eq!(short_name(Path::new("/t/plain")), "plain");
}

#[test]
fn every_program_runs_even_after_a_failure() {
    let commands = [vec!["false"], vec!["echo", "it's", "said"]];
    let script = run_each(&commands.map(|words| words.into_iter().map(str::to_owned).collect()));
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "it's said\n");
    assert_eq!(output.status.code(), Some(1));
}

/// A stand-in for a test program.
fn program(folder: &Path, script: &str) -> TestProgram {
    let path = folder.join("program-0123");
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    process::run_quietly(Command::new("chmod").arg("+x").arg(&path)).unwrap();
    TestProgram { path, folder: folder.to_owned(), on_kernels: None }
}

#[test]
fn results_and_skips_of_a_program_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let script = "echo 'running 2 tests'; echo 'KETTLE-SKIP a: no kTLS' >>\"$KETTLE_SKIP_LOG\"; \
                  echo 'test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured'";
    let program = program(folder.path(), script);
    let totals = run_here(&[program], Path::new("kettle"), &[], &mut std::io::sink()).unwrap();
    assert_eq!(totals.to_string(), "1 passed, 0 failed, 1 skipped");
}

#[test]
fn a_program_that_says_nothing_and_fails_is_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let program = program(folder.path(), "exit 101");
    let totals = run_here(&[program], Path::new("kettle"), &[], &mut std::io::sink()).unwrap();
    assert_eq!(totals.failures, ["failed without naming a test"]);
}

#[test]
fn a_guest_whose_kernel_died_runs_all_once_more() {
    for (deaths, runs_expected, unsteady) in [(0, 1, 0), (1, 2, 1), (2, 2, 0)] {
        let mut runs = 0;
        let (report, totals) = survived(|| {
            runs += 1;
            let has_died = runs <= deaths;
            let report = Report {
                status: (!has_died).then_some(0),
                failure: has_died.then(|| "panic".to_owned()),
                has_died,
                complaints: Vec::new(),
                took: Duration::ZERO,
            };
            let mut totals = Totals::default();
            totals.read_line(&format!("test result: ok. {runs} passed; 0 failed; 0 ignored"));
            Ok((report, totals))
        })
        .unwrap();
        assert_eq!((runs, totals.passed, totals.unsteady.len()), (runs_expected, runs, unsteady));
        assert_eq!(report.has_died, deaths == 2);
    }
}

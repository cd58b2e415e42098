use super::*;

fn tally_of(output: &str) -> Totals {
    let mut totals = Totals::default();
    output.lines().for_each(|line| totals.read_line(line));
    totals
}

const GOOD: &str = "
running 3 tests
test a ... ok
test b ... ignored
test c ... ok

test result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
";

const BAD: &str = "
running 2 tests
test module::range ... FAILED
test other ... ok

test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 7 filtered out; finished in 0.00s
";

#[test]
fn the_results_of_several_programs_add_up() {
    let mut totals = tally_of(&format!("{GOOD}{BAD}"));
    totals.close(false);
    assert_eq!(totals.to_string(), "3 passed, 1 failed, 1 skipped");
    assert_eq!(totals.failures, ["module::range"]);
}

#[test]
fn a_program_that_died_is_a_failure() {
    let mut totals = tally_of(&format!("{GOOD}running 9 tests\ntest a ... ok\n"));
    totals.close(false);
    assert_eq!(totals.to_string(), "2 passed, 1 failed, 1 skipped");
}

#[test]
fn a_bad_exit_without_a_failed_test_is_a_failure() {
    let mut totals = tally_of(GOOD);
    totals.close(false);
    assert_eq!(totals.failed, 1);
    let mut totals = tally_of(GOOD);
    totals.close(true);
    assert_eq!(totals.failed, 0);
}

#[test]
fn skipped_tests_leave_the_passed_ones() {
    let mut totals = tally_of(GOOD);
    totals.read_skip_log(
        "KETTLE-SKIP a: no kTLS in this kernel\nnoise\nKETTLE-SKIP c: no kTLS in this kernel\n",
    );
    assert_eq!(totals.to_string(), "0 passed, 0 failed, 3 skipped");
    assert_eq!(totals.skip_reasons.get("no kTLS in this kernel"), Some(&2));
}

#[test]
fn what_a_test_prints_is_not_counted() {
    let totals = tally_of("running late\nrunning 3 horses\nthe test result: 9 passed\n");
    assert_eq!(totals, Totals::default());
}

#[test]
fn stages_add_up_with_their_failures_and_reasons() {
    let mut total = tally_of(GOOD);
    let mut stage = tally_of(BAD);
    stage.read_skip_log("KETTLE-SKIP other: no IPv6\n");
    total.add("Linux 7", stage);
    assert_eq!(total.to_string(), "2 passed, 1 failed, 2 skipped");
    assert_eq!(total.failures, ["Linux 7: module::range"]);
    assert_eq!(total.skip_reasons.len(), 1);
}

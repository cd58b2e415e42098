use super::*;

fn parse(line: &str) -> Result<Choice, String> {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    Choice::parse(&words)
}

#[test]
fn without_arguments_everything_runs_on_every_kernel() {
    let choice = parse("").unwrap();
    for part in [Part::Unit, Part::EndToEnd, Part::Guests] {
        assert!(choice.includes(part));
    }
    assert_eq!((choice.kernels, choice.scope), (Kernel::ALL.to_vec(), Scope::Everything));
}

#[test]
fn what_measures_can_be_left_out_of_each_part() {
    for line in ["--without measure", "--only unit --without measure", "--without measure -- range"]
    {
        assert_eq!(parse(line).unwrap().scope, Scope::Server, "{line}");
    }
}

#[test]
fn one_part_on_one_kernel_with_a_filter() {
    let choice = parse("--only vm --kernel 6.12 -- range --nocapture").unwrap();
    assert!(choice.includes(Part::Guests) && !choice.includes(Part::Unit));
    assert_eq!(choice.kernels, [Kernel::Linux6_12]);
    assert_eq!(choice.filter, ["range", "--nocapture"]);
}

#[test]
fn unknown_words_are_refused_with_the_usage() {
    for line in ["--only", "--only nothing", "quick", "--kernel", "--without", "--without http"] {
        assert!(parse(line).is_err_and(|error| error.contains("cargo xtask test")), "{line}");
    }
    assert!(parse("--kernel 5.4").is_err_and(|error| error.contains("5.4")));
}

#[test]
fn a_failing_stage_does_not_stop_the_next_ones() {
    let mut session = Session::default();
    session.stage("first", || Err("broken".into()));
    session.stage("second", || Ok(Totals::default()));
    assert_eq!(session.summary.len(), 2);
    session.took[0].1 = Cost { seconds: 0.6, processor_seconds: 0.0 };
    session.took[1].1 = Cost { seconds: 61.2, processor_seconds: 92.7 };
    assert_eq!(session.took(), "took: first 1 s; second 61 s × 1.5; all 62 s × 1.5");
    assert_eq!(session.total.to_string(), "0 passed, 1 failed, 0 skipped");
    assert_eq!(session.finish(), ExitCode::FAILURE);
}

#[test]
fn a_few_failed_tests_get_a_second_look_alone() {
    let totals = |lines: &[&str]| {
        let mut totals = Totals::default();
        lines.iter().for_each(|line| totals.read_line(line));
        totals
    };
    let among_others =
        ["test slow ... FAILED", "test result: FAILED. 2 passed; 1 failed; 0 ignored"];
    let run = |alone: &'static str| {
        let stage = Stage::new("suite", move |filter, _| match filter {
            [word] if word == "all" => Ok(totals(&among_others)),
            words => {
                assert_eq!(words, ["--exact", "--test-threads=1", "slow"]);
                Ok(totals(&[alone]))
            }
        });
        let mut session = Session::default();
        session.side_by_side(&[vec![stage]], &["all".to_owned()]);
        session.total
    };
    let passed = run("test result: ok. 1 passed; 0 failed; 0 ignored");
    assert_eq!(
        (passed.to_string().as_str(), passed.unsteady.join(";").as_str()),
        ("3 passed, 0 failed, 0 skipped", "suite: slow failed among the others and passed alone")
    );
    for alone in [
        "test result: FAILED. 0 passed; 1 failed; 0 ignored",
        "test result: ok. 0 passed; 0 failed; 0 ignored",
    ] {
        assert_eq!(run(alone).to_string(), "2 passed, 1 failed, 0 skipped");
    }
}

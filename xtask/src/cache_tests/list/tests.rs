use super::*;

fn cases(lines: &[&str]) -> Vec<Case> {
    lines.iter().filter_map(|line| Case::parse(line)).collect()
}

#[test]
fn what_differs_from_the_list_is_named() {
    let failing = Failing::parse("# not done\na\nb\n\n# too old\nc\n").unwrap();
    let ran = cases(&[
        "fail\trequired\ta\tResponse 2 comes from cache",
        "pass\tcheck\tb",
        "fail\toptimal\td\twhy",
        "a line of something else",
    ]);
    assert_eq!(failing.surprises(&ran), ["b", "d"]);
    assert_eq!(failing.report(&ran, false), 2);
    // `c` is no case of this suite.
    assert_eq!(failing.report(&ran, true), 3);
}

#[test]
fn each_case_of_the_list_stands_once_below_a_reason() {
    assert!(Failing::parse("a\n# too late\n").is_err());
    assert!(Failing::parse("# reason\na\n# another\na\n").is_err());
    assert!(Failing::parse(super::super::FAILING).is_ok());
}

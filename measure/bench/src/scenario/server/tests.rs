use super::*;
use crate::scenario::implausible::tests::closed;

fn line(name: &str, version: &str) -> SubjectLine {
    SubjectLine {
        scenario: "web-sizes".to_owned(),
        name: name.to_owned(),
        version: version.to_owned(),
        ..SubjectLine::default()
    }
}

#[test]
fn another_version_of_a_server_may_not_go_on() {
    let earlier = [line("nginx user", "nginx 1.22.1"), line("kettle auto", "kettle 0.1.0 (a)")];
    assert_eq!(same_server(&[], &earlier[0]), Ok(()));
    assert_eq!(same_server(&earlier, &earlier[1]), Ok(()));
    assert_eq!(same_server(&earlier, &line("kettle user", "kettle 0.1.0 (b)")), Ok(()));
    let elsewhere = SubjectLine { scenario: "ciphers".to_owned(), ..line("nginx user", "1.30") };
    assert_eq!(same_server(&earlier, &elsewhere), Ok(()));
    let refused = same_server(&earlier, &line("kettle auto", "kettle 0.1.0 (b)")).unwrap_err();
    assert!(refused.starts_with("kettle auto is kettle 0.1.0 (b) and was kettle 0.1.0 (a); "));
}

#[test]
fn another_configuration_of_a_server_may_not_go_on() {
    let made_from = |sha256: &str| SubjectLine {
        template_sha256: Some(sha256.to_owned()),
        ..line("nginx user", "nginx 1.22.1")
    };
    let earlier = [made_from("0f")];
    assert_eq!(same_server(&earlier, &made_from("0f")), Ok(()));
    let refused = same_server(&earlier, &made_from("1e")).unwrap_err();
    assert!(refused.starts_with("nginx user has another configuration than before; begin"));
    // Results of a program that did not write it down.
    let old = [line("nginx user", "nginx 1.22.1")];
    assert_eq!(same_server(&old, &made_from("1e")), Ok(()));
}

#[test]
fn the_window_is_the_time_that_the_client_counts() {
    let system = SystemUnderTest::of(&[std::process::id()]);
    let load = Load { warm_up: WARM_UP, end: End::After(WARM_UP * 3), ..closed(1) };
    let mut window = Window::default();
    let mut first = None;
    let mut last = None;
    // As far as half a second apart, and once more behind the end.
    for half_seconds in [0, 1, 2, 3, 4] {
        let elapsed = WARM_UP * half_seconds;
        window.look(&Progress { elapsed, ..Progress::default() }, &load, &system);
        first = first.or(window.first.is_some().then_some(half_seconds));
        last = last.or(window.last.is_some().then_some(half_seconds));
    }
    assert_eq!((first, last), (Some(1), Some(3)));
}

#[test]
fn a_window_that_missed_the_end_of_the_warm_up_says_so() {
    let system = SystemUnderTest::of(&[std::process::id()]);
    let load = Load { warm_up: WARM_UP, ..closed(1) };
    let at = |elapsed| Progress { elapsed, ..Progress::default() };
    let mut window = Window::default();
    window.look(&at(WARM_UP / 2), &load, &system);
    assert_eq!(window.misses_warm_up(&load), Some(WARM_UP_COUNTED));
    // Near the end it is too late: everything was served with what is left.
    window.look(&at(load.end.at_most()), &load, &system);
    assert_eq!(window.misses_warm_up(&load), Some(WARM_UP_COUNTED));
    window.look(&at(WARM_UP), &load, &system);
    assert_eq!(window.misses_warm_up(&load), None);
    assert_eq!(Window::default().misses_warm_up(&closed(1)), None, "there is no warm-up");
}

use super::*;
use crate::scenario::implausible::tests::closed;

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

//! The plan by tables, and by whole lives of certificates drawn by lot.

use std::sync::LazyLock;
use std::time::UNIX_EPOCH;

use proptest::prelude::*;

use super::*;

mod bounds;

const CA: &str = "https://ca.example/dir";
const OTHER: &str = "https://other.example/dir";
const KEY: &str = "EcdsaP256";

static NAMES: LazyLock<Vec<String>> =
    LazyLock::new(|| vec!["a.example".to_owned(), "b.example".to_owned()]);

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_800_000_000 + seconds)
}

fn authority(directory: &str) -> AuthorityWish<'_> {
    AuthorityWish { directory, has_test_directory: false, validations_per_hour: 4, free_from: None }
}

fn wish<'a>(directories: &[&'a str]) -> SiteWish<'a> {
    wish_of(directories.iter().map(|it| authority(it)).collect())
}

fn wish_of(authorities: Vec<AuthorityWish<'_>>) -> SiteWish<'_> {
    SiteWish { authorities, names: &NAMES, key: KEY }
}

fn purpose() -> Purpose {
    Purpose { names: NAMES.to_vec(), key: KEY.to_owned() }
}

fn installed(from: u64, lifetime: u64) -> Installed {
    Installed {
        not_before: at(from),
        not_after: at(from + lifetime),
        identifier: Some(format!("aki.{from}")),
        directory: CA.to_owned(),
        lacks: Vec::new(),
        key: KEY.to_owned(),
    }
}

fn standing(installed: Installed) -> Standing {
    Standing { installed: Some(installed), ..Standing::default() }
}

/// The same after its authority was asked for a window and had none.
fn without_window(installed: Installed, now: SystemTime) -> Standing {
    let mut standing = standing(installed);
    let identifier = standing.installed.as_ref().unwrap().identifier.clone().unwrap();
    standing.asked(&identifier, None, None, now, 0);
    standing
}

fn begins(step: &Step) -> bool {
    matches!(step, Step::Begin { .. })
}

const DAY: u64 = 86_400;

#[test]
fn a_site_without_a_certificate_orders_one_at_once() {
    let step = next(&wish(&[CA]), &Standing::default(), at(0));
    assert_eq!(step, Step::Begin { authority: 0, replaces: None, is_rehearsal: false });
}

#[test]
fn a_long_certificate_is_renewed_after_two_thirds_and_a_short_one_after_half_of_its_life() {
    for (lifetime, due) in [(90 * DAY, 60 * DAY), (6 * DAY, 3 * DAY), (240, 120)] {
        let standing = without_window(installed(0, lifetime), at(due - 1));
        let step = next(&wish(&[CA]), &standing, at(due - 1));
        assert_eq!(step, Step::Rest { until: at(due) }, "{lifetime}");
        assert!(begins(&next(&wish(&[CA]), &standing, at(due))), "{lifetime}");
    }
}

#[test]
fn a_renewal_says_which_certificate_it_replaces_and_to_nobody_else() {
    let standing = without_window(installed(0, 90 * DAY), at(0));
    let step = next(&wish(&[CA]), &standing, at(60 * DAY));
    let replaces = Some("aki.0".to_owned());
    assert_eq!(step, Step::Begin { authority: 0, replaces, is_rehearsal: false });
    let step = next(&wish(&[OTHER]), &standing, at(0));
    assert_eq!(step, Step::Begin { authority: 0, replaces: None, is_rehearsal: false });
    let refused = Standing { not_replaceable: Some("aki.0".to_owned()), ..standing };
    let step = next(&wish(&[CA]), &refused, at(60 * DAY));
    assert_eq!(step, Step::Begin { authority: 0, replaces: None, is_rehearsal: false });
}

#[test]
fn other_names_another_key_and_another_authority_are_ordered_at_once() {
    let lacks = Installed { lacks: vec![NAMES[1].clone()], ..installed(0, 90 * DAY) };
    assert!(begins(&next(&wish(&[CA]), &standing(lacks), at(0))));
    let other = Installed { key: "Rsa".to_owned(), ..installed(0, 90 * DAY) };
    assert!(begins(&next(&wish(&[CA]), &standing(other), at(0))));
    assert!(begins(&next(&wish(&[OTHER]), &standing(installed(0, 90 * DAY)), at(0))));
    let asked_for = Standing { is_asked_for: true, ..standing(installed(0, 90 * DAY)) };
    assert!(begins(&next(&wish(&[CA]), &asked_for, at(0))));
}

#[test]
fn the_window_is_asked_for_first_and_its_moment_is_kept_until_it_changes() {
    let mut standing = standing(installed(0, 90 * DAY));
    let ask = Step::AskWindow { directory: CA.to_owned(), certificate: "aki.0".to_owned() };
    assert_eq!(next(&wish(&[CA]), &standing, at(0)), ask);
    let window = Some((at(10 * DAY), at(20 * DAY)));
    let hour = Duration::from_hours(1);
    assert!(standing.asked("aki.0", window, Some(hour), at(0), u64::MAX / 2));
    let moment = standing.window.clone().unwrap().moment;
    assert!(at(14 * DAY) < moment && moment < at(16 * DAY));
    assert_eq!(next(&wish(&[CA]), &standing, at(1)), Step::Rest { until: at(3_600) });
    assert_eq!(next(&wish(&[CA]), &standing, at(3_600)), ask);
    assert!(!standing.asked("aki.0", window, Some(hour), at(3_600), 0));
    assert_eq!(standing.window.clone().unwrap().moment, moment);
    let past = Some((at(0), at(1)));
    assert!(standing.asked("aki.0", past, Some(hour), at(7_200), 0));
    assert!(begins(&next(&wish(&[CA]), &standing, at(7_200))));
}

#[test]
fn a_window_that_ends_after_the_certificate_is_cut() {
    let mut standing = standing(installed(0, 6 * DAY));
    standing.asked("aki.0", Some((at(5 * DAY), at(9 * DAY))), None, at(0), u64::MAX);
    assert_eq!(standing.window.unwrap().moment, at(5 * DAY));
}

#[test]
fn of_a_window_up_to_the_end_no_moment_is_drawn_that_leaves_no_time() {
    let mut standing = standing(installed(0, 6 * DAY));
    standing.asked("aki.0", Some((at(4 * DAY), at(6 * DAY))), None, at(0), u64::MAX);
    assert_eq!(standing.window.unwrap().moment, at(5 * DAY));
}

#[test]
fn an_authority_is_asked_for_the_window_neither_too_often_nor_too_seldom() {
    for (lifetime, said, expected) in [
        (90 * DAY, Some(1), 3_600),
        (90 * DAY, Some(100 * DAY), DAY),
        (90 * DAY, None, 6 * 3_600),
        (240, Some(1), 2),
    ] {
        let mut standing = standing(installed(0, lifetime));
        standing.asked("aki.0", None, said.map(Duration::from_secs), at(0), 0);
        let asked = standing.window.unwrap().ask_again.duration_since(at(0)).unwrap();
        assert_eq!(asked.as_secs(), expected, "{lifetime} {said:?}");
    }
}

#[test]
fn an_expired_certificate_is_not_asked_about() {
    let standing = standing(installed(0, 10));
    assert!(begins(&next(&wish(&[CA]), &standing, at(100))));
}

#[test]
fn pauses_grow_from_failure_to_failure_and_stay_at_six_hours() {
    let mut standing = Standing::default();
    let mut minutes = Vec::new();
    for _ in 0..10 {
        standing.failed(&wish(&[CA]), (Blame::Authority, Trouble::default()), at(0), u64::MAX / 2);
        let until = standing.failures.wait_until.unwrap();
        minutes.push((until.duration_since(at(0)).unwrap().as_secs() + 30) / 60);
    }
    assert_eq!(minutes, [1, 2, 5, 10, 20, 60, 120, 360, 360, 360]);
}

#[test]
fn what_an_authority_says_counts_as_the_least_but_not_for_the_next_one() {
    let said = at(10 * 3_600);
    let mut standing = Standing::default();
    let failed = |standing: &mut Standing, wish: &SiteWish<'_>| {
        let trouble =
            Trouble { directory: CA.to_owned(), retry_after: Some(said), ..Trouble::default() };
        standing.failed(wish, (Blame::Authority, trouble), at(0), 0);
    };
    failed(&mut standing, &wish(&[CA]));
    assert_eq!(standing.failures.wait_until, Some(said));
    let mut standing = Standing::default();
    for _ in 0..3 {
        failed(&mut standing, &wish(&[CA, OTHER]));
    }
    assert_eq!(standing.failures.authority, 1);
    assert!(standing.failures.wait_until.unwrap() < at(3_600));
    let until = standing.failures.wait_until.unwrap();
    let step = next(&wish(&[CA, OTHER]), &standing, until);
    assert_eq!(step, Step::Begin { authority: 1, replaces: None, is_rehearsal: false });
}

#[test]
fn after_a_failed_validation_it_is_rehearsed_where_that_can_be_done() {
    let rehearsing = wish_of(vec![AuthorityWish { has_test_directory: true, ..authority(CA) }]);
    let mut standing = Standing::default();
    standing.failed(&rehearsing, (Blame::Validation, Trouble::default()), at(0), 0);
    let step = next(&rehearsing, &standing, at(3_600));
    assert_eq!(step, Step::Begin { authority: 0, replaces: None, is_rehearsal: true });
    standing.rehearsed();
    let step = next(&rehearsing, &standing, at(1));
    assert_eq!(step, Step::Begin { authority: 0, replaces: None, is_rehearsal: false });
    let step = next(&wish(&[CA]), &standing, at(3_600));
    assert_eq!(step, Step::Begin { authority: 0, replaces: None, is_rehearsal: false });
}

#[test]
fn an_order_goes_on_unless_it_is_old_or_its_authority_is_gone() {
    let order = OpenOrder {
        url: "https://ca.example/order/1".to_owned(),
        directory: CA.to_owned(),
        names: NAMES.to_vec(),
        key: KEY.to_owned(),
        begun: at(0),
    };
    let standing = Standing { order: Some(order), ..Standing::default() };
    assert_eq!(next(&wish(&[OTHER, CA]), &standing, at(1)), Step::Resume { authority: 1 });
    assert!(begins(&next(&wish(&[CA]), &standing, at(8 * DAY))));
    assert!(begins(&next(&wish(&[OTHER]), &standing, at(1))));
}

#[test]
fn a_clock_that_was_ahead_leaves_no_validation_that_counts_for_ever() {
    let mut standing = Standing::default();
    standing.validates(CA, false, at(1_000 * DAY));
    standing.validates(CA, false, at(0));
    assert_eq!(standing.validations, [(CA.to_owned(), at(0))]);
}

/// The fate of an order at an authority.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Issues,
    Fails(Blame),
    /// Killed in the middle: what was noted stays.
    Killed,
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        3 => Just(Fate::Issues),
        1 => Just(Fate::Fails(Blame::Authority)),
        1 => Just(Fate::Fails(Blame::Validation)),
        1 => Just(Fate::Fails(Blame::Here)),
        1 => Just(Fate::Killed),
    ]
}

proptest! {
    /// A year of a site, whose clock may jump, and whose authority does as it likes.
    #[test]
    fn a_site_never_orders_too_often_and_never_lets_a_certificate_end_while_orders_succeed(
        lifetime in prop_oneof![Just(240_u64), Just(6 * DAY), Just(45 * DAY), Just(90 * DAY)],
        fates in proptest::collection::vec(fate(), 1..200),
        randoms in proptest::collection::vec(any::<u64>(), 200),
        jumps in proptest::collection::vec(prop_oneof![9 => Just(0_u64), 1 => 0..10_000_u64], 200),
    ) {
        // A certificate that is renewed each two minutes needs an authority that allows it.
        let wish =
            wish_of(vec![AuthorityWish { validations_per_hour: 1_000, ..authority(CA) }]);
        let mut standing = Standing::default();
        let mut now = at(0);
        let mut fates = fates.into_iter();
        for (random, jump) in randoms.into_iter().zip(jumps) {
            now += Duration::from_secs(jump);
            let failures = standing.failures.clone();
            match next(&wish, &standing, now) {
                Step::Rest { until } => {
                    prop_assert!(until > now, "it rests until now");
                    if let Some(installed) = &standing.installed
                        && now < installed.not_after && failures.count == 0
                    {
                        prop_assert!(until < installed.not_after, "it sleeps past the end");
                    }
                    now = until;
                }
                Step::AskWindow { certificate, .. } => {
                    standing.asked(&certificate, None, None, now, random);
                }
                Step::TryAlone { name, .. } => prop_assert!(false, "{name} is left out"),
                Step::Begin { .. } | Step::Resume { .. } => {
                    prop_assert!(failures.wait_until.is_none_or(|until| until <= now));
                    standing.validates(CA, false, now);
                    if standing.order.is_none() {
                        standing.begins(CA, now);
                    }
                    let Some(fate) = fates.next() else { break };
                    let is_new = standing.order.is_none();
                    match fate {
                        Fate::Issues => {
                            let from = now.duration_since(at(0)).unwrap().as_secs();
                            standing.succeeded(installed(from, lifetime), purpose(), now);
                            prop_assert!(standing.order.is_none());
                        }
                        Fate::Fails(blame) => {
                            standing.order = None;
                            standing.failed(&wish, (blame, Trouble::default()), now, random);
                        }
                        Fate::Killed => {
                            let begun = if is_new { now } else { standing.order.clone().unwrap().begun };
                            standing.order = Some(OpenOrder {
                                url: "u".to_owned(), directory: CA.to_owned(), names: vec![],
                                key: String::new(), begun,
                            });
                            // The guardian begins again after a minute.
                            now += MINUTE;
                        }
                    }
                }
            }
        }
    }

    /// However often it fails, no more validations are begun in an hour than the authority takes.
    #[test]
    fn validations_of_an_hour_are_bounded(
        randoms in proptest::collection::vec(any::<u64>(), 60),
        most in 1_usize..8,
    ) {
        let wish =
            wish_of(vec![AuthorityWish { validations_per_hour: most, ..authority(CA) }]);
        let mut standing = standing(installed(0, 300));
        let mut now = at(400);
        let mut begun: Vec<SystemTime> = Vec::new();
        for random in randoms {
            match next(&wish, &standing, now) {
                Step::Rest { until } => now = until,
                Step::Begin { .. } => {
                    standing.validates(CA, false, now);
                    begun.retain(|begun| *begun + HOUR > now);
                    begun.push(now);
                    prop_assert!(begun.len() <= most, "{} in an hour", begun.len());
                    standing.failed(&wish, (Blame::Validation, Trouble::default()), now, random);
                }
                step => prop_assert!(false, "{step:?}"),
            }
        }
    }
}

//! The number of orders a site has, whatever its authority, its clock, its configuration and its
//! operator do; and names that do not validate.

use super::super::budget::ORDERS_MAX;
use super::*;

/// Mischief that makes the plan order again and again.
#[derive(Clone, Copy, Debug)]
enum Mischief {
    /// The renewal window is always past.
    PastWindow,
    /// The clock is as far ahead of the authority's.
    ClockAhead(u64),
    /// The certificate never has the names, or the key, that were ordered.
    NeverFits,
    /// It can never be read.
    NeverThere,
    /// An operator renews, and forgets, whenever that can be done.
    Operator,
    /// Another key, or another authority, is configured at each look.
    Configuration,
    /// The authority wants the order to be begun anew each time.
    Void,
}

fn mischief() -> impl Strategy<Value = Mischief> {
    prop_oneof![
        Just(Mischief::PastWindow),
        (0_u64..=89).prop_map(|days| Mischief::ClockAhead(days * DAY)),
        Just(Mischief::NeverFits),
        Just(Mischief::NeverThere),
        Just(Mischief::Operator),
        Just(Mischief::Configuration),
        Just(Mischief::Void),
    ]
}

/// A site of which the orders are counted.
struct Life {
    standing: Standing,
    now: SystemTime,
    begun: Vec<SystemTime>,
}

impl Life {
    /// Does what comes next, and has it go as the mischief says.
    fn step(&mut self, mischief: Mischief, lifetime: u64, random: u64) {
        let wish = match mischief {
            Mischief::Configuration if random.is_multiple_of(2) => {
                SiteWish { key: "Rsa", ..wish(&[CA]) }
            }
            Mischief::Configuration => wish(&[OTHER]),
            _ => wish(&[CA]),
        };
        let wish = SiteWish {
            authorities: wish
                .authorities
                .iter()
                .map(|it| AuthorityWish { validations_per_hour: 1_000, ..*it })
                .collect(),
            ..wish
        };
        let standing = &mut self.standing;
        let now = self.now;
        match next(&wish, standing, now) {
            Step::Rest { until } => self.now = until,
            Step::TryAlone { .. } => unreachable!("no name is left out"),
            Step::AskWindow { certificate, .. } => {
                let hour = Duration::from_hours(1);
                let past = (at(0) - 2 * hour, at(0) - hour);
                let past = matches!(mischief, Mischief::PastWindow).then_some(past);
                standing.asked(&certificate, past, None, now, random);
            }
            Step::Resume { .. } => {
                standing.failed(&wish, (Blame::Void, Trouble::default()), now, random);
                standing.failed(&wish, (Blame::Authority, Trouble::default()), now, random);
            }
            Step::Begin { authority, .. } => {
                let directory = wish.authorities[authority].directory.to_owned();
                standing.begins(&directory, now);
                self.begun.push(now);
                self.issue(mischief, &wish, directory, lifetime);
            }
        }
        if matches!(mischief, Mischief::Operator) {
            self.standing = self.standing.forgotten();
            self.standing.is_asked_for = true;
        }
        // The state that is kept is the state that is read again.
        let installed = self.standing.installed.take();
        let kept = serde_json::to_vec(&self.standing).unwrap();
        self.standing = Standing { installed, ..serde_json::from_slice(&kept).unwrap() };
    }

    fn issue(&mut self, mischief: Mischief, wish: &SiteWish<'_>, directory: String, lifetime: u64) {
        let standing = &mut self.standing;
        let now = self.now;
        let from = now.duration_since(at(0)).unwrap().as_secs();
        let good = Installed { key: wish.key.to_owned(), directory, ..installed(from, lifetime) };
        let ordered = standing.purpose(wish.names, wish.key);
        match mischief {
            Mischief::ClockAhead(ahead) => {
                let ahead = Duration::from_secs(ahead * lifetime / (90 * DAY));
                let from = good.not_before - ahead;
                let to = good.not_after - ahead;
                let early = Installed { not_before: from, not_after: to, ..good };
                standing.succeeded(early, ordered, now);
            }
            Mischief::NeverFits => {
                let lacks = vec![NAMES[0].clone()];
                standing.succeeded(Installed { lacks, ..good }, ordered, now);
            }
            Mischief::NeverThere => {
                standing.succeeded(good, ordered, now);
                standing.installed = None;
            }
            Mischief::Void => {
                standing.order = Some(OpenOrder {
                    url: "u".to_owned(),
                    directory: good.directory,
                    names: NAMES.to_vec(),
                    key: KEY.to_owned(),
                    begun: now,
                });
            }
            _ => standing.succeeded(good, ordered, now),
        }
    }
}

proptest! {
    #[test]
    fn orders_of_a_day_are_bounded_whatever_happens(
        lifetime in prop_oneof![Just(6 * DAY), Just(45 * DAY), Just(90 * DAY)],
        mischiefs in proptest::collection::vec((mischief(), 1_usize..200), 1..4),
        randoms in proptest::collection::vec(any::<u64>(), 600),
    ) {
        let mut life = Life { standing: Standing::default(), now: at(100 * DAY), begun: Vec::new() };
        let mut randoms = randoms.into_iter();
        for (mischief, steps) in mischiefs {
            for random in randoms.by_ref().take(steps) {
                life.step(mischief, lifetime, random);
                let of_day = life.begun.iter().filter(|begun| **begun + 24 * HOUR > life.now);
                prop_assert!(of_day.count() <= ORDERS_MAX, "{mischief:?}: {:?}", life.begun);
            }
        }
    }

    /// Nothing but a mistake of an hour is worth more than a handful of orders in a month.
    #[test]
    fn what_an_order_does_not_mend_is_not_ordered_over_and_over(
        mischief in prop_oneof![
            Just(Mischief::PastWindow),
            Just(Mischief::NeverFits),
            (0_u64..=80).prop_map(|days| Mischief::ClockAhead(days * DAY)),
        ],
        randoms in proptest::collection::vec(any::<u64>(), 400),
    ) {
        let start = at(100 * DAY);
        let mut life = Life { standing: Standing::default(), now: start, begun: Vec::new() };
        for random in randoms {
            life.step(mischief, 90 * DAY, random);
            if life.now > start + 30 * 24 * HOUR {
                break;
            }
        }
        prop_assert!(life.begun.len() <= 7, "{} orders in {:?}", life.begun.len(), life.begun);
    }
}

#[test]
fn a_window_that_stays_past_is_believed_once() {
    let mut life = Life { standing: Standing::default(), now: at(100 * DAY), begun: Vec::new() };
    for random in 0..5_000 {
        life.step(Mischief::PastWindow, 90 * DAY, random);
    }
    let begun = |number: usize| life.begun[number].duration_since(at(100 * DAY)).unwrap().as_secs();
    assert_eq!([begun(0), begun(1), begun(2), begun(3)], [0, 0, 60 * DAY, 120 * DAY]);
}

#[test]
fn an_authority_that_wants_to_be_left_alone_is_so_whatever_the_operator_says() {
    let mut standing = Standing::default();
    let said = Some(at(5 * 3_600));
    let trouble = || Trouble { directory: CA.to_owned(), retry_after: said, ..Trouble::default() };
    standing.failed(&wish(&[CA]), (Blame::Authority, trouble()), at(0), 0);
    let mut renewed = standing.forgotten();
    renewed.is_asked_for = true;
    assert_eq!(next(&wish(&[CA]), &renewed, at(1)), Step::Rest { until: at(5 * 3_600) });
    assert!(begins(&next(&wish(&[OTHER]), &renewed, at(1))));
    assert!(begins(&next(&wish(&[CA]), &renewed, at(5 * 3_600))));
}

/// Fails with this name, and gives the time of the next try.
fn refused(standing: &mut Standing, name: &str, now: SystemTime) -> SystemTime {
    let refused = vec![(name.to_owned(), "no such host".to_owned())];
    let trouble = Trouble { refused, ..Trouble::default() };
    standing.failed(&wish(&[CA]), (Blame::Validation, trouble), now, u64::MAX / 2);
    standing.failures.wait_until.unwrap()
}

/// A site whose second name has failed for so long that it is left out, at that moment.
fn without_second_name() -> (Standing, SystemTime) {
    let mut standing = Standing::default();
    let mut now = at(0);
    while standing.purpose(&NAMES, KEY).names.len() == 2 {
        assert!(now < at(31 * 3_600), "it is left out");
        now = refused(&mut standing, "b.example", now);
    }
    assert!(at(DAY) < now);
    (standing, now)
}

#[test]
fn a_name_that_fails_for_a_day_is_left_out_and_the_others_are_ordered_at_once() {
    let (mut standing, now) = without_second_name();
    assert!(begins(&next(&wish(&[CA]), &standing, now)));
    let ordered = standing.purpose(&NAMES, KEY);
    assert_eq!(ordered.names, ["a.example"]);
    let from = now.duration_since(at(0)).unwrap().as_secs();
    let lacks = vec!["b.example".to_owned()];
    standing.succeeded(Installed { lacks, ..installed(from, 90 * DAY) }, ordered, now);
    standing.asked(&format!("aki.{from}"), None, None, now, 0);
    let alone = Step::TryAlone { authority: 0, name: "b.example".to_owned() };
    // It failed a minute before.
    let hours = |count: u64| now + Duration::from_secs(count * 3_600);
    assert!(
        matches!(next(&wish(&[CA]), &standing, hours(5)), Step::Rest { until } if until < hours(6))
    );
    standing.asked(&format!("aki.{from}"), None, None, hours(6), 0);
    assert_eq!(next(&wish(&[CA]), &standing, hours(6)), alone);
    standing.tried_alone("b.example", Some("no such host"), hours(6));
    assert_eq!(next(&wish(&[CA]), &standing, hours(7)), Step::Rest { until: hours(12) });
    standing.tried_alone("b.example", None, hours(12));
    assert!(begins(&next(&wish(&[CA]), &standing, hours(12))));
    assert_eq!(standing.purpose(&NAMES, KEY), purpose());
}

#[test]
fn a_site_is_never_left_without_any_name() {
    let (mut standing, mut now) = without_second_name();
    for _ in 0..20 {
        now = refused(&mut standing, "a.example", now);
    }
    assert_eq!(standing.purpose(&NAMES, KEY), purpose());
    let validated = vec!["a.example".to_owned()];
    let trouble = Trouble { validated, ..Trouble::default() };
    standing.failed(&wish(&[CA]), (Blame::Validation, trouble), now, 0);
    assert_eq!(standing.purpose(&NAMES, KEY).names, ["a.example"]);
}

#[test]
fn a_name_that_others_say_is_none_of_the_sites_is_not_noted() {
    let mut standing = Standing::default();
    refused(&mut standing, "evil.example", at(0));
    assert_eq!(standing.failing, FailingNames::default());
}

#[test]
fn a_certificate_of_minutes_is_renewed_in_time_for_as_long_as_one_likes() {
    for lifetime in [16, 240, 3_600, 6 * DAY] {
        let mut life = Life { standing: Standing::default(), now: at(0), begun: Vec::new() };
        for random in 0..500 {
            life.step(Mischief::ClockAhead(0), lifetime, random);
            let installed = life.standing.installed.as_ref();
            assert!(installed.is_none_or(|it| life.now < it.not_after), "{lifetime}");
        }
        assert!(life.begun.len() > 15, "{lifetime}: {}", life.begun.len());
    }
}

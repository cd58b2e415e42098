//! What to do next for one site's certificate, and when: from what is known of it, the clock and a random number, all of which come in.
//!
//! Nothing here asks or writes anything. What came of a step is put into the [`Standing`] by its methods.

#[cfg(test)]
mod tests;

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

/// What a configuration wants of a certificate, as far as the next step depends on it.
#[derive(Clone, Debug)]
pub struct SiteWish<'a> {
    /// The directories of the authorities that may issue it, the first one preferred.
    pub authorities: Vec<AuthorityWish<'a>>,
}

/// What is to be known of an authority before it is asked.
#[derive(Clone, Copy, Debug)]
pub struct AuthorityWish<'a> {
    /// The URL of its directory.
    pub directory: &'a str,
    /// True if there is another one beside it for rehearsals.
    pub has_test_directory: bool,
    /// Validations of a name that are begun in an hour at most.
    pub validations_per_hour: usize,
    /// True if an order can be sent now; else from when on.
    pub free_from: Option<SystemTime>,
}

/// What is known of one site's certificate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Standing {
    /// The certificate that is there. It is read from its folder and kept nowhere else.
    #[serde(skip)]
    pub installed: Option<Installed>,
    /// The order that has been begun.
    pub order: Option<OpenOrder>,
    /// When the authority wants the certificate to be renewed.
    pub window: Option<RenewalWindow>,
    /// What went wrong since the last success.
    pub failures: Failures,
    /// The orders of the last hour that had to validate names, with their authorities.
    pub validations: Vec<(String, SystemTime)>,
    /// True if the operator wants a new one now.
    pub is_asked_for: bool,
    /// True if the key is not to be used again, because its certificate was revoked.
    pub is_key_void: bool,
    /// The identifier of a certificate of which an authority did not take that it is replaced.
    pub not_replaceable: Option<String>,
}

/// A certificate that is there.
#[derive(Clone, Debug, PartialEq)]
pub struct Installed {
    /// The first moment of its validity.
    pub not_before: SystemTime,
    /// The last one.
    pub not_after: SystemTime,
    /// The identifier by which its authority knows it, if it has one; else nothing that could be asked about.
    pub identifier: Option<String>,
    /// The directory of the authority that issued it.
    pub directory: String,
    /// True if it has all names that the site has, and its kind of key.
    pub fits: bool,
}

/// An order at an authority.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenOrder {
    /// Its URL.
    pub url: String,
    /// The directory of its authority.
    pub directory: String,
    /// The names that it is for.
    pub names: Vec<String>,
    /// When it was begun.
    pub begun: SystemTime,
}

/// When an authority wants a certificate to be renewed (RFC 9773).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RenewalWindow {
    /// The identifier of the certificate.
    pub certificate: String,
    /// Its first moment.
    pub start: SystemTime,
    /// Its last.
    pub end: SystemTime,
    /// The moment in it that was drawn by lot, once.
    pub moment: SystemTime,
    /// From when on the authority is asked again.
    pub ask_again: SystemTime,
}

/// What went wrong since the last success.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failures {
    /// How often.
    pub count: u32,
    /// How often in turn at the authority that is asked.
    pub in_turn: u32,
    /// Which of the authorities is asked.
    pub authority: usize,
    /// Before this nothing is tried.
    pub wait_until: Option<SystemTime>,
    /// True if the test directory is to be asked first.
    pub is_rehearsing: bool,
    /// How many validations failed: each time another kind of challenge comes first.
    pub validations: u32,
    /// The last reason, as it was told.
    pub reason: Option<String>,
}

/// Why a try led to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The authority cannot be reached, is not well, or wants to be left alone.
    Authority,
    /// A name did not validate.
    Validation,
    /// The order was taken, and what came of it cannot be used; or the authority refuses what it is asked for.
    Result,
    /// Somebody has to do something at the authority's.
    Operator,
    /// The disk.
    Here,
    /// Nobody: an order that was to go on had come to its end meanwhile. The next one begins at once.
    Void,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Nothing before this.
    Rest {
        /// The moment.
        until: SystemTime,
    },
    /// Ask the authority when the certificate is to be renewed.
    AskWindow {
        /// The directory of the authority that issued it.
        directory: String,
        /// The certificate's identifier.
        certificate: String,
    },
    /// Begin an order.
    Begin {
        /// The number of the authority.
        authority: usize,
        /// The identifier of the certificate that it takes the place of.
        replaces: Option<String>,
        /// True if it goes to the test directory, and nothing is taken from it.
        is_rehearsal: bool,
    },
    /// Go on with the order that there is.
    Resume {
        /// The number of its authority.
        authority: usize,
    },
}

/// Says what to do next.
#[must_use]
pub fn next(wish: &SiteWish<'_>, standing: &Standing, now: SystemTime) -> Step {
    if let Some(until) = standing.failures.wait_until.filter(|until| now < *until) {
        return Step::Rest { until };
    }
    if let Some(authority) = standing.order_goes_on(wish, now) {
        return Step::Resume { authority };
    }
    let due = standing.due(wish);
    if now < due {
        return standing.ask_or_rest(wish, due, now);
    }
    let number = standing.failures.authority.checked_rem(wish.authorities.len()).unwrap_or(0);
    let Some(authority) = wish.authorities.get(number) else {
        return Step::Rest { until: now + REST_MAX };
    };
    let is_rehearsal = standing.failures.is_rehearsing && authority.has_test_directory;
    let free_again = standing.validation_free_from(authority, is_rehearsal, now);
    if let Some(until) = free_again.max(authority.free_from.filter(|from| now < *from)) {
        return Step::Rest { until };
    }
    Step::Begin {
        authority: number,
        replaces: standing.replaced(authority.directory, now).filter(|_| !is_rehearsal),
        is_rehearsal,
    }
}

impl Standing {
    /// The number of the authority at which the open order goes on, if it does.
    fn order_goes_on(&self, wish: &SiteWish<'_>, now: SystemTime) -> Option<usize> {
        let order = self.order.as_ref()?;
        let is_old = now.duration_since(order.begun).is_ok_and(|age| age > ORDER_AGE_MAX);
        let its_own = |authority: &AuthorityWish<'_>| authority.directory == order.directory;
        wish.authorities.iter().position(its_own).filter(|_| !is_old)
    }

    /// When there is to be a new certificate.
    #[must_use]
    pub fn due(&self, wish: &SiteWish<'_>) -> SystemTime {
        let at_once = SystemTime::UNIX_EPOCH;
        let Some(installed) = &self.installed else { return at_once };
        let is_wished = |it: &AuthorityWish<'_>| it.directory == installed.directory;
        if self.is_asked_for || !installed.fits || !wish.authorities.iter().any(is_wished) {
            return at_once;
        }
        match self.window_in_force() {
            Some(window) => window.moment,
            None => installed.due_by_lifetime(),
        }
    }

    /// The window of the certificate that is there, and of no other.
    fn window_in_force(&self) -> Option<&RenewalWindow> {
        let identifier = self.installed.as_ref()?.identifier.as_ref()?;
        self.window.as_ref().filter(|window| window.certificate == *identifier)
    }

    fn ask_or_rest(&self, wish: &SiteWish<'_>, due: SystemTime, now: SystemTime) -> Step {
        let rest = |until: SystemTime| Step::Rest { until: until.min(now + REST_MAX) };
        let Some(installed) = self.installed.as_ref().filter(|it| now < it.not_after) else {
            return rest(due);
        };
        let is_its_own = |it: &&AuthorityWish<'_>| it.directory == installed.directory;
        let (Some(certificate), Some(authority)) =
            (&installed.identifier, wish.authorities.iter().find(is_its_own))
        else {
            return rest(due);
        };
        // Of a window that is not known it is asked by what an earlier answer said.
        let known = self.window.as_ref().filter(|window| window.certificate == *certificate);
        let ask_again = known.map_or(SystemTime::UNIX_EPOCH, |window| window.ask_again);
        if now < ask_again {
            return rest(due.min(ask_again));
        }
        Step::AskWindow {
            directory: authority.directory.to_owned(),
            certificate: certificate.clone(),
        }
    }

    /// From when on names may be validated at an authority again; nothing if now.
    fn validation_free_from(
        &self,
        authority: &AuthorityWish<'_>,
        is_rehearsal: bool,
        now: SystemTime,
    ) -> Option<SystemTime> {
        let directory = counted_as(authority.directory, is_rehearsal);
        let begun = self.validations.iter().filter(|(at, _)| *at == directory);
        let mut begun: Vec<SystemTime> = begun.map(|(_, begun)| *begun).collect();
        begun.sort_unstable();
        let counts = begun.len().checked_sub(authority.validations_per_hour.max(1))?;
        let free = *begun.get(counts)? + HOUR;
        (now < free).then_some(free)
    }

    /// The certificate that a new one takes the place of, as its own authority knows it.
    fn replaced(&self, directory: &str, now: SystemTime) -> Option<String> {
        let installed = self.installed.as_ref()?;
        let identifier = installed.identifier.clone()?;
        let is_known = installed.directory == directory && now < installed.not_after;
        let is_refused = self.not_replaceable.as_ref() == Some(&identifier);
        (is_known && !is_refused).then_some(identifier)
    }

    /// Notes that names are about to be validated.
    pub fn validates(&mut self, directory: &str, is_rehearsal: bool, now: SystemTime) {
        // What a clock that was set back has left in the future does not count for ever.
        let is_recent = |begun: &SystemTime| {
            let age = now.duration_since(*begun).unwrap_or_else(|error| error.duration());
            age < HOUR
        };
        self.validations.retain(|(_, begun)| is_recent(begun));
        self.validations.truncate(VALIDATIONS_KEPT_MAX);
        self.validations.push((counted_as(directory, is_rehearsal), now));
    }

    /// Notes that a new certificate is in its place.
    pub fn succeeded(&mut self, installed: Installed) {
        let validations = std::mem::take(&mut self.validations);
        *self = Self { installed: Some(installed), validations, ..Self::default() };
    }

    /// Notes that the certificate is revoked: one with another key comes next, at once.
    pub fn revoked(&mut self) {
        self.failures = Failures::default();
        (self.is_asked_for, self.is_key_void, self.order) = (true, true, None);
    }

    /// Notes that a rehearsal went well: the authority itself comes next, at once.
    pub fn rehearsed(&mut self) {
        self.failures.is_rehearsing = false;
        self.failures.wait_until = None;
    }

    /// Notes that a try led to nothing, and for how long nothing is tried. `retry_after` is what the authority said.
    pub fn failed(
        &mut self,
        wish: &SiteWish<'_>,
        (blame, reason): (Blame, String),
        retry_after: Option<SystemTime>,
        now: SystemTime,
        random: u64,
    ) {
        if blame == Blame::Void {
            self.order = None;
            return;
        }
        let failures = &mut self.failures;
        let step = usize::try_from(failures.count).unwrap_or(usize::MAX);
        let pause = PAUSES.get(step).or(PAUSES.last()).copied().unwrap_or(REST_MAX);
        let pause = match blame {
            Blame::Authority | Blame::Validation | Blame::Here | Blame::Void => pause,
            Blame::Result => pause.max(RESULT_PAUSE),
            Blame::Operator => pause.max(DAY),
        };
        // From four to six fifths of it.
        let pause = pause.mul_f64(0.8 + 0.4 * fraction(random));
        let left = self.installed.as_ref().and_then(|it| it.not_after.duration_since(now).ok());
        // What ends soon is not given up for lack of patience.
        let pause = left.map_or(pause, |left| pause.min((left / 2).max(MINUTE)));
        failures.count = failures.count.saturating_add(1);
        failures.in_turn += 1;
        failures.reason = Some(reason);
        if blame == Blame::Validation {
            failures.validations = failures.validations.saturating_add(1);
            failures.is_rehearsing = true;
        }
        let is_left = failures.in_turn >= TRIES_IN_TURN && wish.authorities.len() > 1;
        let mut until = now + pause;
        if is_left {
            failures.in_turn = 0;
            failures.authority = (failures.authority + 1) % wish.authorities.len();
        } else if let Some(after) = retry_after {
            until = until.max(after.min(now + RETRY_AFTER_MAX));
        }
        failures.wait_until = Some(until);
    }

    /// Takes in when the authority wants the certificate to be renewed; without an answer it is asked again later. Says if the
    /// window is another one.
    pub fn asked(
        &mut self,
        certificate: &str,
        answer: Option<(SystemTime, SystemTime)>,
        retry_after: Option<Duration>,
        now: SystemTime,
        random: u64,
    ) -> bool {
        let Some(installed) = &self.installed else { return false };
        let lifetime = installed.lifetime();
        let least = HOUR.min(lifetime / 100);
        let ask_again = now + retry_after.unwrap_or(WINDOW_ASKED).clamp(least, DAY);
        let before = self.window.take().filter(|window| window.certificate == certificate);
        let found = answer.filter(|(start, end)| start < end);
        let is_other = found.is_some_and(|(start, end)| {
            before.as_ref().is_none_or(|window| (window.start, window.end) != (start, end))
        });
        let moment = |(start, end): (SystemTime, SystemTime)| {
            let length = end.duration_since(start).unwrap_or_default();
            let drawn = start + length.mul_f64(fraction(random));
            let latest = installed.not_before + lifetime.mul_f64(LATEST);
            // A draw of the last minutes would leave no time for an order that fails.
            if end > installed.not_after { drawn.min(latest) } else { drawn.min(latest.max(start)) }
        };
        self.window = match (found, before) {
            (Some((start, end)), before) => {
                let known = before.filter(|_| !is_other).map(|window| window.moment);
                let moment = known.unwrap_or_else(|| moment((start, end)));
                Some(RenewalWindow {
                    certificate: certificate.to_owned(),
                    start,
                    end,
                    moment,
                    ask_again,
                })
            }
            (None, Some(before)) => Some(RenewalWindow { ask_again, ..before }),
            (None, None) => {
                let moment = installed.due_by_lifetime();
                let (certificate, start, end) = (certificate.to_owned(), moment, moment);
                Some(RenewalWindow { certificate, start, end, moment, ask_again })
            }
        };
        is_other
    }

    /// True if less than a sixth of the lifetime is left, or nothing is there: somebody should look.
    #[must_use]
    pub fn is_urgent(&self, now: SystemTime) -> bool {
        let Some(installed) = &self.installed else { return false };
        now >= installed.not_before + installed.lifetime().mul_f64(LATEST)
    }
}

impl Installed {
    fn lifetime(&self) -> Duration {
        self.not_after.duration_since(self.not_before).unwrap_or_default()
    }

    /// When it is renewed if its authority does not say.
    fn due_by_lifetime(&self) -> SystemTime {
        let lifetime = self.lifetime();
        let part = if lifetime <= SHORT { 1.0 / 2.0 } else { 2.0 / 3.0 };
        self.not_before + lifetime.mul_f64(part)
    }
}

/// How a directory is counted: rehearsals have an account, and limits, of their own.
fn counted_as(directory: &str, is_rehearsal: bool) -> String {
    if is_rehearsal { format!("test of {directory}") } else { directory.to_owned() }
}

/// A number from 0 to 1.
fn fraction(random: u64) -> f64 {
    // 53 bits are exact.
    let bits = u32::try_from(random >> 32).unwrap_or(u32::MAX);
    f64::from(bits) / f64::from(u32::MAX)
}

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);

/// How long nothing is tried after the first failure, the second one and so on.
const PAUSES: [Duration; 8] = [
    MINUTE,
    Duration::from_mins(2),
    Duration::from_mins(5),
    Duration::from_mins(10),
    Duration::from_mins(20),
    HOUR,
    Duration::from_hours(2),
    Duration::from_hours(6),
];

/// How long an order is not repeated that led to what cannot be used.
const RESULT_PAUSE: Duration = Duration::from_hours(6);

/// Failures at an authority before the next one is asked.
const TRIES_IN_TURN: u32 = 3;

/// An authority may want more patience than anybody has.
const RETRY_AFTER_MAX: Duration = Duration::from_hours(48);

/// How long an authority is not asked for a window if it does not say.
const WINDOW_ASKED: Duration = Duration::from_hours(6);

/// A certificate that lives no longer than this is renewed at half its life.
const SHORT: Duration = Duration::from_hours(10 * 24);

/// The part of a lifetime after which it is late.
const LATEST: f64 = 5.0 / 6.0;

/// Orders expire; the one of Let's Encrypt after a week.
const ORDER_AGE_MAX: Duration = Duration::from_hours(7 * 24);

/// Sites are looked at again after this at the latest.
const REST_MAX: Duration = DAY;

/// More are never begun within an hour.
const VALIDATIONS_KEPT_MAX: usize = 256;

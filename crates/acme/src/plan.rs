//! Decides what to do next for one site's certificate, and when: from what is known of it, the clock and a random number, all
//! of which come in.
//!
//! Nothing here asks or writes anything. The outcome of a step is put into the [`Standing`] by its methods.

mod budget;
mod failures;
mod names;
#[cfg(test)]
mod tests;
mod window;

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use budget::distance;
pub use budget::{Budget, Purpose};
pub use failures::{Blame, Failures, Trouble};
pub use names::{Failing, FailingNames};
pub use window::{RenewalWindow, WINDOW_ASKED};

/// The wishes of a configuration for a certificate, as far as the next step depends on it.
#[derive(Clone, Debug)]
pub struct SiteWish<'a> {
    /// The directories of the authorities that may issue it, the first one preferred.
    pub authorities: Vec<AuthorityWish<'a>>,
    /// All names of the site.
    pub names: &'a [String],
    /// The kind of key.
    pub key: &'a str,
}

/// The facts needed of an authority before it is asked.
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

/// The facts known of one site's certificate.
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
    /// The failures since the last success.
    pub failures: Failures,
    /// The orders of the last hour that had to validate names, with their authorities.
    pub validations: Vec<(String, SystemTime)>,
    /// True if the operator wants a new one now.
    pub is_asked_for: bool,
    /// True if the key is not to be used again, because its certificate was revoked.
    pub is_key_void: bool,
    /// The identifier of a certificate of which an authority did not take that it is replaced.
    pub not_replaceable: Option<String>,
    /// The orders it has used.
    pub budget: Budget,
    /// The names that do not validate.
    pub failing: FailingNames,
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
    /// The names of the site that it does not have.
    pub lacks: Vec<String>,
    /// Its kind of key.
    pub key: String,
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
    /// The kind of its key.
    #[serde(default)]
    pub key: String,
    /// When it was begun.
    pub begun: SystemTime,
}

/// The next step.
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
    /// Try whether a name that is left out validates again, and take nothing from it.
    TryAlone {
        /// The number of the authority.
        authority: usize,
        /// The name.
        name: String,
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
    let due = standing.due(wish, now);
    if now < due {
        return standing.next_before(wish, due, now);
    }
    let Some((number, authority)) = standing.authority(wish) else {
        return Step::Rest { until: now + REST_MAX };
    };
    let is_rehearsal = standing.failures.is_rehearsing && authority.has_test_directory;
    if let Some(until) = standing.free_from(authority, is_rehearsal, now) {
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

    /// Returns the purpose of the order, of all names and for this kind of key.
    #[must_use]
    pub fn purpose(&self, names: &[String], key: &str) -> Purpose {
        Purpose { names: self.failing.to_order(names), key: key.to_owned() }
    }

    /// The authority that is asked, and its number.
    fn authority<'w>(&self, wish: &'w SiteWish<'_>) -> Option<(usize, &'w AuthorityWish<'w>)> {
        let number = self.failures.authority.checked_rem(wish.authorities.len())?;
        Some((number, wish.authorities.get(number)?))
    }

    /// When there is to be a new certificate.
    #[must_use]
    pub fn due(&self, wish: &SiteWish<'_>, now: SystemTime) -> SystemTime {
        let at_once = SystemTime::UNIX_EPOCH;
        let Some(installed) = &self.installed else { return at_once };
        if self.is_asked_for {
            return at_once;
        }
        let purpose = self.purpose(wish.names, wish.key);
        let may_issue =
            |directory: &str| wish.authorities.iter().any(|it| it.directory == directory);
        let last = self.budget.last(now);
        let fits = installed.fits(&purpose) && may_issue(&installed.directory);
        // A certificate that was ordered for this and is not so will not be so the next time.
        if !fits && !last.is_some_and(|last| last.is_for(&purpose, may_issue)) {
            return at_once;
        }
        let window = self.window_in_force().map(|window| window.moment);
        let by_lifetime = installed.due_by_lifetime();
        let Some(last) = last else { return window.unwrap_or(by_lifetime) };
        match window {
            // An authority that is in a hurry is believed once, and not again at what came of it.
            Some(moment) if last.next_from() <= moment || !last.is_hurried => moment,
            _ => by_lifetime.max(last.next_from()),
        }
    }

    /// Returns the steps before the certificate is due.
    fn next_before(&self, wish: &SiteWish<'_>, due: SystemTime, now: SystemTime) -> Step {
        let alone = self.failing.next_alone(wish.names, now);
        let (Some((name, at)), Some((number, authority))) = (alone, self.authority(wish)) else {
            return self.ask_or_rest(wish, due, now);
        };
        let free = self.free_from(authority, authority.has_test_directory, now);
        let at = free.map_or(at, |free| free.max(at));
        if at <= now {
            return Step::TryAlone { authority: number, name: name.to_owned() };
        }
        match self.ask_or_rest(wish, due, now) {
            Step::Rest { until } => Step::Rest { until: until.min(at) },
            step => step,
        }
    }

    /// From when on an order may be sent to an authority; nothing if now.
    #[must_use]
    pub fn free_from(
        &self,
        authority: &AuthorityWish<'_>,
        is_rehearsal: bool,
        now: SystemTime,
    ) -> Option<SystemTime> {
        let free = self.validation_free_from(authority, is_rehearsal, now);
        let free = free.max(authority.free_from.filter(|from| now < *from));
        if is_rehearsal {
            return free;
        }
        let is_asked_for = self.is_asked_for && !self.is_key_void;
        free.max(self.budget.free_from(authority.directory, is_asked_for, now))
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
        self.validations.retain(|(_, begun)| distance(*begun, now) < HOUR);
        self.validations.truncate(VALIDATIONS_KEPT_MAX);
        self.validations.push((counted_as(directory, is_rehearsal), now));
    }

    /// Notes that an order is about to be begun.
    pub fn begins(&mut self, directory: &str, now: SystemTime) {
        self.budget.begins(directory, now);
    }

    /// Notes that a new certificate for this purpose is in its place.
    pub fn succeeded(&mut self, installed: Installed, purpose: Purpose, now: SystemTime) {
        let moment = self.window_in_force().map(|window| window.moment);
        let next = self.budget.last(now).map(budget::Issue::next_from);
        let is_hurried = moment.zip(next).is_some_and(|(moment, next)| moment < next);
        purpose.names.iter().for_each(|name| self.failing.validated(name));
        let validity = (installed.not_before, installed.not_after);
        self.budget.issued(validity, &installed.directory, purpose, is_hurried, now);
        *self = Self { installed: Some(installed), ..self.forgotten() };
    }

    /// Returns the part that stays when the operator wants failures and open orders to be forgotten: the bounds of its orders.
    #[must_use]
    pub fn forgotten(&self) -> Self {
        Self {
            installed: self.installed.clone(),
            validations: self.validations.clone(),
            budget: self.budget.clone(),
            failing: self.failing.clone(),
            ..Self::default()
        }
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

    /// True if less than a sixth of the lifetime is left, or nothing is there: somebody should look.
    #[must_use]
    pub fn is_urgent(&self, now: SystemTime) -> bool {
        let Some(installed) = &self.installed else { return false };
        now >= installed.not_before + installed.lifetime().mul_f64(LATEST)
    }
}

impl Installed {
    /// True if it is what would be ordered.
    fn fits(&self, purpose: &Purpose) -> bool {
        self.key == purpose.key && !self.lacks.iter().any(|name| purpose.names.contains(name))
    }

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

/// Returns the name under which a directory is counted: rehearsals have an account, and limits, of their own.
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

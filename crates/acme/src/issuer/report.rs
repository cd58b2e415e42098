//! The reports of the issuer on its sites, and the orders that it is given for them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;

use super::work::{Work, day};
use super::{Issuer, SiteState};
use crate::job::KeptAccount;
use crate::order::Obtained;
use crate::persist::Record;
use crate::plan::{self, Standing, Step};
use crate::protocol::{LeftOut, Level, OF_ANOTHER_SERVER, Order, Report, SITES_MAX, SiteStatus};
use crate::wishes::Site;

impl Issuer {
    pub(super) fn obey(&mut self, order: Order) {
        let now = self.clock.now();
        match order {
            Order::Status { number, from } => {
                let sites = self.statuses(from, now);
                let total = self.sites.len();
                self.shared.server.tell(Report::Sites { number, total, from, sites });
            }
            Order::Renew { number, site, rehearse } => {
                let done =
                    if rehearse { self.rehearse(&site, now) } else { self.renew(&site, now) };
                self.answer(number, done);
            }
            Order::Forget { number, site } => {
                let done = self.forget(&site);
                self.answer(number, done);
            }
            Order::Revoke { number, site, reason } => {
                if let Err(refused) = self.revoke(number, &site, reason) {
                    self.answer(number, Err(refused));
                }
            }
            Order::Records { number, from } => {
                let (records, next) = self.records(from);
                self.shared.server.tell(Report::Records { number, records, next });
            }
            Order::InForce { site } => self.in_force(&site),
            // Those are seen to where orders are received.
            Order::ReadAgain | Order::Presented { .. } => {}
        }
    }

    /// The site with this name, and its number: one that the configuration has and that nothing is done for at this moment.
    fn find(&self, name: &str) -> Result<(usize, &Site, &SiteState), String> {
        if !self.leads {
            return Err("another server has the lock of the state folder, and orders certificates"
                .to_owned());
        }
        let mut all = self.shared.sites.iter().zip(&self.sites).enumerate();
        let found = all.find(|(_, (site, _))| site.names.iter().any(|known| known == name));
        let (at, (site, state)) =
            found.ok_or_else(|| format!("no certificate is fetched for {name}"))?;
        if state.is_busy {
            return Err(format!(
                "{name}: its authority is being asked at this moment; try again after that"
            ));
        }
        Ok((at, site, state))
    }

    /// Changes what is known of the site of this number, and says so.
    fn change(
        &mut self,
        at: usize,
        change: impl FnOnce(&mut SiteState, &str) -> String,
    ) -> Result<String, String> {
        let unwritten = || "the state folder cannot be written".to_owned();
        let mut all = self.shared.sites.iter().zip(&mut self.sites);
        let (site, state) = all.nth(at).ok_or_else(unwritten)?;
        let before = state.standing.clone();
        let text = change(state, site.name());
        if self.shared.state.keep_standing(&site.folder, &state.standing).is_err() {
            // A refused order is not done.
            (state.standing, state.rehearses) = (before, false);
            return Err(unwritten());
        }
        (state.rests_until, state.waits_for) = (None, None);
        Ok(text)
    }

    /// Forgets a site's order and failures, but for what bounds its orders.
    fn forget(&mut self, name: &str) -> Result<String, String> {
        let (at, ..) = self.find(name)?;
        self.change(at, |state, known| {
            state.standing = state.standing.forgotten();
            format!("{known}: its order and its failures are forgotten")
        })
    }

    /// Has a new certificate ordered, as soon as its budget allows.
    fn renew(&mut self, name: &str, now: SystemTime) -> Result<String, String> {
        let (at, ..) = self.find(name)?;
        let text = self.change(at, |state, known| {
            state.standing.is_asked_for = true;
            state.standing.failures = plan::Failures::default();
            format!("{known}: a new certificate is ordered")
        })?;
        let (_, site, state) = self.find(name)?;
        Ok(match plan::next(&self.wish(site, now), &state.standing, now) {
            Step::Rest { until } => format!(
                "{text} on {}, and not before: it has had its orders of a day, or the authority wants to be left alone",
                day(until)
            ),
            _ => format!("{text}; the log says how that ends"),
        })
    }

    /// Has an order tried at the test directory, if there is one.
    fn rehearse(&mut self, name: &str, now: SystemTime) -> Result<String, String> {
        let (at, site, state) = self.find(name)?;
        if site.is_bound_to_account() {
            return Err(format!(
                "the record of dns-persist-01 for {name} is for one account, and directories for rehearsals have others"
            ));
        }
        let authority = site.authorities.first().and_then(|it| self.shared.authorities.get(*it));
        if let Some(authority) = authority.filter(|it| it.test_directory.is_none()) {
            return Err(format!(
                "the authority `{}` has no directory for rehearsals: write its `test_directory` in that [[acme]]",
                authority.name
            ));
        }
        let wish = self.wish(site, now);
        let first = wish.authorities.first();
        if let Some(until) = first.and_then(|first| state.standing.free_from(first, true, now)) {
            return Err(format!("{name} was validated too often: try again after {}", day(until)));
        }
        self.change(at, |state, known| {
            state.rehearses = true;
            format!("{known}: a rehearsal begins; the log says how it ends")
        })
    }

    /// Begins to revoke a site's certificate.
    fn revoke(&mut self, number: u64, name: &str, reason: Option<u8>) -> Result<(), String> {
        let (at, site, state) = self.find(name)?;
        let installed = state.standing.installed.as_ref();
        let installed = installed.ok_or_else(|| format!("{name} has no certificate yet"))?;
        let is_its_own = |number: &usize| {
            let authority = self.shared.authorities.get(*number);
            authority.is_some_and(|authority| authority.directory == installed.directory)
        };
        let authority = site.authorities.iter().position(is_its_own);
        let authority = authority.ok_or_else(|| {
            format!("the authority that issued it, {}, is none of this site's", installed.directory)
        })?;
        self.begin(at, Work::Revoke { authority, number, reason });
        Ok(())
    }

    fn answer(&self, number: u64, done: Result<String, String>) {
        let is_refused = done.is_err();
        let (Ok(message) | Err(message)) = done;
        self.shared.server.tell(Report::Done { number, message, is_refused });
    }

    fn statuses(&self, from: usize, now: SystemTime) -> Vec<SiteStatus> {
        let all = self.shared.sites.iter().zip(&self.sites).skip(from).take(SITES_MAX);
        let all = all.map(|(site, state)| self.status(site, state, now));
        fitting(all, PAGE_BYTES_MAX)
    }

    /// Lines of a zone file from this one on, as many as fit in a message, and the number of the next.
    fn records(&self, from: usize) -> (Vec<String>, Option<usize>) {
        let shared = &self.shared;
        let record = |directory: &str| shared.state.account::<KeptAccount>(directory)?.record;
        let records = shared.authorities.iter().map(|it| record(&it.directory));
        let records: Vec<Option<Record>> = records.collect();
        let of_site = |site: &Site| {
            let of_authority = |number: &usize| {
                let Some(record) = records.get(*number).and_then(Option::as_ref) else {
                    let authority = shared.authorities.get(*number);
                    let authority = authority.map_or("its authority", |it| it.name.as_str());
                    return vec![format!(
                        "; {}: `{authority}` has not said yet how it is named in the DNS, which it does at the first order",
                        site.name()
                    )];
                };
                record.lines(&site.names).collect()
            };
            site.authorities.iter().flat_map(of_authority).collect::<Vec<_>>()
        };
        let bound = || shared.sites.iter().filter(|site| site.is_bound_to_account());
        let lines = || bound().flat_map(of_site);
        let fitting = fitting(lines().skip(from), PAGE_BYTES_MAX);
        let next = from.saturating_add(fitting.len());
        let has_more = lines().nth(next).is_some();
        (fitting, has_more.then_some(next))
    }

    fn status(&self, site: &Site, state: &SiteState, now: SystemTime) -> SiteStatus {
        let standing = &state.standing;
        let wish = self.wish(site, now);
        let (what, next) = match plan::next(&wish, standing, now) {
            _ if !self.leads => (OF_ANOTHER_SERVER, now),
            _ if state.is_busy => ("under way", now),
            Step::Rest { until } if standing.failures.count > 0 => ("retry", until),
            // It may be due, and have to wait.
            Step::Rest { until } => ("renewal", standing.due(&wish, now).max(until.min(now))),
            Step::AskWindow { .. } | Step::TryAlone { .. } => ("renewal", standing.due(&wish, now)),
            Step::Begin { .. } | Step::Resume { .. } => ("order", now),
        };
        let by_directory = |it: &&crate::wishes::Authority| {
            standing.installed.as_ref().is_some_and(|own| own.directory == it.directory)
        };
        let asked = site.authorities.get(standing.failures.authority).or(site.authorities.first());
        let issuer = self.shared.authorities.iter().find(by_directory);
        let issuer = issuer.or_else(|| self.shared.authorities.get(*asked?));
        SiteStatus {
            site: site.name().to_owned(),
            authority: issuer.map_or_else(String::new, |it| it.name.clone()),
            not_after: standing.installed.as_ref().map(|installed| seconds(installed.not_after)),
            next: seconds(next),
            what: what.to_owned(),
            failures: standing.failures.count,
            reason: standing.failures.reason.clone(),
            is_urgent: standing.is_urgent(now),
            left_out: left_out(site, standing),
        }
    }

    /// Says each hour that a certificate is late.
    pub(super) fn tell_urgent(&mut self, number: usize, now: SystemTime) {
        let (Some(site), Some(state)) = (self.shared.sites.get(number), self.sites.get_mut(number))
        else {
            return;
        };
        let is_told = state
            .told_urgent
            .is_some_and(|told| now.duration_since(told).is_ok_and(|age| age < URGENT_AGAIN));
        if is_told || state.is_busy {
            return;
        }
        for LeftOut { name, reason } in left_out(site, &state.standing) {
            let text = format!(
                "the certificate of {} is ordered without {name}, which has failed for a day: {reason}",
                site.name()
            );
            state.told_urgent = Some(now);
            self.shared.server.log(Level::Error, text);
        }
        if !state.standing.is_urgent(now) {
            return;
        }
        let Some(installed) = &state.standing.installed else { return };
        let reason =
            state.standing.failures.reason.as_deref().unwrap_or("it is about to be renewed");
        // One that was just found late is renewed before anybody is alarmed.
        if state.standing.failures.count > 0 {
            let text = format!(
                "the certificate of {} ends on {} and was not renewed: {reason}",
                site.name(),
                day(installed.not_after)
            );
            state.told_urgent = Some(now);
            self.shared.server.log(Level::Error, text);
        }
    }
}

/// As many as fit in a message, and one at least: reasons may be long.
fn fitting<T: Serialize>(all: impl Iterator<Item = T>, bytes_max: usize) -> Vec<T> {
    let mut left = bytes_max;
    let fitting = all.enumerate().take_while(|(index, one)| {
        let length = serde_json::to_vec(one).map_or(0, |bytes| bytes.len());
        let fits = left.checked_sub(length);
        left = fits.unwrap_or(0);
        *index == 0 || fits.is_some()
    });
    fitting.map(|(_, one)| one).collect()
}

/// The names that are left out, as far as a message has room for them.
fn left_out(site: &Site, standing: &Standing) -> Vec<LeftOut> {
    let out = standing.failing.left_out(&site.names).take(LEFT_OUT_MAX);
    let told = out.map(|(name, failing)| LeftOut {
        name: name.to_owned(),
        reason: failing.reason.chars().take(REASON_CHARS_MAX).collect(),
    });
    told.collect()
}

/// The line of a new certificate.
pub(super) fn issued(name: &str, authority: &str, obtained: &Obtained, next: SystemTime) -> String {
    let installed = &obtained.installed;
    let lifetime = installed.not_after.duration_since(installed.not_before).unwrap_or_default();
    let kind = obtained.kind.map_or("validated before", |kind| kind.as_str());
    format!(
        "certificate of {name} is there: {authority}, {}, {kind}, {:.1} s, next about {}",
        length(lifetime),
        obtained.took.as_secs_f64(),
        day(next)
    )
}

/// A lifetime in the unit that fits.
fn length(lifetime: Duration) -> String {
    // The last second is part of it.
    match lifetime.as_secs() + 1 {
        seconds @ 0..7_200 => format!("{seconds} s"),
        seconds @ 7_200..172_800 => format!("{} hours", seconds / 3_600),
        seconds => format!("{} days", seconds / 86_400),
    }
}

fn seconds(moment: SystemTime) -> u64 {
    moment.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// The interval at which it is said that a certificate is late.
const URGENT_AGAIN: Duration = Duration::from_hours(1);

/// Names that are left out of a certificate, as far as they are told,
const LEFT_OUT_MAX: usize = 4;
/// and how much of each reason.
const REASON_CHARS_MAX: usize = 200;

/// The list of a message leaves room for the rest of it.
const PAGE_BYTES_MAX: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_never_longer_than_a_message_and_never_empty() {
        let site = |reason: usize| SiteStatus {
            site: "a.example".to_owned(),
            authority: "own".to_owned(),
            not_after: None,
            next: 0,
            what: "retry".to_owned(),
            failures: 1,
            // Each of them takes two bytes.
            reason: Some("\"".repeat(reason)),
            is_urgent: false,
            left_out: Vec::new(),
        };
        assert_eq!(fitting((0..32).map(|_| site(1_500)), PAGE_BYTES_MAX).len(), 20);
        assert_eq!(fitting((0..3).map(|_| site(1_500)), 10).len(), 1);
        assert_eq!(fitting((0..32).map(|_| site(10)), PAGE_BYTES_MAX).len(), 32);
    }
}

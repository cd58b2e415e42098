//! What the issuer says of its sites, and what it is told to do with them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::work::{Work, day};
use super::{Issuer, SiteState};
use crate::order::Obtained;
use crate::plan::{self, Standing, Step};
use crate::protocol::{Level, Order, Report, SITES_MAX, SiteStatus};
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
                let done = self.with_site(&site, |state, known| {
                    if rehearse {
                        state.rehearses = true;
                        return format!("{known}: a rehearsal begins; the log says how it ends");
                    }
                    state.standing.is_asked_for = true;
                    state.standing.failures = plan::Failures::default();
                    format!("{known}: a new certificate is ordered; the log says how that ends")
                });
                self.answer(number, done);
            }
            Order::Forget { number, site } => {
                let done = self.with_site(&site, |state, known| {
                    let installed = state.standing.installed.take();
                    state.standing = Standing { installed, ..Standing::default() };
                    format!("{known}: its order and its failures are forgotten")
                });
                self.answer(number, done);
            }
            Order::Revoke { number, site, reason } => {
                if let Err(refused) = self.revoke(number, &site, reason) {
                    self.answer(number, Err(refused));
                }
            }
            // Those are seen to where orders are received.
            Order::ReadAgain | Order::Presented { .. } => {}
        }
    }

    /// Changes what is known of a site that the configuration has and that nothing is done for at this moment.
    fn with_site(
        &mut self,
        name: &str,
        change: impl FnOnce(&mut SiteState, &str) -> String,
    ) -> Result<String, String> {
        if !self.leads {
            return Err("another server has the lock of the state folder, and orders certificates"
                .to_owned());
        }
        let sites = self.shared.sites.iter().zip(&mut self.sites);
        let mut found = sites.filter(|(site, _)| site.names.iter().any(|known| known == name));
        let (site, state) =
            found.next().ok_or_else(|| format!("no certificate is fetched for {name}"))?;
        if state.is_busy {
            return Err(format!(
                "{name}: its authority is being asked at this moment; try again after that"
            ));
        }
        let text = change(state, site.name());
        if self.shared.state.keep_standing(&site.folder, &state.standing).is_err() {
            return Err("the state folder cannot be written".to_owned());
        }
        Ok(text)
    }

    /// Begins to revoke a site's certificate.
    fn revoke(&mut self, number: u64, name: &str, reason: Option<u8>) -> Result<(), String> {
        // Whether anything can be done for the site is the same question.
        self.with_site(name, |_, _| String::new())?;
        let mut all = self.shared.sites.iter().zip(&self.sites).enumerate();
        let found = all.find(|(_, (site, _))| site.names.iter().any(|known| known == name));
        let Some((at, (site, state))) = found else { return Err(String::new()) };
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
        all.map(|(site, state)| self.status(site, state, now)).collect()
    }

    fn status(&self, site: &Site, state: &SiteState, now: SystemTime) -> SiteStatus {
        let standing = &state.standing;
        let wish = self.wish(site, now);
        let (what, next) = match plan::next(&wish, standing, now) {
            _ if !self.leads => ("another server", now),
            _ if state.is_busy => ("under way", now),
            Step::Rest { until } if standing.failures.count > 0 => ("retry", until),
            Step::Rest { .. } | Step::AskWindow { .. } => ("renewal", standing.due(&wish)),
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
        if is_told || state.is_busy || !state.standing.is_urgent(now) {
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

/// How often it is said that a certificate is late.
const URGENT_AGAIN: Duration = Duration::from_hours(1);

//! The end of a job: what is noted of it, kept, and said.

use std::rc::Rc;
use std::time::{Duration, SystemTime};

use tokio::task::{Id, JoinError};
use tokio::time::Instant as TokioInstant;

use super::work::{Finished, Outcome, random};
use super::{Issuer, SiteState, UnderWay, after, report};
use crate::job::Failure;
use crate::plan::{Blame, SiteWish, Standing};
use crate::protocol::{Level, Report};
use crate::server::Server;

impl Issuer {
    /// Takes the end of a job, whatever kind it is.
    pub(super) fn end(&mut self, ended: Result<(Id, Finished), JoinError>) {
        let id = ended.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        let under_way = self.under_way.remove(&id);
        match (ended, under_way) {
            (Ok((_, finished)), _) => self.finish(finished),
            (Err(error), Some(UnderWay { site, room })) => {
                let authority = room.authority;
                let shared = Rc::clone(&self.shared);
                let (Some(own), Some(asked)) =
                    (shared.sites.get(site), shared.authorities.get(authority))
                else {
                    return;
                };
                // It may be that which the attempt broke at.
                if let Some(client) = shared.clients.get(authority) {
                    client.forget_directories();
                }
                // Its notes are on the disk.
                let mut standing = shared.state.standing(&own.folder);
                standing.installed = own.installed(&shared.state);
                let reason = format!("the attempt broke off, please report that: {}", why(error));
                let outcome =
                    Outcome::of(Failure::new(Blame::Authority, reason), &asked.directory, None);
                self.finish(Finished { site, authority, standing, outcome });
            }
            (Err(_), None) => {}
        }
    }

    fn finish(&mut self, finished: Finished) {
        let now = self.clock.now();
        let Finished { site: number, authority, standing, outcome } = finished;
        let shared = Rc::clone(&self.shared);
        let Some(site) = shared.sites.get(number) else { return };
        let Some(name) = shared.authorities.get(authority).map(|it| it.name.clone()) else {
            return;
        };
        let wish = self.wish(site, now);
        let mut standing = standing;
        let kind = match &outcome {
            Outcome::Obtained(obtained) => obtained.kind,
            Outcome::Failed { kind, .. } => *kind,
            _ => None,
        };
        note(&mut standing, &outcome, &wish, now);
        let is_issued = matches!(outcome, Outcome::Obtained(_));
        if is_issued || matches!(outcome, Outcome::Failed { .. }) {
            shared.server.tell(Report::Attempt { authority: name.clone(), is_issued, kind });
        }
        let kept = shared.state.keep_standing(&site.folder, &standing);
        let next = standing.due(&wish, now);
        let Some(state) = self.sites.get_mut(number) else { return };
        state.standing = standing;
        state.is_busy = false;
        if let Err(error) = kept {
            let text = format!("what is known of {} cannot be kept: {error}", site.name());
            state.tell(&shared.server, Level::Error, text, now);
        }
        match outcome {
            Outcome::Obtained(obtained) => {
                state.told = None;
                state.told_urgent = None;
                state.after = site.has_after.then(|| TokioInstant::now() + after::PATIENCE);
                shared.server.tell(Report::Issued { site: site.name().to_owned() });
                shared.server.log(Level::Info, report::issued(site.name(), &name, &obtained, next));
            }
            Outcome::Rehearsed => {
                let text = format!("{}: a rehearsal at {name} went well", site.name());
                shared.server.log(Level::Info, text);
            }
            Outcome::Asked => {}
            Outcome::TriedAlone { name, refused: None } => {
                let text = format!("{name} validates again: a certificate with it is ordered");
                shared.server.log(Level::Info, text);
            }
            // That it is left out is said each hour.
            Outcome::TriedAlone { .. } => {}
            Outcome::Revoked { number, refused } => {
                let is_refused = refused.is_some();
                let done = "is revoked; one with another key is ordered";
                let said = refused.map_or(done.to_owned(), |it| format!("is not revoked: {it}"));
                let message =
                    crate::server::shortened(format!("the certificate of {} {said}", site.name()));
                shared.server.log(Level::Warn, message.clone());
                shared.server.tell(Report::Done { number, message, is_refused });
            }
            Outcome::Tried { reason } => {
                let text = format!("{}: a rehearsal at {name} failed: {reason}", site.name());
                shared.server.log(Level::Warn, text);
            }
            Outcome::Failed { trouble, .. } => {
                let text = format!("no certificate for {}: {}", site.name(), trouble.reason);
                state.tell(&shared.server, Level::Warn, text, now);
            }
        }
    }
}

/// Notes what a job has come to, as far as it has not done so itself.
fn note(standing: &mut Standing, outcome: &Outcome, wish: &SiteWish<'_>, now: SystemTime) {
    match outcome {
        Outcome::Failed { blame, trouble, .. } => {
            standing.failed(wish, (*blame, trouble.clone()), now, random());
        }
        Outcome::TriedAlone { name, refused } => {
            standing.tried_alone(name, refused.as_deref(), now);
        }
        _ => {}
    }
}

/// Why a job ended that did not come to its end.
fn why(error: JoinError) -> String {
    let Ok(panic) = error.try_into_panic() else { return "it was broken off".to_owned() };
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref().cloned()).unwrap_or_else(|| "it panicked".to_owned())
}

impl SiteState {
    /// Says something that is another reason than before, or was last said a day ago.
    fn tell(&mut self, server: &Server, level: Level, text: String, now: SystemTime) {
        let is_told = self.told.as_ref().is_some_and(|(told, at)| {
            *told == text && now.duration_since(*at).is_ok_and(|age| age < TOLD_AGAIN)
        });
        if !is_told {
            server.log(level, text.clone());
            self.told = Some((text, now));
        }
    }
}

/// The time after which a job that goes on is told again.
const TOLD_AGAIN: Duration = Duration::from_hours(24);

//! The work for a site: a job of its own, beside others.

use std::cell::Cell;
use std::time::{Duration, SystemTime};

use kettle_http::date;
use rustix::rand::{GetRandomFlags, getrandom};

use crate::account;
use crate::client::ClientTask;
use crate::job::{Accounts, Failure, Job};
use crate::order::{Obtained, Start};
use crate::plan::{Blame, Purpose, Standing, Trouble};
use crate::programs::Warden;
use crate::protocol::{Kind, Level};
use crate::server::{Server, shortened};
use crate::state::StateFolder;
use crate::wishes::{Authority, Site};

/// The state that all jobs share.
pub(super) struct Shared {
    pub(super) server: Server,
    pub(super) warden: Warden,
    pub(super) state: StateFolder,
    pub(super) authorities: Vec<Authority>,
    /// One task a trust: the authorities, in their order.
    pub(super) clients: Vec<ClientTask>,
    pub(super) sites: Vec<Site>,
    /// Which accounts are being made.
    pub(super) accounts: Accounts,
}

/// The end of a job.
pub(super) struct Finished {
    pub(super) site: usize,
    pub(super) authority: usize,
    pub(super) standing: Standing,
    pub(super) outcome: Outcome,
}

pub(super) enum Outcome {
    Obtained(Obtained),
    Rehearsed,
    /// The end of an operator's rehearsal, which is only told.
    Tried {
        reason: String,
    },
    Asked,
    /// The outcome of a name that was tried alone.
    TriedAlone {
        name: String,
        refused: Option<String>,
    },
    /// The answer to the operator's question of this number.
    Revoked {
        number: u64,
        refused: Option<String>,
    },
    Failed {
        blame: Blame,
        kind: Option<Kind>,
        trouble: Trouble,
    },
}

/// The work for a site, at one of its authorities.
pub(super) enum Work {
    AskWindow {
        authority: usize,
        certificate: String,
    },
    /// One that the operator asked for changes nothing.
    Rehearse {
        authority: usize,
        is_asked_for: bool,
    },
    /// A name that is left out of orders.
    TryAlone {
        authority: usize,
        name: String,
    },
    Order {
        authority: usize,
        start: Start,
    },
    Revoke {
        authority: usize,
        number: u64,
        reason: Option<u8>,
    },
}

impl Work {
    pub(super) fn authority(&self) -> usize {
        match self {
            Self::AskWindow { authority, .. }
            | Self::Rehearse { authority, .. }
            | Self::TryAlone { authority, .. }
            | Self::Order { authority, .. }
            | Self::Revoke { authority, .. } => *authority,
        }
    }
}

impl Outcome {
    /// A failure at the authority that has this directory.
    pub(super) fn of(failure: Failure, directory: &str, retry_after: Option<SystemTime>) -> Self {
        let Failure { blame, reason, kind, refused, validated } = failure;
        let reason = shortened(reason);
        let directory = directory.to_owned();
        let refused = refused.into_iter().map(|(name, reason)| (name, shortened(reason))).collect();
        let trouble = Trouble { reason, directory, retry_after, refused, validated };
        Self::Failed { blame, kind, trouble }
    }
}

impl Work {
    /// Returns the purpose of the certificate.
    fn purpose(&self, site: &Site, standing: &Standing) -> Purpose {
        let of = |names: Vec<String>| Purpose { names, key: site.key_word.clone() };
        match self {
            Self::Order { start: Start::Open(open), .. } => of(open.names.clone()),
            Self::TryAlone { name, .. } => of(vec![name.clone()]),
            _ => standing.purpose(&site.names, &site.key_word),
        }
    }
}

impl Shared {
    pub(super) async fn carry_out(
        &self,
        site: usize,
        authority: usize,
        standing: &mut Standing,
        work: Work,
    ) -> Outcome {
        let found = (self.sites.get(site), self.authorities.get(authority));
        let (Some(site), Some(authority), Some(task)) =
            (found.0, found.1, self.clients.get(authority))
        else {
            return Outcome::Asked;
        };
        let directory = match &work {
            Work::Rehearse { .. } | Work::TryAlone { .. } if !site.is_bound_to_account() => {
                authority.test_directory.as_deref()
            }
            _ => None,
        };
        let directory = directory.unwrap_or(&authority.directory);
        let client = task.client(directory);
        let job = Job {
            site,
            authority,
            directory,
            state: &self.state,
            server: &self.server,
            warden: &self.warden,
            client: &client,
            accounts: &self.accounts,
            account: Cell::default(),
            purpose: work.purpose(site, standing),
        };
        let failed = match work {
            Work::AskWindow { certificate, .. } => {
                job.ask_window(standing, &certificate, random()).await;
                return Outcome::Asked;
            }
            Work::Rehearse { is_asked_for: true, .. } => match job.rehearse(standing).await {
                Ok(_) => return Outcome::Rehearsed,
                Err(failure) => return Outcome::Tried { reason: failure.reason },
            },
            Work::Rehearse { .. } => match job.rehearse(standing).await {
                Ok(_) => {
                    standing.rehearsed();
                    return Outcome::Rehearsed;
                }
                Err(failure) => failure,
            },
            Work::TryAlone { name, .. } => match job.rehearse(standing).await {
                Ok(_) => return Outcome::TriedAlone { name, refused: None },
                Err(failure) if failure.blame == Blame::Validation => {
                    return Outcome::TriedAlone { name, refused: Some(failure.reason) };
                }
                Err(failure) => failure,
            },
            Work::Revoke { number, reason, .. } => {
                let refused = job.revoke(reason).await.err().map(|failure| failure.reason);
                if refused.is_none() {
                    standing.revoked();
                }
                return Outcome::Revoked { number, refused };
            }
            Work::Order { start, .. } => match job.obtain(standing, start).await {
                Ok(obtained) => return Outcome::Obtained(obtained),
                Err(failure) => failure,
            },
        };
        Outcome::of(failed, directory, client.notes().retry_after)
    }
}

impl Job<'_> {
    /// Asks when the certificate is to be renewed. That the authority does not say is no failure.
    async fn ask_window(&self, standing: &mut Standing, certificate: &str, random: u64) {
        let asked = async {
            let account = account::of(self).await.ok()?;
            let (issuer, serial) = certificate.split_once('.')?;
            let identifier = instant_acme::CertificateIdentifier {
                authority_key_identifier: issuer.into(),
                serial: serial.into(),
            };
            account.renewal_info(&identifier).await.ok()
        };
        let answer = tokio::time::timeout(ASK_TIME_MAX, asked).await.ok().flatten();
        let window = answer.as_ref().map(|(info, _)| {
            let window = &info.suggested_window;
            (SystemTime::from(window.start), SystemTime::from(window.end))
        });
        let retry_after = answer.map(|(_, after)| after);
        let name = self.site.name();
        let now = SystemTime::now();
        if standing.asked(certificate, window, retry_after, now, random)
            && let Some(window) = &standing.window
        {
            let day = day(window.moment);
            let text =
                format!("{} wants {name} renewed, which is done about {day}", self.authority.name);
            self.server.log(Level::Info, text);
        }
    }
}

/// The moment as it stands in messages.
pub(super) fn day(moment: SystemTime) -> String {
    String::from_utf8_lossy(&date::write_imf_fixdate(moment)).into_owned()
}

pub(super) fn random() -> u64 {
    let mut bytes = [0; 8];
    // If there is no random number, the moment will do: it is only to keep servers apart.
    match getrandom(&mut bytes, GetRandomFlags::empty()) {
        Ok(_) => u64::from_ne_bytes(bytes),
        Err(_) => u64::from(SystemTime::now().elapsed().unwrap_or_default().subsec_nanos()) << 32,
    }
}

const ASK_TIME_MAX: Duration = Duration::from_mins(2);

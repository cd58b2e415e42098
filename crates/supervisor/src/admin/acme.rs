//! Certificates that are fetched, as `kettle ctl acme` shows them and has them renewed.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kettle_acme::protocol::{Order, Report, SiteStatus};
use kettle_config::{Config, closest};
use kettle_tls::identity::Utc;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::protocol::Reply;
use crate::issuer::Issuer;

/// What can be asked about certificates that are fetched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum AcmeRequest {
    /// How it stands with all of them.
    Status,
    /// Get a new one now.
    Renew {
        /// One of its names.
        name: String,
        /// Whether only the test directory is asked, and nothing changes.
        rehearse: bool,
    },
    /// Forget what is known of failures and open orders.
    Forget {
        /// One of its names.
        name: String,
    },
    /// Revoke it, and get one with another key.
    Revoke {
        /// One of its names.
        name: String,
        /// The reason's number in RFC 5280, if there is one.
        reason: Option<u8>,
    },
}

/// How it stands with certificates that are fetched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AcmeStatus {
    /// How many there are.
    pub total: usize,
    /// Those that need most to be looked at first; not all where there are many.
    pub sites: Vec<SiteStatus>,
}

impl AcmeStatus {
    /// True if one of them is late.
    #[must_use]
    pub fn is_urgent(&self) -> bool {
        self.sites.iter().any(|site| site.is_urgent)
    }

    fn add(&mut self, total: usize, sites: Vec<SiteStatus>) {
        self.total = total;
        self.sites.extend(sites);
        self.sites.sort_by_key(|site| (!site.is_urgent, site.failures == 0, site.next));
        self.sites.truncate(SHOWN_MAX);
    }
}

impl fmt::Display for AcmeStatus {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.sites.is_empty() {
            return writeln!(out, "no certificate is fetched");
        }
        let width = |of: fn(&SiteStatus) -> &str, title: &str| {
            let widths = self.sites.iter().map(|site| of(site).len());
            widths.max().unwrap_or_default().max(title.len())
        };
        let name = width(|site| &site.site, "certificate");
        let authority = width(|site| &site.authority, "authority");
        writeln!(
            out,
            "{:<name$}  {:<authority$}  {:<23}  next",
            "certificate", "authority", "ends"
        )?;
        for site in &self.sites {
            let ends = site.not_after.map_or("not there yet".to_owned(), |it| date(it).to_string());
            let late = if site.is_urgent { "LATE: " } else { "" };
            writeln!(
                out,
                "{:<name$}  {:<authority$}  {ends:<23}  {late}{} at {}",
                site.site,
                site.authority,
                site.what,
                date(site.next)
            )?;
            if let Some(reason) = &site.reason {
                let times = if site.failures == 1 { "once" } else { "times" };
                let times = match site.failures {
                    0 | 1 => times.to_owned(),
                    failures => format!("{failures} {times}"),
                };
                writeln!(out, "{:<name$}  failed {times}: {reason}", "")?;
            }
        }
        match self.total.saturating_sub(self.sites.len()) {
            0 => Ok(()),
            left_out => writeln!(out, "and {left_out} more, none of which needs it more"),
        }
    }
}

fn date(seconds: u64) -> Utc {
    // A year that no calendar has is shown as the last moment that one has.
    let moment = UNIX_EPOCH.checked_add(Duration::from_secs(seconds.min(LAST_SECOND)));
    Utc(moment.unwrap_or(SystemTime::UNIX_EPOCH))
}

/// Questions about certificates whose answers are awaited.
#[derive(Default)]
pub(crate) struct AcmeQuestions {
    /// Pages of the status, and what waits for the end of an order.
    waiting: JoinSet<Answered>,
}

/// An answer of the issuer, or none, and where it goes.
pub(crate) struct Answered {
    report: Option<Report>,
    gathered: AcmeStatus,
    asker: oneshot::Sender<Reply>,
}

impl AcmeQuestions {
    /// Passes a request on.
    pub(crate) fn begin(
        &mut self,
        request: AcmeRequest,
        (config, issuer): (&Config, &mut Issuer),
        asker: oneshot::Sender<Reply>,
    ) {
        let order = match order_of(request, config) {
            Ok(order) => order,
            Err(refused) => {
                // The caller may be gone.
                let _ = asker.send(refused);
                return;
            }
        };
        self.ask(issuer, AcmeStatus::default(), asker, order);
    }

    /// The next answer; for ever none while nothing is asked.
    pub(crate) async fn next(&mut self) -> Option<Answered> {
        self.waiting.join_next().await?.ok()
    }

    /// Takes an answer, and asks for the next page where there is one.
    pub(crate) fn take(&mut self, answered: Answered, issuer: &mut Issuer) {
        let Answered { report, mut gathered, asker } = answered;
        let reply = match report {
            Some(Report::Sites { total, from, sites, .. }) => {
                let next = from + sites.len();
                let has_more = !sites.is_empty() && next < total;
                gathered.add(total, sites);
                if has_more {
                    let order = move |number| Order::Status { number, from: next };
                    return self.ask(issuer, gathered, asker, order);
                }
                Reply::Acme { certificates: gathered }
            }
            Some(Report::Done { message, is_refused: false, .. }) => Reply::done(message),
            Some(Report::Done { message, .. }) => Reply::refused(message),
            _ => Reply::refused(NO_ANSWER),
        };
        // The caller may be gone.
        let _ = asker.send(reply);
    }

    fn ask(
        &mut self,
        issuer: &mut Issuer,
        gathered: AcmeStatus,
        asker: oneshot::Sender<Reply>,
        order: impl FnOnce(u64) -> Order,
    ) {
        let answer = issuer.ask(order);
        self.waiting.spawn(async move { Answered { report: answer.await.ok(), gathered, asker } });
    }
}

/// The order for a request; of a certificate the issuer knows the first name.
fn order_of(request: AcmeRequest, config: &Config) -> Result<Box<dyn FnOnce(u64) -> Order>, Reply> {
    let site = |name: &str| {
        let names = || config.wanted_certificates().map(|wanted| wanted.names);
        let mut having = names().filter(|names| names.iter().any(|own| own.value == name));
        let first = having.next().and_then(|names| names.first());
        first.map(|first| first.value.clone()).ok_or_else(|| {
            let all: Vec<&str> = names().flatten().map(|own| own.value.as_str()).collect();
            let meant = closest(name, &all).map(|it| format!("; is it {it}?"));
            Reply::refused(format!(
                "no certificate is fetched for {name}{}",
                meant.unwrap_or_default()
            ))
        })
    };
    Ok(match request {
        AcmeRequest::Status => Box::new(|number| Order::Status { number, from: 0 }),
        AcmeRequest::Renew { name, rehearse } => {
            let site = site(&name)?;
            Box::new(move |number| Order::Renew { number, site, rehearse })
        }
        AcmeRequest::Forget { name } => {
            let site = site(&name)?;
            Box::new(move |number| Order::Forget { number, site })
        }
        AcmeRequest::Revoke { name, reason } => {
            let site = site(&name)?;
            Box::new(move |number| Order::Revoke { number, site, reason })
        }
    })
}

/// Each has a reason of 1,500 bytes at most: together they are well below what an answer may have.
const SHOWN_MAX: usize = 1_000;

/// 9999-12-31 23:59:59.
const LAST_SECOND: u64 = 253_402_300_799;

const NO_ANSWER: &str = "the process that fetches certificates does not run, or has too much to do: look at `kettle ctl status` and at the \
     log; without an [[acme]] in the configuration there is none";

#[cfg(test)]
mod tests {
    use super::*;

    fn site(name: &str, failures: u32, is_urgent: bool) -> SiteStatus {
        SiteStatus {
            site: name.to_owned(),
            authority: "letsencrypt".to_owned(),
            not_after: (failures == 0).then_some(1_800_000_000),
            next: 1_790_000_000,
            what: if failures == 0 { "renewal" } else { "retry" }.to_owned(),
            failures,
            reason: (failures > 0).then(|| "no such name".to_owned()),
            is_urgent,
        }
    }

    #[test]
    fn those_that_fail_come_first_and_say_why() {
        let mut status = AcmeStatus::default();
        assert_eq!(status.to_string(), "no certificate is fetched\n");
        status.add(3, vec![site("a.example", 0, false), site("b.example", 2, false)]);
        status.add(3, vec![site("c.example", 1, true)]);
        assert!(status.is_urgent());
        assert_eq!(
            status.to_string(),
            "certificate  authority    ends                     next\n\
             c.example    letsencrypt  not there yet            LATE: retry at 2026-09-21 14:13:20 UTC\n             \
             failed once: no such name\n\
             b.example    letsencrypt  not there yet            retry at 2026-09-21 14:13:20 UTC\n             \
             failed 2 times: no such name\n\
             a.example    letsencrypt  2027-01-15 08:00:00 UTC  renewal at 2026-09-21 14:13:20 UTC\n"
        );
    }

    #[test]
    fn of_many_the_worst_are_shown() {
        let mut status = AcmeStatus::default();
        for page in 0..40 {
            let sites = (0..32).map(|it| site(&format!("{page}-{it}.example"), 0, false));
            status.add(1_280, sites.collect());
        }
        status.add(1_281, vec![site("late.example", 1, true)]);
        assert_eq!(status.sites.len(), SHOWN_MAX);
        assert_eq!(status.sites[0].site, "late.example");
        assert!(status.to_string().ends_with("and 281 more, none of which needs it more\n"));
    }

    #[test]
    fn a_certificate_is_known_by_each_of_its_names() {
        let text = "[[acme]]\nname = \"own\"\ndirectory = \"letsencrypt\"\naccept_terms = true\n\
                    [[listener]]\naddress = \"127.0.0.1:443\"\n\
                    [[site]]\nnames = [\"a.org\", \"www.a.org\"]\nacme = {}\nroute = [{ root = \"/\" }]\n";
        let config = kettle_config::parse(text, "kettle.toml".as_ref()).unwrap();
        let of = |name: &str| {
            let name = name.to_owned();
            let order = order_of(AcmeRequest::Renew { name, rehearse: true }, &config);
            order.map(|order| order(7))
        };
        for name in ["a.org", "www.a.org"] {
            let expected = Order::Renew { number: 7, site: "a.org".to_owned(), rehearse: true };
            assert_eq!(of(name).ok(), Some(expected), "{name}");
        }
        let Err(Reply::Refused { message, .. }) = of("ww.a.org") else { panic!("an order") };
        assert_eq!(message, "no certificate is fetched for ww.a.org; is it www.a.org?");
    }
}

//! Certificates that are fetched, as `kettle ctl acme` asks about them and shows them.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kettle_acme::protocol::{LeftOut, SiteStatus};
use kettle_tls::identity::Utc;
use serde::{Deserialize, Serialize};

/// The requests about certificates that are fetched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum AcmeRequest {
    /// The state of all of them.
    Status,
    /// Which records have to be in the DNS for them.
    DnsRecords {
        /// The number of the first one.
        from: usize,
    },
    /// Get a new one now.
    Renew {
        /// One of its names.
        name: String,
        /// True if only the test directory is asked, and nothing changes.
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

/// The state of certificates that are fetched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AcmeStatus {
    /// The number of them.
    pub total: usize,
    /// Those that need most to be looked at first; not all where there are many.
    pub sites: Vec<SiteStatus>,
}

impl AcmeStatus {
    /// True if one of them is late, or ordered without one of its names.
    #[must_use]
    pub fn is_urgent(&self) -> bool {
        self.sites.iter().any(|site| site.is_urgent || !site.left_out.is_empty())
    }

    /// Takes more of them in.
    pub(crate) fn add(&mut self, total: usize, sites: Vec<SiteStatus>) {
        self.total = total;
        self.sites.extend(sites);
        let is_whole = |site: &SiteStatus| site.left_out.is_empty();
        self.sites.sort_by_key(|it| (!it.is_urgent, is_whole(it), it.failures == 0, it.next));
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
            for LeftOut { name: left_out, reason } in &site.left_out {
                writeln!(out, "{:<name$}  WITHOUT {left_out}: {reason}", "")?;
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

/// Each has 7 KiB of reasons at most: together they are below what an answer may have.
const SHOWN_MAX: usize = 500;

/// 9999-12-31 23:59:59.
const LAST_SECOND: u64 = 253_402_300_799;

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
            left_out: Vec::new(),
        }
    }

    #[test]
    fn a_certificate_without_one_of_its_names_is_shown_so() {
        let mut status = AcmeStatus::default();
        let reason = "no such host".to_owned();
        let left_out = vec![LeftOut { name: "www.a.example".to_owned(), reason }];
        status.add(1, vec![SiteStatus { left_out, ..site("a.example", 0, false) }]);
        assert!(status.is_urgent());
        let text = status.to_string();
        assert!(text.ends_with("WITHOUT www.a.example: no such host\n"), "{text}");
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
        assert!(status.to_string().ends_with("and 781 more, none of which needs it more\n"));
    }
}

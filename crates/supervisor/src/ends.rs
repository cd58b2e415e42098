//! Certificates that end: for each when, told to Prometheus and `kettle ctl status`, and a warning a day in the log.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use kettle_runtime::metrics::{Metric, MetricWriter, NamedCounters};
use kettle_tls::identity::{Identity, Utc, ends_soon};

use crate::admin::status::{CertificateStatus, CertificatesStatus};

/// When the certificates in use end. Of several with one name and one type of key the first to end counts.
#[derive(Debug, Default)]
pub(crate) struct CertificateEnds {
    /// The first to end first.
    certificates: Vec<CertificateEnd>,
}

#[derive(Debug)]
struct CertificateEnd {
    name: String,
    key: String,
    not_before: SystemTime,
    not_after: SystemTime,
    is_generated: bool,
}

impl CertificateEnds {
    /// Those of the identities in use, `generated` among them.
    pub(crate) fn of<'i>(
        identities: impl IntoIterator<Item = &'i Arc<Identity>>,
        generated: Option<&Arc<Identity>>,
    ) -> Self {
        let end = |identity: &Arc<Identity>| CertificateEnd {
            name: identity.asked_names().into_iter().next().unwrap_or_default(),
            key: identity.key_kind().key_type().to_ascii_lowercase(),
            not_before: identity.not_before(),
            not_after: identity.not_after(),
            is_generated: generated.is_some_and(|it| Arc::ptr_eq(it, identity)),
        };
        let mut certificates: Vec<CertificateEnd> = identities.into_iter().map(end).collect();
        certificates
            .sort_by(|one, other| (one.not_after, &one.name).cmp(&(other.not_after, &other.name)));
        let mut seen = HashSet::new();
        certificates.retain(|it| seen.insert((it.name.clone(), it.key.clone())));
        Self { certificates }
    }

    /// Those that should have been replaced by `now`, the first to end first.
    fn ending(&self, now: SystemTime) -> impl Iterator<Item = &CertificateEnd> {
        self.certificates
            .iter()
            .filter(move |it| it.has_ended(now) || ends_soon(it.not_before, it.not_after, now))
    }

    /// Returns the certificate's part of `kettle ctl status`.
    pub(crate) fn status(&self, now: SystemTime) -> CertificatesStatus {
        let seconds = |time: Duration| i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
        let mut status = CertificatesStatus::default();
        for end in self.ending(now) {
            status.ending += 1;
            if status.soonest.len() < SHOWN_MAX {
                let left = end.not_after.duration_since(now);
                status.soonest.push(CertificateStatus {
                    name: end.name.clone(),
                    key: end.key.clone(),
                    not_after: unix(end.not_after),
                    seconds_left: left.map_or_else(|past| -seconds(past.duration()), seconds),
                });
            }
        }
        status
    }
}

impl CertificateEnd {
    fn has_ended(&self, now: SystemTime) -> bool {
        self.not_after < now
    }

    fn warning(&self, now: SystemTime) -> String {
        let Self { name, key, not_after, .. } = self;
        let end = Utc(*not_after);
        let ends = match self.has_ended(now) {
            true => format!("expired at {end}, so clients refuse it"),
            false => format!("ends at {end}"),
        };
        let help = match self.is_generated {
            true => "reload, and kettle makes a new one",
            false => "put a renewed one in its place and reload",
        };
        format!("the certificate for {name} ({key}) {ends}; {help}")
    }
}

impl NamedCounters for CertificateEnds {
    fn write(&self, writer: &mut MetricWriter<'_>) -> fmt::Result {
        let moments = |of: fn(&CertificateEnd) -> SystemTime| {
            let labels = |it: &CertificateEnd| vec![it.name.clone(), it.key.clone()];
            self.certificates.iter().map(move |it| (labels(it), unix(of(it))))
        };
        let not_after = Metric {
            name: "certificate_not_after_seconds",
            help: "When a certificate that is shown ends, in Unix time",
            labels: LABELS,
        };
        writer.gauges(&not_after, moments(|it| it.not_after))?;
        let not_before = Metric {
            name: "certificate_not_before_seconds",
            help: "When a certificate that is shown begins to be valid, in Unix time",
            labels: LABELS,
        };
        writer.gauges(&not_before, moments(|it| it.not_before))
    }
}

/// Which warnings were given in the last day. They are told apart by their texts, so a renewed certificate that ends soon
/// gets its own. Days are those of a clock that nobody sets: one that jumps brings no flood.
#[derive(Debug, Default)]
pub(crate) struct EndsTold(HashMap<String, Instant>);

impl EndsTold {
    /// The warnings that are due, and one that counts those beyond [`LOGGED_MAX`].
    pub(crate) fn due(
        &mut self,
        ends: &CertificateEnds,
        now: SystemTime,
        clock: Instant,
    ) -> Vec<String> {
        self.0.retain(|_, told| clock.duration_since(*told) < DAY);
        let mut due: Vec<String> = Vec::new();
        let mut beyond = 0;
        for warning in ends.ending(now).map(|it| it.warning(now)) {
            if self.0.contains_key(&warning) {
                continue;
            }
            match due.len() < LOGGED_MAX {
                true => due.push(warning.clone()),
                false => beyond += 1,
            }
            self.0.insert(warning, clock);
        }
        if beyond > 0 {
            due.push(format!(
                "{beyond} more certificates end soon or have ended; `kettle check` names them all"
            ));
        }
        due
    }
}

fn unix(moment: SystemTime) -> u64 {
    moment.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

const LABELS: &[&str] = &["name", "key"];
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Lines of the log that one look adds.
const LOGGED_MAX: usize = 20;
/// Certificates that a status names.
const SHOWN_MAX: usize = 10;

#[cfg(test)]
mod tests;

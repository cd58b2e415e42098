//! When an authority wants a certificate to be renewed, and how far it is believed.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::{DAY, HOUR, LATEST, Standing, fraction};

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

impl Standing {
    /// The window of the certificate that is there, and of no other, as its authority said it.
    pub(super) fn window_in_force(&self) -> Option<&RenewalWindow> {
        let identifier = self.installed.as_ref()?.identifier.as_ref()?;
        self.window.as_ref().filter(|window| {
            // If the authority says nothing, there is only the moment to ask again.
            window.certificate == *identifier && window.start < window.end
        })
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
                let certificate = certificate.to_owned();
                let start = moment;
                let end = moment;
                Some(RenewalWindow { certificate, start, end, moment, ask_again })
            }
        };
        is_other
    }
}

/// The time an authority is not asked for a window if it does not say.
pub const WINDOW_ASKED: Duration = Duration::from_hours(6);

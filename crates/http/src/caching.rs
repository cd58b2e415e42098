//! Decides whether a response may be kept and for how long (RFC 9111), as a cache shared by all clients of a site.
//!
//! No clock here: times come in. The decision is numbers to keep with the response, so that a hit needs a subtraction and
//! no field is read again. The wishes of clients in `Cache-Control` are not looked at: they are advice (RFC 9111 §5.2.1), and a
//! way to reach the backend at will.

pub mod control;
pub mod key;
#[cfg(test)]
mod tests;
pub mod vary;

use std::time::{Duration, SystemTime};

use crate::date;
use crate::field;
use control::Control;

/// Field lines of a message.
pub type FieldLines<'f> = &'f [(&'f [u8], &'f [u8])];

/// A response as it came from the backend.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// Its status.
    pub status: u16,
    /// Its fields.
    pub fields: FieldLines<'a>,
    /// When it was asked for.
    pub asked: SystemTime,
    /// When its head had come.
    pub answered: SystemTime,
    /// The field by which the backend speaks to this cache alone (RFC 9213).
    pub targeted: Option<&'a str>,
}

/// The operator's word on responses that do not say it themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Defaults {
    /// The time a response is fresh that says nothing; zero: it is not kept.
    pub fresh_for: Duration,
    /// Up to how long one is that says when it was last modified: for a tenth of the time since then (RFC 9111 §4.2.2).
    pub heuristic_max: Duration,
    /// The additional time for which it may be used when the backend fails.
    pub stale_if_error: Duration,
}

/// The time a kept response may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Freshness {
    /// Its age when it came (RFC 9111 §4.2.3).
    pub age: Duration,
    /// Up to which age it is fresh.
    pub fresh_for: Duration,
    /// The additional time for which it may be used while it is validated (RFC 5861 §3).
    pub stale_while_revalidate: Duration,
    /// The additional time for which it may be used when the backend fails (RFC 5861 §4).
    pub stale_if_error: Duration,
}

/// The ways in which a kept response may be used now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// It is sent; this much longer.
    Fresh(Duration),
    /// It is sent, and validated for those who come later.
    WhileRevalidating,
    /// It is sent only if the backend fails.
    IfError,
    /// It is not sent before it is validated.
    No,
}

/// Why a response is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotKept {
    /// Its status says that it answers this request only.
    Status,
    /// `no-store`.
    NoStore,
    /// `private`.
    Private,
    /// It sets a cookie.
    SetCookie,
    /// It depends on more than the request says.
    VaryAll,
    /// It says neither how long it is fresh nor by what it could be validated.
    NotFresh,
    /// The same, since its time was over before it was sent to us: by its own `Age`.
    Outlived,
}

impl NotKept {
    /// A word for the log and for `Cache-Status`.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            NotKept::Status => "status",
            NotKept::NoStore => "no-store",
            NotKept::Private => "private",
            NotKept::SetCookie => "set-cookie",
            NotKept::VaryAll => "vary",
            NotKept::NotFresh => "not-fresh",
            NotKept::Outlived => "outlived",
        }
    }
}

/// Decides whether a response is kept, for how long, and whether it says that it is for everybody.
///
/// # Errors
/// [`NotKept`].
pub fn evaluate(answer: &Answer<'_>, defaults: &Defaults) -> Result<Freshness, NotKept> {
    let control = Control::of(answer.fields, answer.targeted);
    let is_known =
        is_cacheable_by_default(answer.status) || matches!(answer.status, 302 | 303 | 307);
    if !matches!(answer.status, 200..=205 | 207..=303 | 305..=599)
        || (control.must_understand && !is_known)
    {
        return Err(NotKept::Status);
    }
    if control.forbids_storing() {
        return Err(NotKept::NoStore);
    }
    if control.private {
        return Err(NotKept::Private);
    }
    if values(answer.fields, "set-cookie").next().is_some() {
        return Err(NotKept::SetCookie);
    }
    if vary::names(answer.fields).is_none() {
        return Err(NotKept::VaryAll);
    }
    let freshness = freshness(answer, &control, defaults);
    let is_explicit = lifetime(answer, &control).is_some();
    let is_validatable = has(answer.fields, "etag") || has(answer.fields, "last-modified");
    if !(is_validatable && is_explicit) {
        // By the response's own words. The time it was on its way, and a clock of its server's that is late, make it older, and
        // no other kind of response: those who wait for it share it, and later ones ask once for all of them.
        let is_timed = is_explicit || !freshness.fresh_for.is_zero();
        let said = |stale: Option<Duration>| stale.filter(|_| is_timed && control.may_be_stale());
        let stale = said(control.stale_while_revalidate).max(said(control.stale_if_error));
        match freshness.fresh_for + stale.unwrap_or_default() {
            Duration::ZERO => return Err(NotKept::NotFresh),
            usable_for if usable_for <= said_age(answer) => return Err(NotKept::Outlived),
            _ => {}
        }
    }
    Ok(freshness)
}

/// The same for a response that a 304 with these fields has validated: it is kept for as long as they say.
#[must_use]
pub fn revalidated(answer: &Answer<'_>, defaults: &Defaults) -> Freshness {
    freshness(answer, &Control::of(answer.fields, answer.targeted), defaults)
}

/// True if a response says itself for how long it is fresh.
#[must_use]
pub fn is_explicit(answer: &Answer<'_>) -> bool {
    lifetime(answer, &Control::of(answer.fields, answer.targeted)).is_some()
}

fn freshness(answer: &Answer<'_>, control: &Control, defaults: &Defaults) -> Freshness {
    let explicit = lifetime(answer, control);
    let may_default = is_cacheable_by_default(answer.status) || control.public;
    let fresh_for = match explicit {
        Some(explicit) => explicit,
        None if may_default => heuristic(answer, defaults).unwrap_or(defaults.fresh_for),
        None => Duration::ZERO,
    };
    // `s-maxage` forbids stale use (RFC 9111 §5.2.2.10) where the response does not itself say how long it may be.
    let operator =
        if control.s_maxage.is_some() { Duration::ZERO } else { defaults.stale_if_error };
    let stale = |said: Option<Duration>, otherwise: Duration| {
        if control.may_be_stale() { said.unwrap_or(otherwise) } else { Duration::ZERO }
    };
    Freshness {
        age: initial_age(answer),
        fresh_for,
        stale_while_revalidate: stale(control.stale_while_revalidate, Duration::ZERO),
        stale_if_error: stale(control.stale_if_error, operator),
    }
}

/// The time the response says that it is fresh (RFC 9111 §4.2.1).
fn lifetime(answer: &Answer<'_>, control: &Control) -> Option<Duration> {
    if control.no_cache {
        return Some(Duration::ZERO);
    }
    control.s_maxage.or(control.max_age).or_else(|| {
        let expires = sole(answer.fields, "expires").filter(|_| !control.is_targeted)?;
        // A text that is no date is in the past (RFC 9111 §5.3).
        let expires = expires.and_then(read_date);
        let date = date_of(answer).unwrap_or(answer.answered);
        Some(expires.and_then(|at| at.duration_since(date).ok()).unwrap_or_default())
    })
}

/// A tenth of the time that the content had not changed for, where the operator wants that.
fn heuristic(answer: &Answer<'_>, defaults: &Defaults) -> Option<Duration> {
    let modified = sole(answer.fields, "last-modified")?.and_then(read_date)?;
    let since = date_of(answer).unwrap_or(answer.answered).duration_since(modified).ok()?;
    let is_wanted = !defaults.heuristic_max.is_zero();
    is_wanted.then(|| (since / 10).min(defaults.heuristic_max))
}

/// RFC 9111 §4.2.3. A clock that went backwards makes a response look younger, never older than it can be.
fn initial_age(answer: &Answer<'_>) -> Duration {
    let since = |earlier: SystemTime| answer.answered.duration_since(earlier).unwrap_or_default();
    let apparent = date_of(answer).map(since).unwrap_or_default();
    apparent.max(said_age(answer) + since(answer.asked))
}

/// Returns its age by its `Age` when it was sent to us.
fn said_age(answer: &Answer<'_>) -> Duration {
    // Of a list the first member counts, and what stands behind a number makes it none the younger.
    let first = values(answer.fields, "age").next();
    let first = first.and_then(|it| it.split(|byte| matches!(byte, b',' | b';')).next());
    let said = first.map(field::trim).and_then(field::saturating_decimal);
    Duration::from_secs(said.unwrap_or_default().min(SECONDS_MAX))
}

fn date_of(answer: &Answer<'_>) -> Option<SystemTime> {
    sole(answer.fields, "date")?.and_then(read_date)
}

/// Reads a date in whatever case (RFC 9111 §4.2).
fn read_date(value: &[u8]) -> Option<SystemTime> {
    let mut is_in_word = false;
    let fold = |byte: &u8| {
        let folded = if is_in_word { byte.to_ascii_lowercase() } else { byte.to_ascii_uppercase() };
        is_in_word = byte.is_ascii_alphabetic();
        folded
    };
    let mut text: Vec<u8> = value.iter().map(fold).collect();
    if let Some(zone) = text.last_chunk_mut().filter(|zone| *zone == b"Gmt") {
        *zone = *b"GMT";
    }
    date::parse(&text)
}

impl Freshness {
    /// Returns how the response may be used when it has been here for so long.
    #[must_use]
    pub fn after(&self, here: Duration) -> Use {
        let age = self.age.saturating_add(here);
        let Some(late) = age.checked_sub(self.fresh_for).filter(|_| age >= self.fresh_for) else {
            return Use::Fresh(self.fresh_for.saturating_sub(age));
        };
        if late < self.stale_while_revalidate {
            Use::WhileRevalidating
        } else if late < self.stale_if_error {
            Use::IfError
        } else {
            Use::No
        }
    }
}

/// True if a response with this status is one that the operator's default is for (RFC 9110 §15.1).
fn is_cacheable_by_default(status: u16) -> bool {
    matches!(status, 200 | 203 | 204 | 300 | 301 | 308 | 404 | 405 | 410 | 414 | 501)
}

/// True if a response to a request of an unsafe method makes what is kept of its URI invalid (RFC 9111 §4.4).
#[must_use]
pub fn invalidates(method: &str, status: u16) -> bool {
    !matches!(method, "GET" | "HEAD" | "OPTIONS" | "TRACE") && matches!(status, 200..=399)
}

pub(crate) fn values<'f>(fields: FieldLines<'f>, name: &str) -> impl Iterator<Item = &'f [u8]> {
    let is_it = move |line: &&(&[u8], &[u8])| line.0.eq_ignore_ascii_case(name.as_bytes());
    fields.iter().filter(is_it).map(|(_, value)| *value)
}

fn has(fields: FieldLines<'_>, name: &str) -> bool {
    values(fields, name).next().is_some()
}

/// The value of a field that may stand once: `None` without it, `Some(None)` if it stands more often.
fn sole<'f>(fields: FieldLines<'f>, name: &str) -> Option<Option<&'f [u8]>> {
    let mut values = values(fields, name);
    let first = values.next()?;
    Some(values.next().is_none().then_some(first))
}

/// 68 years: more than anybody means, and far from any overflow (RFC 9111 §1.2.2).
pub(crate) const SECONDS_MAX: u64 = 1 << 31;

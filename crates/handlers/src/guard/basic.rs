//! Names and passwords (RFC 7617): credentials that were right a moment ago are taken again, others are checked on another thread.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kettle_exchange::error_page::HttpError;
use kettle_exchange::request::Request;
use kettle_runtime::client_address::ClientHost;
use kettle_tls::mac::{Mac, MacKey};
use quick_cache::unsync::Cache;
use tokio::sync::watch;
use zeroize::Zeroizing;

use super::password::{self, fits};
use super::users::{Users, UsersMistake};
use super::{Guards, Refusal};

/// The credentials that a route demands.
#[derive(Debug)]
pub(super) struct BasicAuth {
    users: Users,
    challenge: String,
}

/// Whose password was right.
pub(super) struct Verdicts {
    /// By keyed hash: no password is kept.
    key: MacKey,
    right: RefCell<Cache<Mac, Right>>,
    /// The checks under way. A page asks for all that is on it at once, with the same password.
    under_way: RefCell<HashMap<Mac, watch::Receiver<Option<Verdict>>>>,
}

/// The outcome of a check.
#[derive(Clone)]
enum Verdict {
    Right(Arc<str>),
    Wrong,
    Busy,
}

#[derive(Clone)]
struct Right {
    user: Arc<str>,
    until: Duration,
}

impl Verdicts {
    pub(super) fn new() -> Self {
        let right = RefCell::new(Cache::new(VERDICTS_MAX));
        Self { key: MacKey::random(), right, under_way: RefCell::default() }
    }

    /// Returns what was or is being found out about these credentials; else the caller is to find it out.
    async fn known(&self, tag: &Mac, now: Duration) -> Result<Verdict, Check<'_>> {
        loop {
            let known = self.right.borrow().get(tag).cloned();
            if let Some(right) = known.filter(|right| now < right.until) {
                return Ok(Verdict::Right(right.user));
            }
            let under_way = self.under_way.borrow().get(tag).cloned();
            let Some(mut under_way) = under_way else {
                let (tell, told) = watch::channel(None);
                self.under_way.borrow_mut().insert(*tag, told);
                return Err(Check { verdicts: self, tag: *tag, tell });
            };
            // The task that checked may have gone without a result.
            if let Ok(verdict) = under_way.wait_for(Option::is_some).await
                && let Some(verdict) = &*verdict
            {
                return Ok(verdict.clone());
            }
        }
    }

    fn tag(&self, users: u64, credentials: &[u8]) -> Mac {
        self.key.hash(&[&users.to_be_bytes(), credentials])
    }
}

/// A check that others may wait for.
struct Check<'v> {
    verdicts: &'v Verdicts,
    tag: Mac,
    tell: watch::Sender<Option<Verdict>>,
}

impl Check<'_> {
    fn end(self, verdict: &Verdict, until: Duration) {
        if let Verdict::Right(user) = verdict {
            let right = Right { user: Arc::clone(user), until };
            self.verdicts.right.borrow_mut().insert(self.tag, right);
        }
        self.tell.send_replace(Some(verdict.clone()));
    }
}

impl Drop for Check<'_> {
    fn drop(&mut self) {
        self.verdicts.under_way.borrow_mut().remove(&self.tag);
    }
}

impl BasicAuth {
    /// Reads the users of a route.
    pub(super) fn load(settings: &kettle_config::BasicAuth) -> Result<Self, UsersMistake> {
        password::note_processors();
        let users = Users::read(&settings.users.value, password::threads())?;
        let challenge = format!("Basic realm=\"{}\", charset=\"UTF-8\"", settings.realm);
        Ok(Self { users, challenge })
    }

    /// Lets those with the right password pass, and returns their name.
    pub(super) async fn check(
        &self,
        guards: &Guards,
        request: &Request<'_>,
    ) -> Result<Arc<str>, Refusal> {
        let refused = |reason| {
            let fields = vec![("www-authenticate", self.challenge.clone())];
            Refusal::new(reason, HttpError { status: 401, fields })
        };
        let credentials = request.head.sole_header("authorization").and_then(decode);
        let credentials = credentials.ok_or_else(|| refused("no-credentials"))?;
        let (name, password) = credentials.split_once(':').ok_or_else(|| refused(WRONG))?;
        let verdicts = &guards.verdicts;
        let tag = verdicts.tag(self.users.number, credentials.as_bytes());
        let now = guards.clock.monotonic();
        let verdict = match verdicts.known(&tag, now).await {
            Ok(verdict) => verdict,
            Err(check) => {
                let verdict = self.verify(name, password, request.client.host()).await;
                check.end(&verdict, now + VERDICT_AGE_MAX);
                verdict
            }
        };
        match verdict {
            Verdict::Right(user) => Ok(user),
            // A name is as secret as a password that somebody typed in its place.
            Verdict::Wrong => Err(refused(WRONG)),
            Verdict::Busy => Err(Refusal::new("passwords-busy", 503)),
        }
    }

    async fn verify(&self, name: &str, password: &str, client: ClientHost) -> Verdict {
        let (hash, is_known) = self.users.hash(name);
        let password = Zeroizing::new(password.as_bytes().to_vec());
        match fits(hash, password, client).await {
            Ok(is_right) if is_right & is_known => Verdict::Right(name.into()),
            Ok(_) => Verdict::Wrong,
            Err(_) => Verdict::Busy,
        }
    }
}

/// The name, a colon and the password, out of the value of `authorization`.
fn decode(value: &[u8]) -> Option<Zeroizing<String>> {
    let (scheme, rest) = value.split_at_checked(SCHEME.len())?;
    let encoded = rest.strip_prefix(b" ")?.trim_ascii();
    let decoded = STANDARD.decode(encoded).ok().filter(|_| scheme.eq_ignore_ascii_case(SCHEME))?;
    String::from_utf8(decoded).ok().map(Zeroizing::new)
}

/// The log's word for what does not let its user pass.
const WRONG: &str = "credentials";
const SCHEME: &[u8] = b"Basic";
/// The time a right password is believed. A reload forgets at once.
const VERDICT_AGE_MAX: Duration = Duration::from_mins(5);
/// Right passwords that a worker remembers.
const VERDICTS_MAX: usize = 4096;

#[cfg(test)]
mod tests;

//! A job for a site at an authority: what it takes, and what its errors are put down to.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::SystemTime;

use instant_acme::{AccountCredentials, Error, Identifier, Problem};
use serde::{Deserialize, Serialize};
use tokio::sync::Mutex;

use crate::client::Client;
use crate::persist::Record;
use crate::plan::{Blame, Purpose};
use crate::programs::Warden;
use crate::protocol::Kind;
use crate::server::{Server, in_one_line};
use crate::state::StateFolder;
use crate::wishes::{Authority, Site};

/// The parts needed for an order.
pub struct Job<'a> {
    /// The site that the certificate is for.
    pub site: &'a Site,
    /// The authority that is asked.
    pub authority: &'a Authority,
    /// The URL of its directory, or of the one for rehearsals.
    pub directory: &'a str,
    /// The state.
    pub state: &'a StateFolder,
    /// The server, which answers challenges.
    pub server: &'a Server,
    /// The warden, which has records written.
    pub warden: &'a Warden,
    /// The client with which the authority is asked.
    pub client: &'a Client,
    /// Which accounts are being made.
    pub accounts: &'a Accounts,
    /// When the account was made that is used, as far as that is known.
    pub account: Cell<Option<SystemTime>>,
    /// The purpose of the certificate: not all names of the site, where some do not validate.
    pub purpose: Purpose,
}

/// Why there is no certificate.
#[derive(Debug)]
pub struct Failure {
    /// To whom it is put down.
    pub blame: Blame,
    /// The reason.
    pub reason: String,
    /// The kind of the last challenge that was answered.
    pub kind: Option<Kind>,
    /// The names that did not validate, each with its reason.
    pub refused: Vec<(String, String)>,
    /// Those that did.
    pub validated: Vec<String>,
}

/// An account as it is kept.
#[derive(Serialize, Deserialize)]
pub(crate) struct KeptAccount {
    /// Nothing where the authority knows it no longer.
    pub(crate) credentials: Option<AccountCredentials>,
    /// The contacts at which its authority reaches somebody.
    pub(crate) contact: Vec<String>,
    /// When the last ones were made.
    #[serde(default)]
    pub(crate) made: Vec<SystemTime>,
    /// The record that names it in the DNS, where the authority looks there.
    #[serde(default)]
    pub(crate) record: Option<Record>,
}

/// The accounts of this process: who needs one first makes it, and the others wait.
#[derive(Default)]
pub struct Accounts {
    /// By directory, what whoever looks for its account holds meanwhile.
    making: RefCell<HashMap<String, Rc<Mutex<()>>>>,
}

impl Accounts {
    pub(crate) fn of(&self, directory: &str) -> Rc<Mutex<()>> {
        Rc::clone(self.making.borrow_mut().entry(directory.to_owned()).or_default())
    }

    /// Forgets the account that a job has used, unless another one has taken its place meanwhile. Says if so.
    fn forget(&self, job: &Job<'_>) -> bool {
        let Some(kept) = job.state.account::<KeptAccount>(job.directory) else { return false };
        let is_used = kept.made.last().copied() == job.account.get();
        is_used && {
            let kept = KeptAccount { credentials: None, record: None, ..kept };
            job.state.keep_account(job.directory, &kept).is_ok()
        }
    }
}

impl Failure {
    pub(crate) fn new(blame: Blame, reason: impl Into<String>) -> Self {
        let refused = Vec::new();
        let validated = Vec::new();
        Self { blame, reason: reason.into(), kind: None, refused, validated }
    }

    /// That names did not validate, each with its reason, while others did.
    pub(crate) fn of_names(refused: Vec<(String, String)>, validated: Vec<String>) -> Self {
        let reasons: Vec<&str> = refused.iter().map(|(_, reason)| reason.as_str()).collect();
        let failure = Self::new(Blame::Validation, reasons.join("; "));
        Self { refused, validated, ..failure }
    }

    pub(crate) fn here(what: &str, error: impl std::fmt::Display) -> Self {
        Self::new(Blame::Here, format!("{what}: {error}"))
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::here("the state folder", error)
    }
}

impl Job<'_> {
    /// Returns the blame for an error, and its reason with all that the authority said.
    pub(crate) fn failure(&self, error: Error) -> Failure {
        self.client.forget_directory();
        let name = &self.authority.name;
        match error {
            Error::Api(problem) => {
                let mut text = format!("{name} says: {}", text_of(&problem));
                if is_gone(&problem) && self.accounts.forget(self) {
                    text += "; another account is made, and records in the DNS that name the old one have to be changed";
                }
                let failure = Failure::new(blame_of(&problem, self.client.notes().status), text);
                Failure { refused: refused_names(&problem), ..failure }
            }
            // An answer that is no JSON comes from something in front of the authority.
            Error::Json(error) => {
                let status = self.client.notes().status.unwrap_or_default();
                let reason = format!("{name} answers {status}, and not as an authority: {error}");
                Failure::new(Blame::Authority, reason)
            }
            other => Failure::new(Blame::Authority, format!("{name}: {other}")),
        }
    }
}

/// Returns the party that can mend a problem (RFC 8555 §6.7).
fn blame_of(problem: &Problem, status: Option<u16>) -> Blame {
    let kind = problem.r#type.as_deref().unwrap_or_default();
    match kind.strip_prefix("urn:ietf:params:acme:error:").unwrap_or_default() {
        "rateLimited" | "serverInternal" | "badNonce" => Blame::Authority,
        "userActionRequired" | "externalAccountRequired" => Blame::Operator,
        _ if is_gone(problem) => Blame::Authority,
        "unauthorized" => Blame::Operator,
        "connection" | "dns" | "tls" | "caa" | "incorrectResponse" => Blame::Validation,
        _ if matches!(status, Some(429 | 500..)) => Blame::Authority,
        "alreadyReplaced" => Blame::Authority,
        _ => Blame::Result,
    }
}

/// True if the authority may have something against what the order says of another certificate.
pub(crate) fn is_about_the_order(error: &Error) -> bool {
    match error {
        Error::Api(problem) => {
            let kind = problem.r#type.as_deref().unwrap_or_default();
            // Pebble says so of a certificate that it does not find: an error of the server.
            !["rateLimited", "badNonce", "accountDoesNotExist"]
                .iter()
                .any(|own| kind.ends_with(own))
        }
        // It was not echoed (RFC 9773 §5), or the authority knows nothing of it.
        Error::Unsupported(_) => true,
        Error::Other(error) => error.to_string().starts_with("replaces"),
        _ => false,
    }
}

/// True if the same may go well the next time.
pub(crate) fn is_passing(error: &Error) -> bool {
    let Error::Api(problem) = error else { return false };
    let kind = problem.r#type.as_deref().unwrap_or_default();
    ["rateLimited", "badNonce", "serverInternal"].iter().any(|passing| kind.ends_with(passing))
}

/// The names that the authority has something against (RFC 8555 §6.7.1).
fn refused_names(problem: &Problem) -> Vec<(String, String)> {
    let of = problem.subproblems.iter().filter_map(|sub| {
        let name = match sub.identifier.as_ref()? {
            Identifier::Dns(name) => name.clone(),
            Identifier::Ip(address) => address.to_string(),
            _ => return None,
        };
        Some((name, in_one_line(sub.to_string())))
    });
    of.collect()
}

/// A problem document in one line.
pub(crate) fn text_of(problem: &Problem) -> String {
    let mut text = problem.detail.clone().unwrap_or_else(|| "no reason".to_owned());
    if let Some(kind) = &problem.r#type {
        text += &format!(" ({kind})");
    }
    for sub in &problem.subproblems {
        text += &format!("; {sub}");
    }
    in_one_line(text)
}

/// True if the authority does not know the account any more, or has put it out of use.
fn is_gone(problem: &Problem) -> bool {
    let kind = problem.r#type.as_deref().unwrap_or_default();
    let says = |word: &str| problem.detail.as_deref().is_some_and(|detail| detail.contains(word));
    kind.ends_with(":accountDoesNotExist")
        || kind.ends_with(":unauthorized") && (says("deactivated") || says("revoked"))
}

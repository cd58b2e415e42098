//! The account at an authority: made once, kept beside the state, and made anew where the authority knows it no longer.

use std::time::{Duration, SystemTime};

use instant_acme::{Account, ExternalAccountKey, NewAccount};

use crate::job::{Failure, Job, KeptAccount};
use crate::plan::Blame;
use crate::protocol::Level;

/// The account for an order, which is made if there is none.
///
/// # Errors
/// If the authority cannot be asked, or gives none.
pub(crate) async fn of(job: &Job<'_>) -> Result<Account, Failure> {
    let making = job.accounts.of(job.directory);
    let is_made = making.lock().await;
    let kept = job.state.account::<KeptAccount>(job.directory);
    let made = kept.as_ref().map_or_else(Vec::new, |kept| kept.made.clone());
    let Some((credentials, contact)) = kept.and_then(|it| Some((it.credentials?, it.contact)))
    else {
        return make(job, made).await;
    };
    drop(is_made);
    job.account.set(made.last().copied());
    let builder = Account::builder_with_http(Box::new(job.client.clone()));
    let account = builder.from_credentials(credentials).await;
    let account = account.map_err(|error| job.failure(error))?;
    let wished = &job.authority.contact;
    if contact == *wished {
        return Ok(account);
    }
    let contact: Vec<&str> = wished.iter().map(String::as_str).collect();
    account.update_contacts(&contact).await.map_err(|error| job.failure(error))?;
    // A key that is kept is read again rather than held twice: it cannot be copied.
    if let Some(kept) = job.state.account::<KeptAccount>(job.directory) {
        let kept = KeptAccount { contact: wished.clone(), ..kept };
        job.state.keep_account(job.directory, &kept)?;
    }
    Ok(account)
}

async fn make(job: &Job<'_>, mut made: Vec<SystemTime>) -> Result<Account, Failure> {
    let authority = job.authority;
    let now = SystemTime::now();
    let age = |made: &SystemTime| now.duration_since(*made).unwrap_or_else(|it| it.duration());
    made.retain(|made| age(made) < MADE_COUNTED);
    if made.len() >= MADE_MAX {
        let reason = format!(
            "{} has given {MADE_MAX} accounts within a day and knows none of them: no other one is made today",
            authority.name
        );
        return Err(Failure::new(Blame::Operator, reason));
    }
    let contact: Vec<&str> = authority.contact.iter().map(String::as_str).collect();
    let wanted = NewAccount {
        contact: &contact,
        terms_of_service_agreed: authority.accepts_terms,
        only_return_existing: false,
    };
    // The directory for rehearsals is another authority's, as far as accounts go.
    let external =
        authority.external_account.as_ref().filter(|_| job.directory == authority.directory);
    let external = external.map(|(id, key)| ExternalAccountKey::new(id.clone(), key));
    let builder = Account::builder_with_http(Box::new(job.client.clone()));
    let created = builder.create(&wanted, job.directory.to_owned(), external.as_ref()).await;
    let (account, credentials) = created.map_err(|error| {
        let failure = job.failure(error);
        Failure { reason: format!("no account is made: {}", failure.reason), ..failure }
    })?;
    made.push(now);
    job.account.set(Some(now));
    let contact = authority.contact.clone();
    let kept = KeptAccount { credentials: Some(credentials), contact, made, record: None };
    job.state.keep_account(job.directory, &kept)?;
    job.server.log(
        Level::Info,
        format!("there is an account at {} now: {}", authority.name, account.id()),
    );
    Ok(account)
}

/// Accounts at an authority in a day: one that knows none of them is not well.
const MADE_MAX: usize = 3;

/// The time in which they are counted.
const MADE_COUNTED: Duration = Duration::from_hours(24);

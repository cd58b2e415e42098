//! The account at an authority: made once, kept beside the state, and made anew where the authority knows it no longer.

use instant_acme::{Account, AccountCredentials, ExternalAccountKey, NewAccount};
use serde::{Deserialize, Serialize};

use crate::job::{Failure, Job};
use crate::protocol::Level;

/// An account as it is kept.
#[derive(Serialize, Deserialize)]
struct Kept {
    credentials: AccountCredentials,
    /// How its authority reaches somebody.
    contact: Vec<String>,
}

/// The account for an order, which is made if there is none.
///
/// # Errors
/// If the authority cannot be asked, or gives none.
pub(crate) async fn of(job: &Job<'_>) -> Result<Account, Failure> {
    let Some(kept) = job.state.account::<Kept>(job.directory) else { return make(job).await };
    let builder = Account::builder_with_http(Box::new(job.client.clone()));
    let account = builder.from_credentials(kept.credentials).await;
    let account = account.map_err(|error| job.failure(error))?;
    let wished = &job.authority.contact;
    if kept.contact == *wished {
        return Ok(account);
    }
    let contact: Vec<&str> = wished.iter().map(String::as_str).collect();
    account.update_contacts(&contact).await.map_err(|error| job.failure(error))?;
    // What is kept is read again rather than held twice: it cannot be copied.
    if let Some(kept) = job.state.account::<Kept>(job.directory) {
        let kept = Kept { contact: wished.clone(), ..kept };
        job.state.keep_account(job.directory, &kept)?;
    }
    Ok(account)
}

async fn make(job: &Job<'_>) -> Result<Account, Failure> {
    let authority = job.authority;
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
    let made = builder.create(&wanted, job.directory.to_owned(), external.as_ref()).await;
    let (account, credentials) = made.map_err(|error| {
        let failure = job.failure(error);
        Failure { reason: format!("no account is made: {}", failure.reason), ..failure }
    })?;
    let kept = Kept { credentials, contact: authority.contact.clone() };
    job.state.keep_account(job.directory, &kept)?;
    job.server.log(
        Level::Info,
        format!("there is an account at {} now: {}", authority.name, account.id()),
    );
    Ok(account)
}

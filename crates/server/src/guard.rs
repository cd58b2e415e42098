//! What a route asks of a request before anything is looked for: where it comes from, and who asks.
//!
//! The rules are the route's and shared by all workers; what is remembered of clients is a worker's own.

mod basic;
mod networks;
mod password;
mod users;

use std::fmt;

pub use users::UsersMistake;

use crate::clock::{Clock, CoarseClock};
use crate::error_page::HttpError;
use crate::request::Request;
use crate::response::Notes;
use basic::{BasicAuth, Verdicts};
use networks::Networks;

/// Who may ask a route.
#[derive(Debug)]
pub struct Guard {
    networks: Option<Networks>,
    basic: Option<BasicAuth>,
}

impl Guard {
    /// That of a route; none if everybody may ask it.
    ///
    /// # Errors
    /// What is wrong with its file of users.
    pub fn load(route: &kettle_config::Route) -> Result<Option<Self>, UsersMistake> {
        let basic = route.basic_auth.as_ref().map(BasicAuth::load).transpose()?;
        let guard = Self { networks: Networks::of(route), basic };
        Ok((guard.networks.is_some() || guard.basic.is_some()).then_some(guard))
    }

    /// Lets a request pass, and notes who asks; or notes why not.
    ///
    /// # Errors
    /// What to answer instead.
    pub async fn admit(
        &self,
        guards: &Guards,
        request: &Request<'_>,
        notes: &mut Notes,
    ) -> Result<(), HttpError> {
        if self.networks.as_ref().is_some_and(|networks| !networks.allow(request.client)) {
            notes.refusal = Some("network");
            return Err(403.into());
        }
        if let Some(basic) = &self.basic {
            basic.check(guards, request, notes).await?;
        }
        Ok(())
    }
}

/// What a worker remembers of clients.
pub struct Guards {
    clock: Box<dyn Clock>,
    verdicts: Verdicts,
}

impl Guards {
    /// Nothing remembered yet, by this clock.
    #[must_use]
    pub fn with_clock(clock: Box<dyn Clock>) -> Self {
        Self { clock, verdicts: Verdicts::new() }
    }
}

impl Default for Guards {
    fn default() -> Self {
        Self::with_clock(Box::new(CoarseClock))
    }
}

impl fmt::Debug for Guards {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Guards").finish_non_exhaustive()
    }
}

//! What a site does before it looks for a route.

use std::sync::Arc;

use kettle_config::Site;
use kettle_http::target::Target;

use super::conditions;
use crate::error_page::HttpError;
use crate::fixed::Fixed;
use crate::redirect::pattern::{Paths, Rewritten};
use crate::response::{ConfiguredFields, Response};
use crate::words::{Asked, WordSource};

/// One `[[site.before]]`.
#[derive(Debug)]
pub struct Before {
    settings: kettle_config::Before,
    paths: Option<Paths>,
    fixed: Option<Arc<Fixed>>,
}

/// What comes of it.
#[derive(Debug)]
pub enum Beforehand {
    /// The site goes on.
    Nothing,
    /// The site goes on with another path, and perhaps another query.
    Rewritten(Rewritten),
    /// The client is sent elsewhere.
    Redirect(Response),
    /// This is the answer.
    Fixed(Arc<Fixed>),
}

impl Before {
    /// That of a configuration.
    #[must_use]
    pub fn new(site: &Site, settings: &kettle_config::Before) -> Self {
        let configured = || ConfiguredFields::new(&site.headers, &[]);
        let fixed = settings.respond.as_ref();
        Self {
            settings: settings.clone(),
            paths: Paths::before(settings),
            fixed: fixed.map(|it| Arc::new(Fixed::new(it, configured()))),
        }
    }

    /// True if it is for a request by this path.
    #[must_use]
    pub fn is_for(&self, path: &str, asked: Asked<'_>, words: &WordSource) -> bool {
        let Self { settings, .. } = self;
        settings.place().has(path)
            && settings.regex.as_ref().is_none_or(|regex| regex.fits(path))
            && conditions::hold(&settings.when, asked, words)
    }

    /// What it does with a request for this target.
    ///
    /// # Errors
    /// As with the redirects and rewrites of a route.
    pub fn ask(
        &self,
        target: Target<'_>,
        asked: Asked<'_>,
        words: &WordSource,
        configured: &ConfiguredFields,
    ) -> Result<Beforehand, HttpError> {
        let Self { paths, fixed, .. } = self;
        if !self.is_for(target.path, asked, words) {
            return Ok(Beforehand::Nothing);
        }
        if let Some(paths) = paths {
            if let Some(response) = paths.redirect(target, asked, words, configured)? {
                return Ok(Beforehand::Redirect(response));
            }
            if let Some(rewritten) = paths.rewritten(target)? {
                return Ok(Beforehand::Rewritten(rewritten));
            }
        }
        Ok(fixed.as_ref().map_or(Beforehand::Nothing, |fixed| Beforehand::Fixed(Arc::clone(fixed))))
    }
}

//! The steps of a site before it looks for a route.

use std::sync::Arc;

use kettle_config::{Config, Diagnostic, RuleIndex, Site};
use kettle_exchange::error_page::HttpError;
use kettle_exchange::response::{ConfiguredFields, Response};
use kettle_http::target::Target;

use super::conditions::{Folders, When};
use crate::files::file_route::SiteRoutes;
use crate::fixed::Fixed;
use crate::redirect::pattern::{Paths, Rewritten};
use crate::words::{Asked, WordSource};

/// All `[[site.before]]` of a site, by the paths they are for. There may be ten thousand.
#[derive(Debug, Default)]
pub struct AllBefore {
    all: Box<[Before]>,
    index: RuleIndex,
}

impl AllBefore {
    /// Those of a configuration. Opens the folders below which they look for files.
    pub(super) fn open(
        config: &Config,
        (site, routes): (&Site, &SiteRoutes<'_>),
        folders: &mut Folders<'_>,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Self {
        let before = |it: &kettle_config::Before| {
            let own = (&*it.when, it.regex.as_ref(), None);
            Before::new(site, it, When::open((config, routes), own, folders, diagnostics))
        };
        Self {
            all: site.before.iter().map(before).collect(),
            index: RuleIndex::new(site.before.iter().map(kettle_config::Before::key)),
        }
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Those that may be for a path, in order, with their numbers: behind one, or all.
    pub fn for_path(
        &self,
        path: &str,
        behind: Option<usize>,
    ) -> impl Iterator<Item = (usize, &Before)> {
        let numbers = self.index.candidates(path);
        let numbers = match behind {
            Some(behind) => numbers.behind(behind),
            None => numbers,
        };
        numbers.filter_map(|number| Some((number, self.all.get(number)?)))
    }

    /// True if the same ones are for both paths.
    #[must_use]
    pub fn take_alike(&self, one: &str, other: &str, asked: Asked<'_>, words: &WordSource) -> bool {
        let of = |path| {
            let candidates = self.for_path(path, None);
            candidates.filter(move |(_, it)| it.is_for(path, asked, words)).map(|(it, _)| it)
        };
        of(one).eq(of(other))
    }
}

/// One `[[site.before]]`.
#[derive(Debug)]
pub struct Before {
    settings: kettle_config::Before,
    when: When,
    paths: Option<Paths>,
    fixed: Option<Arc<Fixed>>,
}

/// The outcome of it.
#[derive(Debug)]
pub enum Beforehand {
    /// The site goes on with another path, and perhaps another query.
    Rewritten(Rewritten),
    /// The client is sent elsewhere.
    Redirect(Response),
    /// This is the answer.
    Fixed(Arc<Fixed>),
}

impl Before {
    fn new(site: &Site, settings: &kettle_config::Before, when: When) -> Self {
        let configured = || ConfiguredFields::new(&site.headers, &[]);
        let fixed = settings.respond.as_ref();
        Self {
            settings: settings.clone(),
            when,
            paths: Paths::before(settings),
            fixed: fixed
                .map(|it| Arc::new(Fixed::new(it, (settings.regex.as_ref(), None), configured()))),
        }
    }

    /// True if it is for a request by this path.
    pub fn is_for(&self, path: &str, asked: Asked<'_>, words: &WordSource) -> bool {
        let Self { settings, .. } = self;
        settings.place().has(path)
            && settings.regex.as_ref().is_none_or(|regex| regex.fits(path))
            && self.when.holds(path, asked, words)
    }

    /// Returns the outcome for a request with this target; `None` if the site goes on.
    ///
    /// # Errors
    /// As with the redirects and rewrites of a route.
    pub fn ask(
        &self,
        target: Target<'_>,
        asked: Asked<'_>,
        words: &WordSource,
        configured: &ConfiguredFields,
    ) -> Result<Option<Beforehand>, HttpError> {
        let Self { paths, fixed, .. } = self;
        if !self.is_for(target.path, asked, words) {
            return Ok(None);
        }
        if let Some(paths) = paths {
            if let Some(response) = paths.redirect(target, asked, words, configured)? {
                return Ok(Some(Beforehand::Redirect(response)));
            }
            if let Some(rewritten) = paths.rewritten(target, asked_path(asked), asked, words)? {
                return Ok(Some(Beforehand::Rewritten(rewritten)));
            }
        }
        Ok(fixed.as_ref().map(|fixed| Beforehand::Fixed(Arc::clone(fixed))))
    }
}

/// The path that the client asked for.
fn asked_path(asked: Asked<'_>) -> &str {
    asked.head.target().map_or("", |target| target.path)
}

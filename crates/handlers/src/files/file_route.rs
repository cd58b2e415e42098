//! The way the files below a prefix are served: a route of the configuration, with its root opened.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use kettle_config::{
    CacheControl, Coding, DenyPatterns, IfModifiedSince, Missing, PlaceKey, Route, RouteIndex, Site,
};
use kettle_exchange::response::ConfiguredFields;
use kettle_http::conditional::ModifiedSince;
use rustix::io::Errno;

use super::generation::Generation;
use super::mime::ContentTypes;
use super::precompressed::CompressionRules;
use super::programs::{AllPrograms, Programs};
use super::root::{Dotfiles, Root};
use crate::guard::DeniedFiles;
use crate::redirect::tries::Tries;

/// A prefix and the files that answer below it.
#[derive(Debug)]
pub struct FileRoute {
    /// No other route of this process has or had this number, reloads included.
    pub number: u64,
    /// Without its last slash; empty for the whole site.
    pub prefix: String,
    /// The root when the route was made.
    pub root: Arc<Root>,
    /// The findings of workers about its files.
    pub generation: Generation,
    /// True if the operator was told that the root is not there.
    is_root_missed: AtomicBool,
    /// File names that answer for a folder.
    pub index: Vec<String>,
    /// The routes that may answer for such a file. They may ask for more.
    pub others: Option<OtherRoutes>,
    /// Files that answer for no path.
    pub denied: Option<DeniedFiles>,
    /// Files that are run, or that nobody gets.
    pub programs: Option<Programs>,
    /// True if requests of any method are looked at: another route or a program may answer.
    pub takes_all_methods: bool,
    /// The paths that are looked for in place of the one asked for.
    pub tries: Option<Tries>,
    /// True if a backend or a program answers where no file does.
    pub leaves_missing: bool,
    /// The file that answers where there is none, by its path below the root, with its slash.
    pub fallback: Option<String>,
    /// True if it answers for folders without an index file, too.
    pub falls_back_for_folders: bool,
    /// Paths on the site that it does not answer for.
    fallback_except: DenyPatterns,
    /// True if clients are not told of its paths.
    pub is_internal: bool,
    /// True if folders without an index file are listed.
    pub listing: bool,
    /// True if OPTIONS is answered.
    pub answers_options: bool,
    /// Compressed siblings to look for.
    pub codings: Vec<Coding>,
    /// The types that are compressed where there is no such sibling.
    pub compression: CompressionRules,
    /// Both.
    pub offered: Vec<Coding>,
    /// True if other hosts have the same files with the same times.
    pub same_files: bool,
    /// The words of its responses on the state of files, and what conditions ask of it.
    pub validation: Validation,
    /// `cache-control` by pattern.
    cache_control: CacheControl,
    /// Content types by name.
    pub types: ContentTypes,
    /// The operator's fields.
    pub configured: ConfiguredFields,
}

/// The words of responses on the state of files, and what conditions of requests ask of it.
#[derive(Clone, Copy, Debug)]
pub struct Validation {
    /// True if they have an `ETag`.
    pub has_etag: bool,
    /// True if they have a `Last-Modified`.
    pub has_date: bool,
    /// Which dates say that a file is unchanged.
    pub since: ModifiedSince,
    /// The most parts of a file in one response.
    pub ranges_max: u8,
}

impl Validation {
    /// That of a route.
    #[must_use]
    pub fn of(route: &Route) -> Self {
        let since = match route.if_modified_since {
            IfModifiedSince::Before => ModifiedSince::Before,
            IfModifiedSince::Exact => ModifiedSince::Exact,
            IfModifiedSince::Off => ModifiedSince::Off,
        };
        let has_etag = route.etag;
        let has_date = route.last_modified;
        Self { has_etag, has_date, since, ranges_max: route.max_ranges }
    }
}

/// A site, as its routes see each other.
#[derive(Debug)]
pub struct SiteRoutes<'s> {
    site: &'s Site,
    /// Its routes by their places.
    pub index: Arc<RouteIndex>,
    /// The numbers of the routes of each place. Where there are several, their conditions say which one answers.
    by_place: HashMap<PlaceKey<'s>, Vec<usize>>,
    /// The programs of the whole configuration.
    programs: Option<&'s AllPrograms>,
}

impl<'s> SiteRoutes<'s> {
    /// The routes of a site.
    #[must_use]
    pub fn of(site: &'s Site) -> Self {
        let mut by_place: HashMap<_, Vec<usize>> = HashMap::new();
        for (number, route) in site.routes.iter().enumerate() {
            by_place.entry(route.key()).or_default().push(number);
        }
        // A valid configuration has no expressions that are too large.
        let index = Arc::new(RouteIndex::of(&site.routes).unwrap_or_default());
        Self { site, index, by_place, programs: None }
    }

    /// The same in a configuration with these programs.
    #[must_use]
    pub fn with_programs(self, programs: &'s AllPrograms) -> Self {
        Self { programs: Some(programs), ..self }
    }
}

/// The other routes of a site, as one that has files sees them.
#[derive(Clone, Debug)]
pub struct OtherRoutes {
    index: Arc<RouteIndex>,
    /// The routes that are of one place with this one.
    own: Box<[usize]>,
    /// This one: its conditions hold where it is asked, and those of the others are not known here.
    number: Option<usize>,
    /// The part of a path that `root` replaces.
    replaced: Box<str>,
    /// True if what the site has before routes is asked of each path that files lead to.
    is_asked_anew: bool,
}

impl OtherRoutes {
    /// Those that a route is beside; none if it is alone.
    #[must_use]
    pub fn beside(routes: &SiteRoutes<'_>, route: &Route) -> Option<Self> {
        let is_asked_anew = !routes.site.before.is_empty();
        (is_asked_anew || routes.site.routes.len() > 1).then(|| {
            let own = routes.by_place.get(&route.key()).cloned().unwrap_or_default();
            let is_it = |number: &usize| {
                routes.site.routes.get(*number).is_some_and(|it| std::ptr::eq(it, route))
            };
            Self {
                index: Arc::clone(&routes.index),
                number: own.iter().copied().find(is_it),
                own: own.into(),
                replaced: route.replaced().into(),
                is_asked_anew,
            }
        })
    }

    /// The path of a file below the root, if one of them answers for it.
    #[must_use]
    pub fn path_of(&self, relative: &str) -> Option<String> {
        let path = format!("{}/{relative}", self.replaced);
        let holds = |number| Some(number) == self.number || !self.own.contains(&number);
        let answering = self.index.find(&path, holds);
        answering.is_none_or(|answering| !self.own.contains(&answering)).then_some(path)
    }

    /// The path of a file below the root that stands for the one that was asked for, if the site is to be asked for it.
    #[must_use]
    pub fn led_to(&self, relative: &str, asked: &str) -> Option<String> {
        match self.is_asked_anew && relative != asked {
            true => Some(format!("{}/{relative}", self.replaced)),
            false => self.path_of(relative),
        }
    }
}

impl FileRoute {
    /// Opens the root of a route.
    ///
    /// # Errors
    /// The kernel's, if that is not possible.
    pub fn open(routes: &SiteRoutes<'_>, route: &Route, root: &Path) -> Result<Self, Errno> {
        let prefix = route.replaced();
        let dotfiles = match (route.dotfiles, prefix) {
            (true, _) => Dotfiles::Served,
            (false, "") => Dotfiles::WellKnown,
            (false, _) => Dotfiles::Hidden,
        };
        let programs = Programs::of(route, root, routes.programs);
        let others = OtherRoutes::beside(routes, route);
        let mut index = route.index.clone();
        if let Some(name) = programs.as_ref().and_then(Programs::index_name) {
            index.retain(|it| it != name);
            index.insert(0, name.to_owned());
        }
        let leads = |path: &str| others.as_ref().is_some_and(|it| it.path_of(path).is_some());
        let fallback = route.fallback.as_deref().map(|it| it.trim_start_matches('/'));
        let takes_all_methods = programs.as_ref().is_some_and(|it| it.are_run)
            || fallback.into_iter().chain(index.iter().map(String::as_str)).any(leads);
        let root = Root::open(root, route.symlinks, dotfiles)?;
        let mut offered = route.precompressed.clone();
        offered.extend(route.compress.iter().filter(|it| !route.precompressed.contains(it)));
        let number = next_number();
        Ok(Self {
            number,
            prefix: prefix.to_owned(),
            root: Arc::new(root),
            generation: Generation::of(number),
            is_root_missed: AtomicBool::new(false),
            index,
            others,
            denied: DeniedFiles::of(route),
            takes_all_methods,
            tries: Tries::of(route),
            leaves_missing: programs.as_ref().is_some_and(|it| it.missing.is_some())
                || route.missing == Missing::Backend && route.backend.is_some(),
            programs,
            fallback: route.fallback.clone(),
            falls_back_for_folders: route.fallback_for_folders,
            fallback_except: DenyPatterns::new(&route.fallback_except),
            is_internal: route.internal,
            listing: route.listing,
            answers_options: route.answer_options,
            codings: route.precompressed.clone(),
            compression: CompressionRules::of(route),
            offered,
            same_files: route.same_files,
            validation: Validation::of(route),
            cache_control: CacheControl::new(&route.cache_control),
            types: ContentTypes::new(route),
            configured: ConfiguredFields::of(routes.site, route),
        })
    }

    /// Tells the operator when the root begins to be missed, and when that is over. That a disk did not answer, or this process has
    /// no room for another file, says neither.
    pub fn note_root(&self, outcome: Result<(), Errno>) {
        if let Err(Errno::AGAIN | Errno::MFILE | Errno::NFILE | Errno::NOMEM) = outcome {
            return;
        }
        let is_missed = outcome.is_err();
        if self.is_root_missed.load(Ordering::Relaxed) == is_missed
            || self.is_root_missed.swap(is_missed, Ordering::Relaxed) == is_missed
        {
            return;
        }
        let root = self.root.path();
        match outcome {
            Err(error) => tracing::warn!(?root, %error, "a route's root cannot be opened any more"),
            Ok(()) => tracing::info!(?root, "a route's root is there again"),
        }
    }

    /// True if an application runs some of its files.
    #[must_use]
    pub fn runs_programs(&self) -> bool {
        self.programs.as_ref().is_some_and(|programs| programs.are_run)
    }

    /// Returns the part of a path below the prefix: nothing, or a slash and more.
    #[must_use]
    pub fn below<'p>(&self, path: &'p str) -> Option<&'p str> {
        let below = path.strip_prefix(self.prefix.as_str())?;
        (below.is_empty() || below.starts_with('/')).then_some(below)
    }

    /// True if the fallback answers for what is not found by a path on the site.
    #[must_use]
    pub fn falls_back_for(&self, path: &str) -> bool {
        self.fallback.is_some() && !self.fallback_except.fit(path)
    }

    /// The `cache-control` of a file, by its path on the site: that of the first pattern it fits.
    #[must_use]
    pub fn cache_control(&self, path: &str) -> Option<&str> {
        self.cache_control.value(path)
    }
}

/// A number that no other route of this process has or had.
#[must_use]
pub fn next_number() -> u64 {
    NEXT_NUMBER.fetch_add(1, Ordering::Relaxed)
}

static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

#[cfg(test)]
mod tests {
    use kettle_config::Expression;

    use super::*;

    #[test]
    fn files_of_other_places_are_another_route_s() {
        let route = |prefix: &str| Route { prefix: Some(prefix.to_owned()), ..Route::default() };
        let prefixes = ["/", "/a/b/index.html", "/a/home.html", "/index.html/", "/a", "/a"];
        let mut site = Site { routes: prefixes.map(route).into(), ..Site::default() };
        let regex = Some(Expression::new(r"\.php$").unwrap());
        site.routes.push(Route { regex, ..Route::default() });
        let routes = SiteRoutes::of(&site);
        for (number, relative, path) in [
            (0, "index.html", Some("/index.html")),
            (0, "home.html", None),
            (0, "index.php", Some("/index.php")),
            (0, "a/b/index.html", Some("/a/b/index.html")),
            (4, "b/index.html", Some("/a/b/index.html")),
            (4, "home.html", Some("/a/home.html")),
            // The second of one place may answer in place of the first.
            (5, "index.html", None),
            (1, "", None),
        ] {
            let others = OtherRoutes::beside(&routes, &site.routes[number]).unwrap();
            assert_eq!(others.path_of(relative).as_deref(), path, "{number} {relative}");
        }
        let alone = Site { routes: vec![route("/")], ..Site::default() };
        assert!(OtherRoutes::beside(&SiteRoutes::of(&alone), &alone.routes[0]).is_none());
    }

    #[test]
    fn a_root_is_missed_where_it_is_not_there_and_not_where_a_disk_is_late() {
        let folder = tempfile::tempdir().unwrap();
        let route =
            FileRoute::open(&SiteRoutes::of(&Site::default()), &Route::default(), folder.path())
                .unwrap();
        let is_missed_after = |outcome| {
            route.note_root(outcome);
            route.is_root_missed.load(Ordering::Relaxed)
        };
        for (outcome, is_missed) in [(Err(Errno::NOENT), true), (Ok(()), false)] {
            assert_eq!(is_missed_after(outcome), is_missed);
            for passing in [Errno::AGAIN, Errno::MFILE, Errno::NFILE, Errno::NOMEM] {
                assert_eq!(is_missed_after(Err(passing)), is_missed, "{passing}");
            }
        }
    }
}

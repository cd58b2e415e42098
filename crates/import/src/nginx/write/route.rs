//! The routes of a site: which files answer below which prefix.

use std::path::{Path, PathBuf};

use kettle_config::{Origin, quoted};

use super::Writer;
use crate::nginx::location::{self, Kind, Location, Shut, shut};
use crate::nginx::scope::Scope;
use crate::nginx::syntax::Directive;

/// A route before it is written.
pub(super) struct Route {
    /// Without its last slash.
    prefix: String,
    pub(super) files: Option<PathBuf>,
    settings: Vec<(&'static str, String, Origin)>,
    origin: Origin,
}

impl Route {
    /// Where the file of a path lies.
    pub(super) fn file(&self, path: &str) -> Option<PathBuf> {
        let below = path.strip_prefix(self.prefix.as_str())?.trim_start_matches('/');
        Some(self.files.as_ref()?.join(below))
    }

    fn is_above(&self, prefix: &str) -> bool {
        let below = prefix.strip_prefix(self.prefix.as_str());
        below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
    }

    fn says_the_same(&self, other: &Self) -> bool {
        let told = |route: &Self| -> Vec<(&str, String)> {
            route.settings.iter().map(|(key, value, _)| (*key, value.clone())).collect()
        };
        told(self) == told(other) && other.files == self.file(&other.prefix)
    }

    pub(super) fn write(&self, writer: &mut Writer<'_>) {
        let Some(files) = &self.files else { return };
        let text = &mut writer.draft.text;
        let origin = Some(&self.origin);
        text.table("[[site.route]]", origin);
        if !self.prefix.is_empty() {
            text.set("prefix", quoted(&self.prefix), origin);
        }
        text.set("root", quoted(&files.display().to_string()), origin);
        for (key, value, origin) in &self.settings {
            text.set(key, value, Some(origin));
        }
    }
}

/// The route that a path belongs to.
pub(super) fn nearest<'r>(routes: &'r [Route], path: &str) -> Option<&'r Route> {
    let above = routes.iter().filter(|route| route.is_above(path));
    above.max_by_key(|route| route.prefix.len())
}

impl Writer<'_> {
    /// The routes of a server, or nothing where one of its places must not be served and cannot be left out.
    pub(super) fn routes(&mut self, server: &Scope<'_>) -> Option<Vec<Route>> {
        let mut locations = location::all(server);
        locations.sort_by_key(|location| (location.path.len(), location.directive.origin.at));
        let dots = locations.iter().any(|location| {
            location.kind == Kind::Pattern
                && location::is_of_dotfiles(&location.path)
                && shut(&location.scope).is_some()
        });
        let cached = self.patterns(&locations)?;
        let whole = locations.iter().any(|it| it.kind == Kind::Prefix && it.path == "/");
        let mut routes: Vec<Route> = Vec::new();
        if !whole {
            match shut(server) {
                Some(shut) => self.leave_out(&shut, "what no location is for", None),
                None if !self.has_root(server, "what no location is for") => {}
                None => routes.push(self.route(server, "", server.own(), &cached, dots)?),
            }
        }
        for location in locations.iter().filter(|location| location.kind == Kind::Prefix) {
            let prefix = location.path.trim_end_matches('/');
            let origin = &location.directive.origin;
            let what = format!("`location {}`", location.path);
            if let Some(shut) = shut(&location.scope) {
                if !self.can_be_left_out(&routes, location) {
                    self.refuse(&shut, &what);
                    return None;
                }
                let above = nearest(&routes, prefix).and_then(|above| above.file(&location.path));
                self.leave_out(&shut, &what, above.as_deref());
                continue;
            }
            if routes.iter().any(|route| route.prefix == prefix) {
                let message = format!("{what} is not carried over");
                self.draft.warn(origin, message, "another route has its prefix, but for the slash");
                continue;
            }
            if !self.has_root(&location.scope, &what) {
                continue;
            }
            let own = location.directive.inner();
            self.tell(own);
            let route = self.route(&location.scope, prefix, own, &cached, dots)?;
            let above = nearest(&routes, prefix);
            if above.is_some_and(|above| above.says_the_same(&route)) {
                continue;
            }
            if !location.path.ends_with('/') {
                let message = format!("`location {0}` is for {0}x, too", location.path);
                let instead = "a prefix of kettle stands for whole names between slashes";
                self.draft.warn(origin, message, instead);
            }
            routes.push(route);
        }
        self.exact(&locations, &routes)?;
        Some(routes)
    }

    /// `served` is what a route above would serve there, if something lay there.
    fn leave_out(&mut self, shut: &Shut<'_>, what: &str, served: Option<&Path>) {
        let message = format!("{what} is left out because of `{}`", spoken(shut.directive));
        let nothing = served.map(|path| {
            format!(
                "; nothing lies at {} now, and what is put there will be served",
                path.display()
            )
        });
        let instead = format!("{}{}", shut.why, nothing.unwrap_or_default());
        self.draft.warn(&shut.directive.origin, message, &instead);
    }

    /// nginx has a folder of its own where nobody names one.
    fn has_root(&mut self, scope: &Scope<'_>, what: &str) -> bool {
        let named = scope.find("root");
        let named = named.or(scope.own().iter().find(|directive| directive.name == "alias"));
        if named.is_none()
            && let Some(first) = scope.own().first()
        {
            let message = format!("{what} gets 404, because no root is named");
            let instead = "nginx would look into the folder `html` that it was installed with";
            self.draft.warn(&first.origin, message, instead);
        }
        named.is_some()
    }

    fn refuse(&mut self, shut: &Shut<'_>, what: &str) {
        let message = format!(
            "the server is left out: {what} must not be served as files because of `{}`",
            spoken(shut.directive)
        );
        self.draft.warn(&shut.directive.origin, message, shut.why);
    }

    /// Whether nothing lies there that the route above would serve.
    fn can_be_left_out(&self, routes: &[Route], location: &Location<'_>) -> bool {
        let Some(above) = nearest(routes, location.path.trim_end_matches('/')) else { return true };
        let Some(file) = above.file(&location.path) else { return true };
        if location.path.ends_with('/') || location.kind == Kind::Exact {
            return !self.surroundings.is_there(&file);
        }
        // `/foo` is for `/foobar`, too.
        let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else { return false };
        let name = name.to_string_lossy().into_owned();
        let names = self.surroundings.names_in(folder).unwrap_or_default();
        !names.iter().any(|other| other.starts_with(&name))
    }

    /// `cache_control` by pattern, as locations for one path and for regular expressions say; nothing where one of these
    /// guards files.
    fn patterns(&mut self, locations: &[Location<'_>]) -> Option<Vec<(String, String)>> {
        let mut cached = Vec::new();
        for location in locations.iter().filter(|location| location.kind == Kind::Exact) {
            let control = self.cache_control(&location.scope, location.directive.inner());
            if let Some(control) = control.filter(|_| shut(&location.scope).is_none()) {
                cached.push((location.path.clone(), control));
            }
        }
        for location in locations.iter().filter(|location| location.kind == Kind::Pattern) {
            let origin = &location.directive.origin;
            let what = format!("`location ~ {}`", location.path);
            if let Some(shut) = shut(&location.scope) {
                if location::is_of_dotfiles(&location.path) {
                    continue;
                }
                self.refuse(&shut, &what);
                return None;
            }
            let control = self.cache_control(&location.scope, location.directive.inner());
            let patterns = location::file_patterns(&location.path);
            match (control, patterns) {
                (Some(control), Some(patterns)) => {
                    self.tell(location.directive.inner());
                    cached.extend(patterns.into_iter().map(|one| (one, control.clone())));
                }
                _ => self.draft.warn(
                    origin,
                    format!("{what} is not carried over"),
                    "routes are chosen by prefix; its files answer by the route that they are below",
                ),
            }
        }
        Some(cached)
    }

    /// Locations for one path: nothing where one of them guards a file that is there.
    fn exact(&mut self, locations: &[Location<'_>], routes: &[Route]) -> Option<()> {
        for location in locations.iter() {
            let what = match location.kind {
                Kind::Exact => format!("`location = {}`", location.path),
                Kind::Named => format!("`location {}`", location.path),
                Kind::Prefix | Kind::Pattern => continue,
            };
            let origin = &location.directive.origin;
            match shut(&location.scope).filter(|_| location.kind == Kind::Exact) {
                Some(shut) if self.can_be_left_out(routes, location) => {
                    let above = nearest(routes, &location.path);
                    let file = above.and_then(|above| above.file(&location.path));
                    self.leave_out(&shut, &what, file.as_deref());
                }
                // Only who is led there by another directive gets it, and kettle leads nobody.
                Some(shut) if shut.directive.name == "internal" => {}
                Some(shut) => {
                    self.refuse(&shut, &what);
                    return None;
                }
                None if self.error_pages.contains(&location.path) => {}
                None if self
                    .cache_control(&location.scope, location.directive.inner())
                    .is_some() =>
                {
                    self.tell(location.directive.inner());
                }
                None => {
                    let instead = "the route that it is below answers";
                    self.draft.warn(origin, format!("{what} is not carried over"), instead);
                }
            }
        }
        Some(())
    }

    fn route(
        &mut self,
        scope: &Scope<'_>,
        prefix: &str,
        own: &[Directive],
        cached: &[(String, String)],
        has_no_dotfiles: bool,
    ) -> Option<Route> {
        let (files, files_origin) = self.files(scope, prefix, own)?;
        let settings =
            self.route_settings(scope, prefix, own, cached, has_no_dotfiles, &files_origin);
        let prefix = prefix.to_owned();
        Some(Route { prefix, files: Some(files), settings, origin: files_origin })
    }

    /// `root` goes before the whole path; `alias` stands for the prefix.
    fn files(
        &mut self,
        scope: &Scope<'_>,
        prefix: &str,
        own: &[Directive],
    ) -> Option<(PathBuf, Origin)> {
        let alias = own.iter().find(|directive| directive.name == "alias");
        let root = scope.find("root");
        let written = alias.or(root)?;
        let (text, place) = (written.word(0), &written.origin);
        if text.contains('$') {
            let message = "the server is left out: its files lie where a variable says";
            self.draft.warn(place, message, "write one server for each folder");
            return None;
        }
        let folder = self.below_prefix(text, place);
        let below = prefix.trim_start_matches('/');
        Some(match alias {
            Some(_) if !text.ends_with('/') && self.ends_with_slash(own, scope) => {
                let message =
                    format!("`alias {text}` has no slash at its end, but its location has");
                let instead =
                    "kettle takes it for a folder; nginx puts the rest of the path right behind it";
                self.draft.warn(place, message, instead);
                (folder, place.clone())
            }
            Some(_) => (folder, place.clone()),
            None if below.is_empty() => (folder, place.clone()),
            None => (folder.join(below), place.clone()),
        })
    }

    /// Whether the location with this block is written with a slash at its end.
    fn ends_with_slash(&self, own: &[Directive], scope: &Scope<'_>) -> bool {
        let is_own = |directive: &&Directive| std::ptr::eq(directive.inner(), own);
        let mut around = scope.outwards().flatten();
        around
            .find(is_own)
            .is_some_and(|location| location.words.last().is_some_and(|path| path.ends_with('/')))
    }

    /// A path that starts from nginx's prefix, which its program knows and its configuration does not.
    pub(super) fn below_prefix(&mut self, text: &str, origin: &Origin) -> PathBuf {
        if !Path::new(text).is_absolute() {
            let message =
                format!("`{text}` starts from nginx's prefix, taken for {}", self.prefix.display());
            self.draft.warn(origin, message, "`nginx -V` tells it; write the whole path");
        }
        let path = self.prefix.join(text);
        // One slash at the end more or less is the same folder.
        path.components().collect()
    }
}

/// A directive as it is named in a comment.
pub(super) fn spoken(directive: &Directive) -> String {
    let mut text = directive.name.clone();
    for word in &directive.words {
        text.push(' ');
        text.push_str(word);
    }
    match text.char_indices().nth(SPOKEN_MAX) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text,
    }
}

const SPOKEN_MAX: usize = 60;

//! Files of a place: where they lie, which of them are tried, and what answers where none is there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use kettle_config::{Template, quoted};

use super::Writer;
use super::answer::QUERIES;
use super::missing::Led;
use super::place::{Here, Spot};
use super::root::{ELSEWHERE, Root, is_as_sent, path_of, root_of};
use super::route::{Answer, Place, Route, Setting, spoken};
use super::settings::{elsewhere_of, symlinks_of};
use super::there::{Folder, prefix_of, say_alike};
use crate::nginx::location::{self, NAMED, Shut};
use crate::nginx::scope::Scope;
use crate::nginx::syntax::Directive;
use crate::nginx::variables::with_said;
use crate::offer::list;

struct Tries<'t> {
    directive: &'t Directive,
    paths: Vec<String>,
    fallback: Option<String>,
    /// The backend that is asked where nothing is there, and in which scope: by the same route.
    backend: Option<(Scope<'t>, &'t Directive)>,
    /// The routes of its own that answer there.
    led: Option<Led<'t>>,
    /// True if the paths of the place are others below its folder.
    is_below: bool,
}

impl Tries<'_> {
    /// True if what is not there is 404.
    fn ends(&self) -> bool {
        self.fallback.is_none() && self.backend.is_none() && self.led.is_none()
    }
}

impl Writer<'_> {
    pub(super) fn files<'t>(
        &mut self,
        scope: &Scope<'t>,
        route: Route,
        here: Here<'_, 't>,
    ) -> Result<Vec<Route>, Shut<'t>> {
        let tries = scope.own().iter().find(|it| it.name == "try_files");
        let words = tries.iter().flat_map(|it| it.words.iter().rev().skip(1));
        let is_raw = |word: &String| with_said(word, &self.said).is_some_and(|it| is_as_sent(&it));
        if !words.into_iter().any(is_raw) {
            return self.files_as(scope, route, here, true);
        }
        // The path that was sent is the path where nothing of it is encoded, and nothing follows; elsewhere that is not looked
        // for.
        let mut same = route.clone();
        same.when.push(AS_SENT.to_owned());
        let mut routes = self.files_as(scope, same, here, true)?;
        routes.extend(self.files_as(scope, route, here, false)?);
        Ok(routes)
    }

    /// The same; what was sent is the path, or is not looked for.
    fn files_as<'t>(
        &mut self,
        scope: &Scope<'t>,
        mut route: Route,
        here: Here<'_, 't>,
        is_path: bool,
    ) -> Result<Vec<Route>, Shut<'t>> {
        let (_, spot) = here;
        let Some(root) = root_of(spot, scope)?.or_else(|| self.usual_root(scope, spot)) else {
            if let Some(first) = scope.own().first().or(spot.location) {
                let message = format!("{} gets 404, because no root is named", spot.what());
                self.output.warn(&first.origin, message, NO_ROOT);
            }
            return Ok(vec![not_found(route)]);
        };
        let mut root = root;
        if route.rules.iter().any(|it| it.stays) && root.directive.name == "alias" {
            return Err(Shut { directive: root.directive, why: ELSEWHERE });
        }
        if let Some(by) = route.replaced.take() {
            let is_text = matches!(&route.key.place, Place::Text(text) if text.ends_with('/'));
            let is_plain = by.ends_with('/') && !root.strips && root.path.is_none();
            if !(is_text && is_plain && root.directive.name == "root") {
                return Err(Shut { directive: root.directive, why: ELSEWHERE });
            }
            root.folder.push(by.trim_matches('/'));
            root.strips = true;
        }
        let place = &root.directive.origin;
        let folder = self.below_prefix(&root.folder.display().to_string(), place);
        let mut tries = self.tries(scope, &root, here, is_path)?;
        let symlinks = symlinks_of(scope);
        let asked = prefix_of(&route, &root);
        let asked = asked.map(|prefix| Folder { path: &folder, prefix, symlinks });
        let mut routes = self.missing_files(scope, &route, here, &mut tries, asked.as_ref())?;
        if self.is_no_folder(&folder) {
            // Nothing but them answers.
            if routes.iter().any(|it| it.when.len() == route.when.len()) {
                return Ok(routes);
            }
            let message =
                format!("{} is not there, so that {} gets 404", folder.display(), spot.what());
            let help = "make it, and import anew: kettle starts with folders that are there";
            self.output.lose(place, message, help);
            return Ok(vec![not_found(route)]);
        }
        let mut backend = None;
        if let Some(tries) = &tries
            && let Some((scope, pass)) = &tries.backend
        {
            let passed = match pass.name.as_str() {
                "fastcgi_pass" => self.fastcgi(scope, pass, route.clone(), (spot, false))?,
                _ => self.pass(scope, pass, route.clone(), spot)?,
            };
            (route.settings, route.access) = (passed.settings, passed.access);
            backend = Some(passed.answer);
            if let Some(asked) = &asked {
                let there = asked.there_of(&tries.paths);
                routes.extend(self.other_methods(&route, scope, there));
            }
        }
        let settings = self.file_settings(scope, spot, &root, tries.as_ref());
        self.add_settings(&mut route, settings, spot);
        route.answer = match backend {
            Some(Answer::Backend(backend)) => Answer::Files(folder, Some(backend)),
            Some(Answer::Programs(None, backend)) => Answer::Programs(Some(folder), backend),
            _ => Answer::Files(folder, None),
        };
        route.origin = place.clone();
        routes.push(route);
        Ok(routes)
    }

    /// Adds what is said of files, where a backend of the same route does not say otherwise.
    fn add_settings(&mut self, route: &mut Route, settings: Vec<Setting>, spot: &Spot<'_>) {
        for (key, value, origin) in settings {
            match route.settings.iter().find(|(known, ..)| *known == key) {
                None => route.settings.push((key, value, origin)),
                Some((_, known, _)) if *known == value => {}
                Some(_) => {
                    let message = format!("`{key}` of {} is that of its backend", spot.what());
                    self.output.lose(
                        &origin,
                        message,
                        "files and a backend of one route have the same",
                    );
                }
            }
        }
    }

    /// The routes for what is not there of the files of a place, before the one of those that are.
    fn missing_files<'t>(
        &mut self,
        scope: &Scope<'t>,
        route: &Route,
        here: Here<'_, 't>,
        tries: &mut Option<Tries<'t>>,
        asked: Option<&Folder<'_>>,
    ) -> Result<Vec<Route>, Shut<'t>> {
        let mut routes = Vec::new();
        let is_missing = asked.is_some_and(|it| self.is_missing(it.path));
        let conditions = |folder: &Folder<'_>, paths: &[String]| match is_missing {
            true => Vec::new(),
            false => folder.none_of(paths),
        };
        let of_all = |folder: &Folder<'_>, tries: &Option<Tries<'t>>| match tries {
            None => Some(all_of_missing(folder)),
            Some(tries) => tries.ends().then(|| conditions(folder, &tries.paths)),
        };
        if let Some(shut) = location::asked_for_missing(scope) {
            let named = scope.named(shut.directive.words.last().map_or("", String::as_str));
            let is_plain = location::is_only_of_missing(shut.directive);
            let (Some(named), Some(folder)) = (named.filter(|_| is_plain), asked) else {
                return Err(shut);
            };
            let conditions = of_all(folder, tries).ok_or(shut)?;
            return self.missing(scope, route, here, Led::Named(named), conditions);
        }
        if let (Some(named), Some(folder)) = (location::decides_for_missing(scope), asked)
            && !is_missing
            && let Some(conditions) = of_all(folder, tries)
        {
            match self.missing(scope, route, here, Led::Named(named), conditions) {
                Ok(led) => routes = led,
                Err(_) => self.tell_of_loss(named, "what is not there gets 404"),
            }
        }
        if let Some(tries) = tries
            && let Some(led) = tries.led
        {
            let conditions = asked.map(|it| conditions(it, &tries.paths));
            let all = match conditions {
                Some(conditions) => self.missing(scope, route, here, led, conditions),
                None => Err(Shut { directive: tries.directive, why: NAMED }),
            };
            match all {
                Ok(led) => routes = led,
                Err(shut) if tries.is_below => return Err(shut),
                Err(_) => tries.fallback = Some(self.closed_named(tries.directive, led)),
            }
        }
        if let Some(folder) = asked {
            routes.extend(self.index_elsewhere(scope, route, here, folder));
        }
        Ok(routes)
    }

    /// The routes for what is there where a backend is asked for the rest: other methods than those of files reach nobody.
    fn other_methods(
        &mut self,
        route: &Route,
        scope: &Scope<'_>,
        there: Vec<String>,
    ) -> Vec<Route> {
        let headers = self.header_settings(scope, &route.origin);
        let of = |condition: String| {
            let refused = Answer::Text("{ status = 405 }".to_owned());
            let mut refused = Route::new(&route.key, refused, &route.origin);
            refused.when.clone_from(&route.when);
            refused.when.extend([OTHER_METHODS.to_owned(), condition]);
            refused.access.clone_from(&route.access);
            refused.settings.clone_from(&headers);
            refused
        };
        there.into_iter().map(of).collect()
    }

    /// The routes for folders without an index of their own, where a path of the whole site is one.
    fn index_elsewhere<'t>(
        &mut self,
        scope: &Scope<'t>,
        route: &Route,
        here: Here<'_, 't>,
        folder: &Folder<'_>,
    ) -> Vec<Route> {
        let Some((index, at)) = scope.find("index").and_then(|it| Some((it, elsewhere_of(it)?)))
        else {
            return Vec::new();
        };
        let (names, path) = index.words.split_at(at);
        let Some(path) = path.first() else { return Vec::new() };
        let mut conditions = vec![
            "{ of = \"{path}\", regex = \"/$\" }".to_owned(),
            folder.condition("folder", "{path}", true),
        ];
        let names: Vec<String> = names.iter().map(|name| format!("{{path}}{name}")).collect();
        conditions.extend(folder.none_of(&names));
        self.missing(scope, route, here, Led::Path(path, index), conditions).unwrap_or_default()
    }

    /// The folder that nginx looks into where nobody names one, where its package has made that.
    fn usual_root<'t>(&self, scope: &Scope<'t>, spot: &Spot<'t>) -> Option<Root<'t>> {
        let folder = PathBuf::from(USUAL_ROOT);
        let directive = scope.own().first().or(spot.location)?;
        let is_there = self.surroundings.is_there(&folder);
        is_there.then_some(Root { folder, directive, path: None, strips: false })
    }

    /// Writes the settings of the files of a place.
    fn file_settings<'t>(
        &mut self,
        scope: &Scope<'t>,
        spot: &Spot<'t>,
        root: &Root<'t>,
        tries: Option<&Tries<'t>>,
    ) -> Vec<Setting> {
        let place = &root.directive.origin;
        let mut settings = self.route_settings(scope, spot, place);
        if root.strips {
            settings.push(("strip_prefix", "true".to_owned(), place.clone()));
        }
        let looks_into_folders = |it: &Tries<'_>| it.paths.iter().any(|path| path.ends_with('/'));
        if tries.is_some_and(|it| !looks_into_folders(it)) {
            settings.retain(|(key, ..)| *key != "listing");
        }
        // Files and folders are what is looked for anyway.
        let said = tries.filter(|it| it.paths != ["{path}", "{path}/"]);
        let tried = said.map(|it| (it.paths.clone(), &it.directive.origin));
        let tried = tried.or_else(|| Some((vec![root.path.clone()?], place)));
        if let Some((paths, origin)) = tried {
            settings.push(("try", list(paths.iter().map(String::as_str)), origin.clone()));
        }
        if let Some(tries) = tries
            && let Some(fallback) = &tries.fallback
        {
            let origin = &tries.directive.origin;
            settings.push(("fallback", quoted(fallback), origin.clone()));
            // A folder that was found is not looked for any further.
            if looks_into_folders(tries) {
                settings.push(("fallback_for_folders", "false".to_owned(), origin.clone()));
            }
        }
        settings
    }

    /// True if something is not there, on a machine of which that can be said.
    pub(super) fn is_missing(&self, path: &Path) -> bool {
        let is_known = |it: &Path| self.surroundings.is_there(it);
        let mut above = path.ancestors().skip(1).filter(|it| it.parent().is_some());
        !is_known(path) && (above.any(is_known) || is_known(Path::new("/usr")))
    }

    /// The same of a folder, and true of what is something else, as `/dev/null`.
    pub(super) fn is_no_folder(&self, path: &Path) -> bool {
        self.is_missing(path) || self.surroundings.is_no_folder(path)
    }

    fn tries<'t>(
        &mut self,
        scope: &Scope<'t>,
        root: &Root<'_>,
        (spots, spot): Here<'_, 't>,
        is_path: bool,
    ) -> Result<Option<Tries<'t>>, Shut<'t>> {
        let Some(directive) = scope.own().iter().find(|it| it.name == "try_files") else {
            return Ok(None);
        };
        let shut = |why| Shut { directive, why };
        let Some((last, before)) = directive.words.split_last() else { return Ok(None) };
        if root.path.is_some() {
            return Err(shut(OTHER_FILES));
        }
        let is_below =
            root.strips || matches!(&spot.key.place, Place::Prefix(it) if !it.is_empty());
        let path = |word: &String| {
            // Below that folder nginx looks for the folder's own path.
            let word = with_said(word, &self.said)?;
            let word = word.replace("${document_root}", root.folder.to_str()?);
            let path = path_of(&word, spot)?;
            let is_of_place = path.starts_with("{path}") || !is_below;
            (is_of_place && Template::of_try(&path).is_some()).then_some(path)
        };
        let is_looked_for = |word: &&String| {
            is_path || !with_said(word, &self.said).is_some_and(|it| is_as_sent(&it))
        };
        let before = before.iter().filter(is_looked_for);
        let paths = before.map(path).collect::<Option<Vec<String>>>();
        let mut paths = paths.ok_or(shut(OTHER_FILES))?;
        let mut seen = BTreeSet::new();
        // A map that says nothing makes two alike.
        paths.retain(|it| seen.insert(it.clone()));
        let mut tries =
            Tries { directive, paths, fallback: None, backend: None, led: None, is_below };
        let prefix = match &spot.key.place {
            Place::Prefix(prefix) => prefix.as_str(),
            Place::Text(text) if root.strips => text.trim_end_matches('/'),
            _ => "",
        };
        // The query of the client goes along.
        let path = QUERIES.iter().find_map(|end| last.strip_suffix(end)).unwrap_or(last);
        let below =
            path.strip_prefix(prefix).filter(|it| it.starts_with('/') && !it.ends_with('/'));
        match last.strip_prefix('=') {
            Some("404") => {}
            Some(status) => match returned_status(status).filter(|_| !is_below) {
                Some(answer) => {
                    let path = self.named_answer(status, answer, &directive.origin);
                    let headers = self.header_settings(scope, &directive.origin);
                    let named = self.named_answers.get_mut(&path);
                    named.into_iter().for_each(|it| it.settings.extend(headers.clone()));
                    tries.fallback = Some(path);
                }
                None => self.tell_of_last(directive),
            },
            None if last.starts_with('@') => match scope.named(last) {
                None => self.tell_of_last(directive),
                // The prefix that a route takes off for its files, it takes off for its backend.
                Some(named) => match self.named_backend(scope, named).filter(|_| !is_below) {
                    Some(backend) => tries.backend = Some(backend),
                    None => tries.led = Some(Led::Named(named)),
                },
            },
            // The query of the client goes along with `fallback`.
            None => match below.filter(|it| !it.contains(['$', '?', '{'])) {
                Some(below)
                    if !self.asks_again && (is_below || path != last || !spots.asks_at(path)) =>
                {
                    tries.fallback = Some(below.to_owned());
                }
                _ => tries.led = Some(Led::Path(last, directive)),
            },
        }
        Ok(Some(tries))
    }

    fn tell_of_last(&mut self, directive: &Directive) {
        let message = format!("the last of `{}` is not carried over", spoken(directive));
        self.output.lose(&directive.origin, message, "what is not there gets 404");
    }

    /// The path where nobody is answered, in place of a location that would answer for what is not there.
    fn closed_named(&mut self, directive: &Directive, led: Led<'_>) -> String {
        self.lose_by(directive, "what is not there answers 403", CLOSED_NAMED);
        self.closed += 1;
        let name = match led {
            Led::Named(named) => named.word(0),
            Led::Path(..) => "@closed",
        };
        self.named_answer(name, Answer::Closed, &directive.origin)
    }

    /// Returns the backend to which a location without a path passes requests, where one route can say that of files and of a
    /// backend.
    fn named_backend<'t>(
        &self,
        scope: &Scope<'t>,
        named: &'t Directive,
    ) -> Option<(Scope<'t>, &'t Directive)> {
        let inner = scope.server().with_location(named);
        let pass = named.inner().iter().find(|it| it.name.ends_with("_pass"))?;
        let decides = ["if", "return", "rewrite", "set", "try_files", "limit_except"];
        let is_plain = (pass.name == "proxy_pass" || has_one_program(&inner, pass))
            && !named.inner().iter().any(|it| decides.contains(&&*it.name))
            && location::guarded(&inner).is_none();
        let said = |scope: &Scope<'_>| {
            let access = self.access(scope).ok()?;
            Some(access.into_iter().map(|(key, value, _)| (key, value)).collect::<Vec<_>>())
        };
        let is_alike = said(&inner).is_some_and(|own| Some(own) == said(scope));
        let is_one = is_plain && is_alike && say_alike(scope, &inner);
        is_one.then_some((inner, pass))
    }
}

/// The conditions for what is not there where nothing is tried.
fn all_of_missing(folder: &Folder<'_>) -> Vec<String> {
    let methods = "{ method = [\"GET\", \"HEAD\", \"POST\"] }".to_owned();
    vec![methods, folder.condition("any", "{path}", false)]
}

fn not_found(route: Route) -> Route {
    Route { answer: Answer::Text("{ status = 404 }".to_owned()), ..route }
}

/// Returns the answer with a status where no file is found.
fn returned_status(status: &str) -> Option<Answer> {
    let status: u16 = status.parse().ok().filter(|it| (200..600).contains(it))?;
    Some(Answer::Text(format!("{{ status = {status} }}")))
}

/// True if what is asked is one program, whatever the path.
fn has_one_program(scope: &Scope<'_>, pass: &Directive) -> bool {
    let mut params = scope.all("fastcgi_param").into_iter();
    let script = params.rfind(|it| it.word(0) == "SCRIPT_FILENAME");
    let is_asked = |value: &str| {
        ["$fastcgi_script_name", "$uri", "$request_filename"].iter().any(|it| value.contains(it))
    };
    pass.name == "fastcgi_pass" && script.is_some_and(|it| !is_asked(it.word(1)))
}

/// The condition on the methods by which files are not asked.
const OTHER_METHODS: &str = "{ method = [\"GET\", \"HEAD\"], not = true }";
const AS_SENT: &str = "{ of = \"{uri}\", regex = \"[%?]\", not = true }";
/// That of Debian's package.
const USUAL_ROOT: &str = "/usr/share/nginx/html";
const NO_ROOT: &str = "nginx would look into the folder `html` that it was installed with";
const CLOSED_NAMED: &str = "an application answers there in nginx, and it cannot be carried over";
const OTHER_FILES: &str =
    "`try` of a route has paths below its folder, and groups of its expression";

//! Files of a place: where they lie, which of them are tried, and what answers where none is there.

use std::path::{Path, PathBuf};

use kettle_config::{Template, quoted};

use super::Writer;
use super::answer::QUERIES;
use super::place::{Spot, aliased};
use super::route::{Answer, Place, Route, Setting, spoken};
use crate::nginx::location::{self, NAMED, Shut};
use crate::nginx::scope::Scope;
use crate::nginx::syntax::Directive;
use crate::nginx::variables::{Part, parts};
use crate::offer::list;

/// Where the files of a place lie.
pub(super) struct Root<'t> {
    pub(super) folder: PathBuf,
    pub(super) directive: &'t Directive,
    /// The path below the folder, where a request says a part of it.
    pub(super) path: Option<String>,
    /// True if the prefix of the place is no part of the path there.
    pub(super) strips: bool,
}

/// What a `try_files` looks for.
struct Tries<'t> {
    directive: &'t Directive,
    paths: Vec<String>,
    fallback: Option<String>,
    /// What is asked where nothing is there, and in which scope.
    backend: Option<(Scope<'t>, &'t Directive)>,
}

impl Writer<'_> {
    /// Gives a route the files of a place.
    pub(super) fn files<'t>(
        &mut self,
        scope: &Scope<'t>,
        mut route: Route,
        spot: &Spot<'t>,
    ) -> Result<Route, Shut<'t>> {
        if let Some(shut) = location::asked_for_missing(scope) {
            return Err(shut);
        }
        let none =
            |route: Route| Route { answer: Answer::Text("{ status = 404 }".to_owned()), ..route };
        let Some(root) = root_of(spot, scope)?.or_else(|| self.usual_root(scope, spot)) else {
            if let Some(first) = scope.own().first().or(spot.location) {
                let message = format!("{} gets 404, because no root is named", spot.what());
                self.output.warn(&first.origin, message, NO_ROOT);
            }
            return Ok(none(route));
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
        let tries = self.tries(scope, &root, spot)?;
        if self.is_missing(&folder) {
            let message =
                format!("{} is not there, so that {} gets 404", folder.display(), spot.what());
            let help = "make it, and import anew: kettle starts with folders that are there";
            self.output.lose(place, message, help);
            return Ok(none(route));
        }
        let mut backend = None;
        if let Some(tries) = &tries
            && let Some((scope, pass)) = &tries.backend
        {
            let passed = match pass.name.as_str() {
                "fastcgi_pass" => self.fastcgi(scope, pass, route.clone(), spot)?,
                _ => self.pass(scope, pass, route.clone(), spot)?,
            };
            (route.settings, route.access) = (passed.settings, passed.access);
            backend = Some(passed.answer);
        }
        let settings = self.file_settings(scope, spot, &root, tries.as_ref());
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
        route.answer = match backend {
            Some(Answer::Backend(backend)) => Answer::Files(folder, Some(backend)),
            Some(Answer::Programs(None, backend)) => Answer::Programs(Some(folder), backend),
            _ => Answer::Files(folder, None),
        };
        route.origin = place.clone();
        Ok(route)
    }

    /// The folder that nginx looks into where nobody names one, where its package has made that.
    fn usual_root<'t>(&self, scope: &Scope<'t>, spot: &Spot<'t>) -> Option<Root<'t>> {
        let folder = PathBuf::from(USUAL_ROOT);
        let directive = scope.own().first().or(spot.location)?;
        let is_there = self.surroundings.is_there(&folder);
        is_there.then_some(Root { folder, directive, path: None, strips: false })
    }

    /// What is said of the files of a place.
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
        let above = path.ancestors().skip(1).filter(|it| it.parent().is_some());
        let is_known = |it: &Path| self.surroundings.is_there(it);
        !is_known(path) && above.into_iter().any(is_known)
    }

    fn tries<'t>(
        &mut self,
        scope: &Scope<'t>,
        root: &Root<'_>,
        spot: &Spot<'t>,
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
            let path = path_of(word, spot)?;
            let is_of_place = path.starts_with("{path}") || !is_below;
            (is_of_place && Template::of_try(&path).is_some()).then_some(path)
        };
        let paths = before.iter().map(path).collect::<Option<Vec<String>>>();
        let mut tries = Tries {
            directive,
            paths: paths.ok_or(shut(OTHER_FILES))?,
            fallback: None,
            backend: None,
        };
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
            None if last.starts_with('@') => match self.named_backend(scope, last) {
                Ok(Some(backend)) => tries.backend = Some(backend),
                Ok(None) => self.tell_of_last(directive),
                Err(()) if is_below => return Err(shut(NAMED)),
                Err(()) => tries.fallback = Some(self.closed_named(directive, last)),
            },
            None => match below.filter(|it| !it.contains(['$', '?', '{'])) {
                Some(below) => tries.fallback = Some(below.to_owned()),
                None if is_below => return Err(shut(NAMED)),
                None => tries.fallback = Some(self.closed_named(directive, "@closed")),
            },
        }
        Ok(Some(tries))
    }

    fn tell_of_last(&mut self, directive: &Directive) {
        let message = format!("the last of `{}` is not carried over", spoken(directive));
        self.output.lose(&directive.origin, message, "what is not there gets 404");
    }

    /// The path where nobody is answered, in place of a location that would answer for what is not there.
    fn closed_named(&mut self, directive: &Directive, name: &str) -> String {
        let message = format!("what is not there answers 403 because of `{}`", spoken(directive));
        self.output.lose(&directive.origin, message, CLOSED_NAMED);
        self.closed += 1;
        self.named_answer(name, Answer::Closed, &directive.origin)
    }

    /// The `proxy_pass` of a location without a path that does nothing else; an error where it asks servers in another way, or others.
    fn named_backend<'t>(
        &self,
        scope: &Scope<'t>,
        name: &str,
    ) -> Result<Option<(Scope<'t>, &'t Directive)>, ()> {
        let is_it = |it: &&Directive| it.name == "location" && it.words.as_slice() == [name];
        let Some(named) = scope.settings().flatten().find(is_it) else { return Ok(None) };
        let inner = scope.server().with_location(named);
        let pass = named.inner().iter().find(|it| it.name.ends_with("_pass"));
        let Some(pass) = pass else { return Ok(None) };
        let decides = ["if", "return", "rewrite", "set", "try_files", "limit_except"];
        let is_plain = (pass.name == "proxy_pass" || has_one_program(&inner, pass))
            && !named.inner().iter().any(|it| decides.contains(&&*it.name))
            && location::guarded(&inner).is_none();
        let said = |scope: &Scope<'_>| {
            let access = self.access(scope).ok()?;
            Some(access.into_iter().map(|(key, value, _)| (key, value)).collect::<Vec<_>>())
        };
        let is_alike = said(&inner).is_some_and(|own| Some(own) == said(scope));
        if is_plain && is_alike { Ok(Some((inner, pass))) } else { Err(()) }
    }
}

/// What answers with a status where no file is found.
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

/// A path that is tried; nothing where a request would say more of it than kettle lets it.
fn path_of(word: &str, spot: &Spot<'_>) -> Option<String> {
    let mut path = String::new();
    for part in parts(word) {
        match part {
            Part::Text(text) if text.contains(['{', '}']) => return None,
            Part::Text(text) => path.push_str(text),
            Part::Variable("uri" | "document_uri") => path.push_str("{path}"),
            Part::Variable(name) if spot.has_group(name) => path.push_str(&format!("{{{name}}}")),
            Part::Variable(_) => return None,
        }
    }
    Some(path)
}

/// The folder that a route looks into; nothing where nobody names one.
pub(super) fn root_of<'t>(
    spot: &Spot<'t>,
    scope: &Scope<'t>,
) -> Result<Option<Root<'t>>, Shut<'t>> {
    let Some(directive) = scope.any_of(&["root", "alias"]).first().copied() else {
        return Ok(None);
    };
    let shut = |why| Shut { directive, why };
    let (text, is_alias) = (directive.word(0), directive.name == "alias");
    let root = |folder: &str| Root { folder: folder.into(), directive, path: None, strips: false };
    let is_prefix = matches!(&spot.key.place, Place::Prefix(prefix) if !prefix.is_empty());
    let is_own_alias = is_alias && spot.scope.own().iter().any(|it| std::ptr::eq(it, directive));
    if is_own_alias && spot.key.regex.is_some() && !text.contains('$') {
        // All of its paths are this one.
        return Err(shut(ELSEWHERE));
    }
    if text.contains('$') {
        let fixed = text.split('$').next().and_then(|it| it.rsplit_once('/')).map(|(it, _)| it);
        let fixed = fixed.filter(|it| !it.is_empty() && !is_prefix).ok_or(shut(VARIABLE))?;
        let rest =
            text.get(fixed.len()..).and_then(|it| path_of(it, spot)).ok_or(shut(VARIABLE))?;
        let path = if is_alias { rest } else { rest + "{path}" };
        let is_known = Template::of_try(&path).is_some()
            && (!is_alias || is_own_alias && spot.key.regex.is_some());
        return is_known
            .then(|| Some(Root { path: Some(path), ..root(fixed) }))
            .ok_or(shut(VARIABLE));
    }
    if let (true, Place::Exact(path), None) = (is_own_alias, &spot.key.place, &spot.key.regex)
        && let Some((folder, name)) = text.rsplit_once('/')
        && !text.ends_with(path.as_str())
        && !folder.is_empty()
        && !name.is_empty()
    {
        let path = format!("/{name}");
        let is_known = Template::of_try(&path).is_some();
        return is_known
            .then(|| Some(Root { path: Some(path), ..root(folder) }))
            .ok_or(shut(GLUED));
    }
    if !is_alias {
        // The place was made for an alias.
        let is_whole = !is_prefix || spot.key.regex.is_some();
        return is_whole.then(|| Some(root(text))).ok_or(shut(ELSEWHERE));
    }
    let path = match (&spot.key.regex, &spot.key.place) {
        (Some(_), Place::Any) => return Err(shut(ELSEWHERE)),
        (Some(_), Place::Prefix(path) | Place::Text(path) | Place::Exact(path)) => path.as_str(),
        (None, _) => spot.path.as_str(),
    };
    let file = aliased(scope, path).ok_or(shut(ELSEWHERE))?;
    if let Some(folder) = file.strip_suffix(path) {
        return Ok(Some(root(if folder.is_empty() { "/" } else { folder })));
    }
    let is_text = matches!(&spot.key.place, Place::Text(text) if text.ends_with('/'));
    match (&spot.key.regex, is_prefix, is_text && file.ends_with('/')) {
        (None, true, _) => Ok(Some(root(&file))),
        (None, false, true) => Ok(Some(Root { strips: true, ..root(&file) })),
        (Some(_), ..) => Err(shut(ELSEWHERE)),
        (None, false, false) => Err(shut(GLUED)),
    }
}

/// That of Debian's package.
const USUAL_ROOT: &str = "/usr/share/nginx/html";
const NO_ROOT: &str = "nginx would look into the folder `html` that it was installed with";
const CLOSED_NAMED: &str = "an application answers there in nginx, and it cannot be carried over";
const OTHER_FILES: &str =
    "`try` of a route has paths below its folder, and groups of its expression";
const VARIABLE: &str =
    "files lie below one folder, and a group of the location's expression says the rest";
const ELSEWHERE: &str = "its files lie elsewhere than below a folder with the same names";
const GLUED: &str = "its alias has no slash at its end, or is for one path of another name: write `root`, or the slash if that is meant";

//! The beginning of a request: the steps before routes, and the first route. The facts on files that this takes are looked up
//! on the way.

use std::borrow::Cow;

use kettle_exchange::error_page::HttpError;
use kettle_exchange::request::{FileQuestion, Program, Request, as_read_otherwise};
use kettle_exchange::response::{Answer, Response};
use kettle_http::target::Target;

use super::Failure;
use super::handling::{fixed_answer, path_of};
use crate::files::file_route::FileRoute;
use crate::files::handler::Files;
use crate::proxy_cache::Begun;
use crate::redirect::pattern::Rewritten;
use crate::route::before::Beforehand;
use crate::route::{Route, Site};
use crate::words::Asked;

/// The progress of a request before it waited for anything.
pub(in crate::respond) struct Start<'s> {
    /// The route that is to answer.
    pub(in crate::respond) route: Option<&'s Route>,
    /// The path by which it was found, if that is not the one that was asked for.
    pub(in crate::respond) path: Option<String>,
    /// The progress with what a store may have.
    pub(in crate::respond) begun: Option<Box<Begun>>,
    /// The last of what comes before routes that has done anything.
    behind: Option<usize>,
    /// The reason for the path, if it is not the one that was asked for.
    led: Led,
    /// The outcome, if no route is asked. Boxed: most requests carry none.
    pub(in crate::respond) outcome: Option<Box<Result<Answer, Failure>>>,
}

/// The reason for a path.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Led {
    /// The client.
    Not,
    /// A file, or what a server handed over.
    ByFile,
    /// An error. The route that has answered the path that was asked for says nothing of its page.
    ByError,
}

impl<'s> Start<'s> {
    /// At the route of the path that was asked for.
    pub(in crate::respond) fn at(route: Option<&'s Route>) -> Self {
        Self { route, path: None, begun: None, behind: None, led: Led::Not, outcome: None }
    }

    /// At a path that files led to: an index, a fallback or a page.
    pub(super) fn led(path: String, led: Led) -> Self {
        Self { path: Some(path), led, ..Self::at(None) }
    }
}

impl Site {
    /// Asks what comes before all routes, and looks for the route then. A wanted fact on files stops it: it goes on from there
    /// once that is known.
    pub(in crate::respond) fn go_on<'s>(
        &'s self,
        start: &mut Start<'s>,
        request: &mut Request<'_>,
    ) -> Option<FileQuestion> {
        while start.outcome.is_none() {
            let asked = Asked::of(request);
            // Most sites ask nothing before, and each request comes by here.
            if self.before().is_empty() {
                let Ok(path) = path_of(asked.head, start.path.as_deref()) else { break };
                start.route = self.route(path, asked);
                return request.files.take_wanted();
            }
            let Ok(target) = asked.head.target() else { break };
            let target = Target { path: start.path.as_deref().unwrap_or(target.path), ..target };
            let first = self.first_before(target, asked, start);
            if let Some(wanted) = request.files.take_wanted() {
                return Some(wanted);
            }
            let Some((number, outcome)) = first else {
                start.route = self.route(target.path, asked);
                return request.files.take_wanted();
            };
            // A part of the path that another program reads would be lost with it.
            if let (Ok(Beforehand::Rewritten(_)), Some(Cow::Owned(plain))) =
                (&outcome, as_read_otherwise(target.path))
                && !self.before().take_alike(target.path, &plain, asked, self.words())
            {
                start.outcome = Some(Box::new(Err(400_u16.into())));
                break;
            }
            start.behind = Some(number);
            start.outcome = Some(Box::new(match outcome {
                // The rest is held against that path.
                Ok(Beforehand::Rewritten(rewritten)) => {
                    start.path = Some(take_query(rewritten, request));
                    continue;
                }
                Ok(Beforehand::Redirect(response)) => Ok(response.into()),
                Ok(Beforehand::Fixed(fixed)) => {
                    fixed_answer(&fixed, target.path, asked, self.words())
                }
                Err(error) => Err(error.into()),
            }));
        }
        None
    }

    /// The same for a path that files led to: as with nginx, it is asked again.
    pub(super) async fn led<'s>(
        &'s self,
        files: &Files,
        (path, led): (String, Led),
        request: &mut Request<'_>,
    ) -> Start<'s> {
        let mut start = Start::led(path, led);
        if let Some(wanted) = self.go_on(&mut start, request) {
            self.go_on_knowing(files, &mut start, wanted, request).await;
        }
        start
    }

    /// The same, with what is wanted of files.
    pub(in crate::respond) async fn go_on_knowing<'s>(
        &'s self,
        files: &Files,
        start: &mut Start<'s>,
        wanted: FileQuestion,
        request: &mut Request<'_>,
    ) {
        let mut wanted = Some(wanted);
        while let Some(next) = wanted {
            if let Err(error) = Box::pin(look(files, self, next, request)).await {
                start.route = None;
                start.outcome = Some(Box::new(Err(error.into())));
                return;
            }
            wanted = self.go_on(start, request);
        }
    }

    /// The first that does anything with a target, and what that is. A path that files led to is not rewritten once more.
    fn first_before(
        &self,
        target: Target<'_>,
        asked: Asked<'_>,
        &Start { behind, led, .. }: &Start<'_>,
    ) -> Option<(usize, Result<Beforehand, HttpError>)> {
        let own = asked.head.path().unwrap_or_default();
        self.before().for_path(target.path, behind).find_map(|(number, before)| {
            let outcome = before.ask(target, asked, self.words(), &self.configured).transpose()?;
            let counts = match &outcome {
                _ if led == Led::Not => true,
                Ok(Beforehand::Rewritten(_)) => false,
                _ if led == Led::ByError && before.is_for(own, asked, self.words()) => false,
                Ok(Beforehand::Redirect(response)) => !self.leads_back(response, asked),
                Ok(Beforehand::Fixed(_)) | Err(_) => true,
            };
            counts.then_some((number, outcome))
        })
    }

    /// True if a redirect is to the URL that was asked for: `/index.php` to `/`, where `/` is answered by `/index.php`.
    fn leads_back(&self, redirect: &Response, asked: Asked<'_>) -> bool {
        let location = redirect.fields.values("location").next().unwrap_or_default();
        let url = String::from_utf8_lossy(location);
        let words = asked.words(self.words());
        let host = words.host.as_deref().unwrap_or_default();
        match url.split_once("://") {
            Some((scheme, rest)) => {
                let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                scheme == words.scheme.as_str()
                    && authority.eq_ignore_ascii_case(host)
                    && path == &*words.reference
            }
            None => *url == *words.reference,
        }
    }

    /// True if what comes before routes has an answer of its own for the path of a program that was asked for with more behind it.
    pub(super) fn is_kept_from(
        &self,
        files: &FileRoute,
        program: &Program,
        request: &Request<'_>,
    ) -> bool {
        if program.path_info.is_empty() {
            return false;
        }
        let Ok(target) = request.head.target() else { return true };
        let path = [files.prefix.as_str(), &program.path].concat();
        let start = Start::led(String::new(), Led::ByFile);
        self.first_before(Target { path: &path, ..target }, Asked::of(request), &start).is_some()
    }
}

/// Gives a request the query that a rule says; the path that is looked for.
pub(super) fn take_query(rewritten: Rewritten, request: &mut Request<'_>) -> String {
    if let Some(query) = rewritten.query {
        request.head.set_query(query);
    }
    rewritten.path
}

/// Asks until all is known that it takes to know of files.
///
/// # Errors
/// 503 if a disk does not say in time what is there.
pub(super) async fn knowing<T>(
    files: &Files,
    site: &Site,
    request: &Request<'_>,
    ask: impl Fn(Asked<'_>) -> T,
) -> Result<T, HttpError> {
    loop {
        let answer = ask(Asked::of(request));
        match request.files.take_wanted() {
            Some(wanted) => Box::pin(look(files, site, wanted, request)).await?,
            None => return Ok(answer),
        }
    }
}

/// Finds out what is there by a path.
async fn look(
    files: &Files,
    site: &Site,
    wanted: FileQuestion,
    request: &Request<'_>,
) -> Result<(), HttpError> {
    let folder = site.folder(wanted.look).ok_or(503_u16)?;
    let deadline = request.files.deadline(|| files.disks().deadline());
    let there = files.is_there(folder, &wanted.relative, deadline).await?;
    match request.files.learn(wanted, there) {
        true => Ok(()),
        false => Err(503.into()),
    }
}

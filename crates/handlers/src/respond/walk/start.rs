//! The steps before routes, asked in their order, and the facts on files that those and routes ask for.

use kettle_exchange::error_page::HttpError;
use kettle_exchange::request::{FileQuestion, Program, Request};
use kettle_exchange::response::Response;
use kettle_http::target::Target;

use crate::files::file_route::FileRoute;
use crate::files::handler::Files;
use crate::redirect::pattern::Rewritten;
use crate::respond::{Led, Start};
use crate::route::Site;
use crate::route::before::Beforehand;
use crate::words::Asked;

impl Site {
    /// Goes on at a path that files led to: as with nginx, what comes before routes is asked again.
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

    /// The first that does anything with a target, and what that is. A path that files led to is not rewritten once more.
    pub(in crate::respond) fn first_before(
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
pub(in crate::respond) fn take_query(rewritten: Rewritten, request: &mut Request<'_>) -> String {
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
pub(in crate::respond) async fn look(
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

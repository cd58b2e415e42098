//! The answer of a route's handler: files first, and what they leave to another one.

use std::borrow::Cow;
use std::sync::Arc;

use kettle_exchange::error_page::HttpError;
use kettle_exchange::request::{Head, Request, as_read_otherwise};
use kettle_exchange::response::{Answer, ConfiguredFields, Held, LogNotes, Nothing};
use kettle_http::Method;
use kettle_http::target::Target;

use super::{Failure, Step};
use crate::files::file_route::FileRoute;
use crate::files::handler::{FileAnswer, Files, allow};
use crate::fixed::Fixed;
use crate::guard::Guard;
use crate::proxy::{self, BodyStore, ProxyRoute};
use crate::proxy_cache::{self, Begun, pass_beside};
use crate::respond::Responder;
use crate::respond::compress::compress;
use crate::route::{Handler, Route, Site};
use crate::words::{Asked, WordSource};

/// The answer of what a worker has ready.
pub(super) struct Looked {
    /// True if it was done.
    pub(super) is_done: bool,
    /// The progress of that.
    pub(super) begun: Option<Box<Begun>>,
}

/// The answer of a route's handler, for this path if not the one that was asked for.
pub(super) async fn by_handler(
    Responder { files, pool, spool, .. }: &Responder,
    (site, route): (&Site, &Route),
    path: Option<&str>,
    request: &mut Request<'_>,
    looked: Looked,
    (held, notes): (&mut Held, &mut LogNotes),
) -> Result<Step, Failure> {
    let bodies = BodyStore { spool, disks: files.disks() };
    let handler = match &route.handler {
        Handler::Files(own) => {
            match by_files(files, (site, route, own), path, request, looked.is_done).await? {
                Filed::Step(step) => return Ok(step),
                Filed::Left(handler) => handler,
            }
        }
        handler => handler,
    };
    let handler = match handler {
        Handler::Chosen(all) => all.choose(path_of(&request.head, path)?, request)?,
        handler => handler,
    };
    let mut answer = match handler {
        // Asked and chosen above.
        Handler::Files(_) | Handler::Chosen(_) => return Err(404.into()),
        Handler::Proxy(it) if !site.readers.is_empty() => {
            let all = (files, pool);
            let pass = pass_beside(&site.readers, it, all, bodies, path, request, held, notes);
            Box::pin(pass).await?
        }
        Handler::Proxy(it) => proxy::respond(it, pool, bodies, path, request, notes).await?,
        Handler::Cached(it) if is_for_many(&it.proxy, path, request) => {
            proxy::respond(&it.proxy, pool, bodies, path, request, notes).await?
        }
        Handler::Cached(cached) => {
            let path = path_of(&request.head, path)?.to_owned();
            let begun = match looked.begun {
                Some(begun) => *begun,
                None => match proxy_cache::ready(cached, files, &path, request, notes) {
                    Ok(mut response) => {
                        compress(Some(route), files, &request.head, &mut response);
                        return Ok(Step::Answer(response.into()));
                    }
                    Err(begun) => begun,
                },
            };
            let answer = proxy_cache::respond(
                cached, files, pool, bodies, &path, begun, request, held, notes,
            );
            Box::pin(answer).await?
        }
        Handler::Fixed(fixed) => {
            fixed_answer(fixed, path_of(&request.head, path)?, Asked::of(request), site.words())?
        }
        Handler::Nothing(configured) => not_found(request, configured)?,
    };
    if let (Handler::Proxy(_) | Handler::Cached(_), Answer::Response(response)) =
        (handler, &mut answer)
    {
        compress(Some(route), files, &request.head, response);
    }
    Ok(Step::Answer(answer))
}

/// The outcome of a route's files.
#[expect(clippy::large_enum_variant, reason = "one lives for a moment, once a request")]
enum Filed<'r> {
    Step(Step),
    /// Another handler is to answer.
    Left(&'r Handler),
}

async fn by_files<'r>(
    files: &Files,
    (site, route, own): (&Site, &'r Route, &Arc<FileRoute>),
    path: Option<&str>,
    request: &mut Request<'_>,
    is_done: bool,
) -> Result<Filed<'r>, Failure> {
    let head = &request.head;
    let target = head.target().map_err(|error| error.status())?;
    let asked_path = target.path;
    let target = Target { path: path.unwrap_or(asked_path), ..target };
    let is_passed_on = is_passed_on(route, own, target, head);
    let ready = match is_done || is_passed_on {
        true => None,
        false => files.ready(own, target.path, request),
    };
    let slashed = if is_passed_on { with_slashes(route, target, head) } else { None };
    if let (Some(path), Some(guard)) = (&slashed, route.guard()) {
        guard.refuse_file(path)?;
    }
    let answer = match (ready, &slashed) {
        (Some(response), _) => FileAnswer::Response(response),
        (None, Some(path)) => {
            let target = Target { path, has_encoded_slash: false, ..target };
            Box::pin(files.respond(own, target, path, request)).await?
        }
        (None, None) if is_passed_on => FileAnswer::Missing,
        (None, None) => Box::pin(files.respond(own, target, asked_path, request)).await?,
    };
    Ok(match (answer, &route.missing) {
        (FileAnswer::Response(response), _) => Filed::Step(Step::Answer(response.into())),
        (FileAnswer::Elsewhere(path), _) => Filed::Step(Step::Led(path)),
        (FileAnswer::Missing, Some(missing)) => {
            // One that was found before is another route's.
            request.program = None;
            Filed::Left(missing)
        }
        (FileAnswer::Program(program), Some(missing))
            if !site.is_kept_from(own, &program, request) =>
        {
            request.program = Some(program);
            Filed::Left(missing)
        }
        (FileAnswer::Missing | FileAnswer::Program(_), _) => return Err(404.into()),
    })
}

/// True if a backend answers without a look for a file: no file has such a path, and none takes anything but these methods.
fn is_passed_on(route: &Route, files: &FileRoute, target: Target<'_>, head: &Head) -> bool {
    let is_of_file = matches!(head.method(), Method::Get | Method::Head);
    route.missing.is_some() && !files.runs_programs() && (target.has_encoded_slash || !is_of_file)
}

/// The path by which a file is looked for before a backend is asked for one with encoded slashes: with slashes in their place, as nginx
/// does. It is of the same route, which was asked before.
fn with_slashes(route: &Route, target: Target<'_>, head: &Head) -> Option<String> {
    let is_of_file = matches!(head.method(), Method::Get | Method::Head);
    if !is_of_file || !target.has_encoded_slash {
        return None;
    }
    let is_one_path = !target.has_lookalike_slash && !target.path.contains(';');
    // The signed path is the path as it was sent.
    let is_signed = route.guard().is_some_and(Guard::is_signed);
    if !is_one_path || is_signed || target.path.ends_with("%2F") {
        return None;
    }
    as_read_otherwise(target.path).map(Cow::into_owned)
}

/// True if a program was led to from another path. It is told that path and says different things of each, and a store would keep one.
fn is_for_many(proxied: &ProxyRoute, path: Option<&str>, request: &Request<'_>) -> bool {
    let is_other = |path| request.head.path().is_ok_and(|asked| asked != path);
    proxied.runs_programs() && path.is_some_and(is_other)
}

/// This path, or else the one that was asked for.
pub(in crate::respond) fn path_of<'p>(
    head: &'p Head,
    path: Option<&'p str>,
) -> Result<&'p str, HttpError> {
    path.map_or_else(|| head.path().map_err(|error| error.status().into()), Ok)
}

pub(in crate::respond) fn fixed_answer(
    fixed: &Fixed,
    path: &str,
    asked: Asked<'_>,
    words: &WordSource,
) -> Result<Answer, Failure> {
    match fixed.closes {
        true => Ok(Answer::Nothing(Nothing::closed())),
        false => Ok(fixed.response(path, asked, words)?.into()),
    }
}

pub(super) fn not_found(
    request: &Request<'_>,
    configured: &ConfiguredFields,
) -> Result<Answer, HttpError> {
    let allowed = allow(request.head.method(), configured, true);
    allowed.unwrap_or_else(|| Err(404.into())).map(Answer::from)
}

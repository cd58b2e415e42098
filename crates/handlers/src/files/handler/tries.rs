//! Files that answer for other paths: what a route tries, and its fallback.

use std::sync::Arc;

use kettle_exchange::error_page::HttpError;
use kettle_exchange::request::Request;
use kettle_http::target::Target;

use super::{FileAnswer, Files, add_slash, key, programs};
use crate::files::file_route::FileRoute;
use crate::files::locate::LocateOutcome;
use crate::redirect::tries::{TriedPath, Tries};

impl Files {
    /// Answers from the first of the route's tries that is there.
    pub(super) async fn try_each(
        &self,
        route: &Arc<FileRoute>,
        tries: &Tries,
        target: Target<'_>,
        (asked_path, below): (&str, &str),
        request: &Request<'_>,
    ) -> Result<FileAnswer, HttpError> {
        let head = &*request.head;
        let asked = below.trim_start_matches('/');
        for TriedPath { path, is_folder } in tries.candidates(target.path, below) {
            let relative = path.trim_start_matches('/');
            if route.denied.as_ref().is_some_and(|denied| denied.have_below(relative)) {
                return Err(403.into());
            }
            let key = key(route, &path, request);
            // The folder that was asked for is there: its links are meant relative to its path with the slash, as in nginx.
            let lacks_slash = is_folder
                && !target.path.ends_with('/')
                && path.strip_suffix('/').is_some_and(|folder| folder == below);
            if let Some(answer) = self.remembered(route, key, head).filter(|_| !lacks_slash) {
                return answer.map(FileAnswer::Response);
            }
            let (found, root, look) = self.lookup(route, relative, key).await?;
            let response = match found {
                LocateOutcome::File(_)
                | LocateOutcome::Elsewhere(_)
                | LocateOutcome::Program { .. }
                | LocateOutcome::Directory
                    if lacks_slash =>
                {
                    add_slash(route, target, asked_path)
                }
                LocateOutcome::File(found) => {
                    self.answer(route, key, found, &root, look, head).await
                }
                LocateOutcome::Elsewhere(path) => return Ok(FileAnswer::Elsewhere(path)),
                LocateOutcome::Program { path, path_info } => {
                    return programs::answer(route, asked, path, path_info);
                }
                LocateOutcome::Directory if is_folder && route.listing => {
                    self.list(route, relative, target, request).await
                }
                LocateOutcome::Directory if is_folder => Err(403.into()),
                LocateOutcome::Directory
                | LocateOutcome::SlashMissing
                | LocateOutcome::Link
                | LocateOutcome::Refused(404) => continue,
                LocateOutcome::Refused(status) => Err(status.into()),
                LocateOutcome::WouldBlock | LocateOutcome::Beyond(_) => Err(503.into()),
            };
            return response.map(FileAnswer::Response);
        }
        match route.falls_back_for(target.path) {
            _ if route.leaves_missing => self.leave_missing(route, asked, request).await,
            true => self.fall_back(route, asked, request).await,
            false => Err(404.into()),
        }
    }

    /// Answers from the route's fallback file. It is remembered by its own path: what was not found
    /// is not remembered, and takes no room from what is there.
    pub(super) async fn fall_back(
        &self,
        route: &Arc<FileRoute>,
        asked: &str,
        request: &Request<'_>,
    ) -> Result<FileAnswer, HttpError> {
        let head = &*request.head;
        let below = route.fallback.as_deref().unwrap_or_default();
        let relative = below.trim_start_matches('/');
        let others = route.others.as_ref();
        if let Some(path) = others.and_then(|others| others.led_to(relative, asked)) {
            return Ok(FileAnswer::Elsewhere(path));
        }
        if route.denied.as_ref().is_some_and(|denied| denied.have_below(relative)) {
            return Err(403.into());
        }
        let key = key(route, below, request);
        if let Some(answer) = self.remembered(route, key, head) {
            return answer.map(FileAnswer::Response);
        }
        let (found, root, look) = self.lookup(route, relative, key).await?;
        match found {
            LocateOutcome::File(found) => {
                let response = self.answer(route, key, found, &root, look, head).await;
                response.map(FileAnswer::Response)
            }
            LocateOutcome::Program { path, path_info } => {
                programs::answer(route, "", path, path_info)
            }
            LocateOutcome::WouldBlock | LocateOutcome::Beyond(_) => Err(503.into()),
            LocateOutcome::Refused(status) if status != 404 => Err(status.into()),
            LocateOutcome::Link => Err(403.into()),
            // Never another fallback.
            LocateOutcome::Refused(_)
            | LocateOutcome::SlashMissing
            | LocateOutcome::Directory
            | LocateOutcome::Elsewhere(_) => Err(404.into()),
        }
    }
}

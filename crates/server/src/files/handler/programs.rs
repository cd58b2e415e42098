//! Programs: the one that was asked for, and the one that answers where nothing was found.

use std::sync::Arc;

use super::{FileAnswer, Files, key};
use crate::error_page::HttpError;
use crate::files::file_route::FileRoute;
use crate::files::locate::LocateOutcome;
use crate::files::programs::Missing;
use crate::request::{Head, Program};

/// Has a program run that was found for this path below the root, unless another route answers for it, which may ask for more.
pub(super) fn answer(
    route: &FileRoute,
    asked: &str,
    path: String,
    path_info: String,
) -> Result<FileAnswer, HttpError> {
    let others = route.others.as_ref().filter(|_| path_info.is_empty() && asked != path);
    if let Some(path) = others.and_then(|others| others.path_of(&path)) {
        return Ok(FileAnswer::Elsewhere(path));
    }
    match route.programs.as_ref().is_some_and(|programs| programs.run(&path)) {
        true => Ok(FileAnswer::Program(Box::new(Program { path: format!("/{path}"), path_info }))),
        false => Err(404.into()),
    }
}

impl Files {
    /// Leaves what is not found to a backend, or to the program that is there for it.
    pub(super) async fn leave_missing(
        &self,
        route: &Arc<FileRoute>,
        asked: &str,
        head: &Head,
    ) -> Result<FileAnswer, HttpError> {
        let missing = route.programs.as_ref().and_then(|programs| programs.missing.as_ref());
        let index = match missing {
            None | Some(Missing::Script) => return Ok(FileAnswer::Missing),
            Some(Missing::Index(index)) => index,
        };
        let relative = index.trim_start_matches('/');
        let others = route.others.as_ref();
        if let Some(path) = others.and_then(|others| others.led_to(relative, asked)) {
            return Ok(FileAnswer::Elsewhere(path));
        }
        if route.denied.as_ref().is_some_and(|denied| denied.have_below(relative)) {
            return Err(403.into());
        }
        let (found, ..) = self.lookup(route, relative, key(route, index, head)).await?;
        match found {
            LocateOutcome::Program { path, path_info } => answer(route, relative, path, path_info),
            LocateOutcome::File(found) => {
                self.finder.release(found);
                Err(404.into())
            }
            LocateOutcome::WouldBlock | LocateOutcome::Beyond(_) => Err(503.into()),
            LocateOutcome::Refused(status) => Err(status.into()),
            // Never another one.
            LocateOutcome::SlashMissing
            | LocateOutcome::Directory
            | LocateOutcome::Elsewhere(_) => Err(404.into()),
        }
    }
}

//! Programs: the one that was asked for, the one that answers where nothing was found, and those that were found lately.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use kettle_config::Coding;
use kettle_exchange::error_page::HttpError;
use kettle_exchange::request::{Program, Request};
use quick_cache::unsync::Cache;

use super::{FileAnswer, Files, key};
use crate::files::entry::Look;
use crate::files::file_route::FileRoute;
use crate::files::locate::LocateOutcome;
use crate::files::open_cache::{Key, KeyRef};
use crate::files::precompressed::CodingPreference;
use crate::files::programs::Missing;
use crate::files::root::Root;

/// The programs that a worker has found lately, each by the path that led to it.
pub(super) type KnownPrograms = Cache<Key, Rc<KnownProgram>>;

/// A program that was found below a root.
#[derive(Debug)]
pub(super) struct KnownProgram {
    path: Box<str>,
    root: Arc<Root>,
    look: Look,
}

/// None yet.
pub(super) fn known() -> KnownPrograms {
    Cache::new(PROGRAMS_MAX)
}

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
    /// The program that was found by this path within the period of revalidation, if no worker has seen since that one is gone.
    pub(super) fn known_program(
        &self,
        key: KeyRef<'_>,
        generation: u64,
        now: Duration,
    ) -> Option<(LocateOutcome, Arc<Root>, Look)> {
        let programs = self.programs.borrow();
        let KnownProgram { path, root, look } = &**programs.get(&without_coding(key))?;
        let is_fresh =
            now.saturating_sub(look.at) < self.revalidate && look.generation == generation;
        let found = || LocateOutcome::Program { path: path.to_string(), path_info: String::new() };
        is_fresh.then(|| (found(), Arc::clone(root), *look))
    }

    /// Remembers a program, and tells all workers of it: who finds it gone tells them that.
    pub(super) fn remember_program(
        &self,
        route: &FileRoute,
        key: KeyRef<'_>,
        path: &str,
        root: &Arc<Root>,
        look: &mut Look,
    ) {
        if self.revalidate.is_zero() || key.path.len() > PATH_BYTES_MAX {
            return;
        }
        let what = (key.path, None::<Coding>);
        look.generation = route.generation.tell(what, path, look.generation, false);
        let known = KnownProgram { path: path.into(), root: Arc::clone(root), look: *look };
        self.programs.borrow_mut().insert(without_coding(key).to_key(), Rc::new(known));
    }

    /// Leaves what is not found to a backend, or to the program that is there for it.
    pub(super) async fn leave_missing(
        &self,
        route: &Arc<FileRoute>,
        asked: &str,
        request: &Request<'_>,
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
        let (found, ..) = self.lookup(route, relative, key(route, index, request)).await?;
        match found {
            LocateOutcome::Program { path, path_info } => answer(route, relative, path, path_info),
            LocateOutcome::File(found) => {
                self.finder.release(found);
                Err(404.into())
            }
            LocateOutcome::WouldBlock | LocateOutcome::Beyond(_) => Err(503.into()),
            LocateOutcome::Link => Err(403.into()),
            LocateOutcome::Refused(status) => Err(status.into()),
            // Never another one.
            LocateOutcome::SlashMissing
            | LocateOutcome::Directory
            | LocateOutcome::Elsewhere(_) => Err(404.into()),
        }
    }
}

/// Programs answer in no coding.
fn without_coding(key: KeyRef<'_>) -> KeyRef<'_> {
    KeyRef { preference: CodingPreference::NONE, by_sendfile: false, ..key }
}

/// Programs that are remembered by a worker.
const PROGRAMS_MAX: usize = 1_024;
/// By longer paths they are not: clients may write a program's path in many ways.
const PATH_BYTES_MAX: usize = 256;

#[cfg(test)]
mod tests;

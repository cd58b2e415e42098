//! The kind of file at a path: for requests, and for conditions.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use kettle_config::Coding;
use kettle_exchange::error_page::HttpError;
use kettle_exchange::request::There;
use kettle_runtime::disk::DiskDeadline;

use super::Files;
use crate::files::current_roots::RootLookup;
use crate::files::entry::Look;
use crate::files::file_route::FileRoute;
use crate::files::generation::GONE;
use crate::files::locate::{self, LocateOutcome, Purpose};
use crate::files::open_cache::KeyRef;
use crate::files::precompressed::CodingPreference;
use crate::files::root::Root;

/// The recent findings and their times: by the number of the route and the path below its root.
pub(super) type Looks = HashMap<(u64, Box<str>), (There, Duration)>;

impl Files {
    /// Looks for the file of a key. Where it is not any more, all workers are told.
    pub(super) async fn lookup(
        &self,
        route: &Arc<FileRoute>,
        relative: &str,
        key: KeyRef<'_>,
    ) -> Result<(LocateOutcome, Arc<Root>, Look), HttpError> {
        let generation = route.generation.now();
        let now = self.clock.monotonic();
        if let Some(known) = self.known_program(key, generation, now) {
            return Ok(known);
        }
        let mut purpose = match self.remembered_file(key) {
            Some(entry) if entry.is_settled() && self.stays(key, &entry) => Purpose::Compare,
            _ => Purpose::Read,
        };
        let RootLookup { found, root, looked, .. } = loop {
            let when = (now, self.disks().deadline());
            let seen = self.finder.find(route, relative, key.preference, purpose, when).await;
            let seen = self.accept_lookup(route, generation, seen)?;
            match seen.found {
                LocateOutcome::File(found)
                    if !found.is_readable
                        && !self
                            .remembered_file(key)
                            .is_some_and(|it| it.is_still(&found.facts)) =>
                {
                    self.finder.release(found);
                    purpose = Purpose::Read;
                }
                _ => break seen,
            }
        };
        if found.is_no_file() {
            for coding in FORMS {
                route.generation.tell_gone((key.path, coding));
            }
            if let Some(entry) = self.remembered_file(key) {
                let what = (key.path, key.preference);
                route.generation.tell(what, (GONE, entry.identity), generation, true);
                self.cache.borrow_mut().forget(key);
            }
        }
        let mut look = Look { at: looked, generation };
        if let LocateOutcome::Program { path, path_info } = &found
            && path_info.is_empty()
            && self.finder.is_current(route, &root)
        {
            self.remember_program(route, key, path, &root, &mut look);
        }
        Ok((found, root, look))
    }

    /// Returns the kind of file at a path below the root of a route, as it was within the period of revalidation.
    ///
    /// # Errors
    /// 503 if the disk does not say it in time.
    pub async fn is_there(
        &self,
        route: &Arc<FileRoute>,
        relative: &str,
        deadline: DiskDeadline,
    ) -> Result<There, HttpError> {
        let now = self.clock.monotonic();
        let key = (route.number, relative.into());
        let known = self.looks.borrow().get(&key).copied();
        if let Some((there, looked)) = known
            && now.saturating_sub(looked) < self.revalidate
        {
            return Ok(there);
        }
        let generation = route.generation.now();
        let when = (now, deadline);
        let preference = CodingPreference::NONE;
        let purpose = Purpose::Exist;
        let seen = self.finder.find(route, relative, preference, purpose, when).await;
        let there = match seen.map_err(locate::status_of) {
            Ok(seen) => match self.accept_lookup(route, generation, Ok(seen))?.found {
                LocateOutcome::File(found) => {
                    self.finder.release(found);
                    There::File
                }
                LocateOutcome::SlashMissing | LocateOutcome::Directory => There::Folder,
                LocateOutcome::Elsewhere(_) => There::Folder,
                LocateOutcome::Program { path_info, .. } if path_info.is_empty() => There::File,
                LocateOutcome::Program { .. } => There::Nothing,
                LocateOutcome::Link => There::Nothing,
                LocateOutcome::Refused(status) if status < 500 => There::Nothing,
                LocateOutcome::Refused(_)
                | LocateOutcome::WouldBlock
                | LocateOutcome::Beyond(_) => return Err(503.into()),
            },
            // Nothing is below a root that is not there.
            Err(status) if status < 500 => There::Nothing,
            Err(_) => return Err(503.into()),
        };
        let mut looks = self.looks.borrow_mut();
        if relative.len() <= PATH_BYTES_MAX && !self.revalidate.is_zero() {
            // Clients choose the paths.
            if looks.len() >= LOOKS_MAX {
                looks.clear();
            }
            looks.insert(key, (there, now));
        }
        Ok(there)
    }
}

/// Paths that are remembered by a worker.
const LOOKS_MAX: usize = 4_096;
/// Longer ones are not.
const PATH_BYTES_MAX: usize = 256;
/// The forms that a file may be found in.
const FORMS: [Option<Coding>; 4] = [None, Some(Coding::Br), Some(Coding::Zstd), Some(Coding::Gzip)];

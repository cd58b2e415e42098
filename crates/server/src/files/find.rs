//! Finding and reading files without stalling the worker: what the kernel has at hand is taken at
//! once, everything else is fetched on one of a few threads that may wait for a disk.

use std::io::{self, IoSliceMut};
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use kettle_kernel::transfer::{Wait, read_at};
use rustix::io::Errno;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::OpenFile;
use super::entry::Content;
use super::listing::Listing;
use super::locate::{self, Facts, Found, Identity, Located, Sought, identity_of};
use super::precompressed::Preference;
use super::rules::Rules;
use crate::error_page::Page;

/// Finds and reads files for one worker.
#[derive(Debug)]
pub struct Finder {
    /// A place for each call that may wait.
    places: Arc<Semaphore>,
    /// Larger files stay on disk; `None` leaves all of them there.
    memory_file_bytes_max: Option<u64>,
}

impl Finder {
    /// A finder that reads files up to this size into memory.
    #[must_use]
    pub fn new(memory_file_bytes_max: Option<u64>) -> Self {
        Self { places: Arc::new(Semaphore::new(WAITING_CALLS_MAX)), memory_file_bytes_max }
    }

    /// Looks for a file by its path below the rules' prefix. Never [`Located::WouldBlock`].
    pub async fn find(
        &self,
        rules: &Arc<Rules>,
        relative: &str,
        preference: Preference,
    ) -> Located {
        let at_once = look(rules, relative, preference, Wait::Never);
        if !matches!(at_once, Located::WouldBlock) {
            return at_once;
        }
        let (rules, relative) = (Arc::clone(rules), relative.to_owned());
        let look = move || look(&rules, &relative, preference, Wait::Allowed);
        match self.wait_for(look).await {
            Some(Located::WouldBlock) | None => Located::Refused(503),
            Some(located) => located,
        }
    }

    /// Reads a small file into memory; a large one, and one that is just being changed, stays
    /// where it is.
    pub async fn content(&self, found: Found) -> (Facts, Content) {
        let Found { fd, facts } = found;
        let identity = facts.identity;
        let file = Arc::new(OpenFile::new(fd, identity.bytes));
        if self.memory_file_bytes_max.is_none_or(|max| identity.bytes > max) {
            return (facts, Content::File(file));
        }
        let mut bytes = None;
        if identity.bytes <= READ_AT_ONCE_BYTES_MAX {
            bytes = read_whole(&file, identity, Wait::Never).ok();
        }
        if bytes.is_none() {
            let shared = Arc::clone(&file);
            let read = self.wait_for(move || read_whole(&shared, identity, Wait::Allowed)).await;
            bytes = read.and_then(Result::ok);
        }
        (facts, bytes.map_or(Content::File(file), Content::Memory))
    }

    /// Reads a folder by its path below the rules' prefix.
    ///
    /// # Errors
    /// The status to answer with.
    pub async fn list(&self, rules: &Arc<Rules>, relative: &str) -> Result<Listing, u16> {
        let (rules, relative) = (Arc::clone(rules), relative.to_owned());
        let listing = self.wait_for(move || Listing::read(&rules.root, &relative)).await;
        listing.unwrap_or(Err(Errno::AGAIN)).map_err(locate::status_of)
    }

    /// Reads an error page.
    ///
    /// # Errors
    /// If the file cannot be read or is too large.
    pub async fn page(&self, path: PathBuf, content_type: String) -> io::Result<Page> {
        let page = self.wait_for(move || Page::read(&path, content_type)).await;
        page.unwrap_or_else(|| Err(io::ErrorKind::WouldBlock.into()))
    }

    /// Runs a call that may wait on another thread, when there is a place for it. `None` if the
    /// runtime is ending.
    async fn wait_for<T: Send + 'static>(
        &self,
        call: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let place = Arc::clone(&self.places).acquire_owned().await.ok()?;
        // The call holds its place even if nobody waits for it any more.
        let held = move || {
            let outcome = call();
            drop(place);
            outcome
        };
        spawn_blocking(held).await.ok()
    }
}

fn look(rules: &Rules, relative: &str, preference: Preference, wait: Wait) -> Located {
    locate::locate(&rules.root, Sought { relative, index: &rules.index, preference }, wait)
}

/// All bytes of a file that does not change meanwhile.
fn read_whole(file: &OpenFile, identity: Identity, wait: Wait) -> io::Result<Bytes> {
    let mut bytes = vec![0; usize::try_from(identity.bytes).unwrap_or(usize::MAX)];
    let mut filled = 0;
    while filled < bytes.len() {
        let mut rest = [IoSliceMut::new(&mut bytes[filled..])];
        match read_at(file.file(), &mut rest, filled as u64, wait)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => filled += read,
        }
    }
    if identity_of(file.file()) != Some(identity) {
        return Err(io::ErrorKind::StaleNetworkFileHandle.into());
    }
    Ok(bytes.into())
}

/// Calls of one worker that wait for a disk at the same time. Further ones wait for a place, so
/// that a dead disk ties up only so many threads.
const WAITING_CALLS_MAX: usize = 16;
/// Copying more than this at once would keep other connections waiting.
const READ_AT_ONCE_BYTES_MAX: u64 = 256 * 1024;

#[cfg(test)]
mod tests;

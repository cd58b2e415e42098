//! Tells whether a file that the configuration names has changed since it was read: certificates, keys, secrets and lists.
//!
//! A thread of its own asks for their state every few seconds. inotify would not do: it says nothing of what other machines
//! do to a network file system, and of a path with symbolic links it sees one step. A disk that hangs keeps that thread
//! waiting and nobody else.

use std::convert::Infallible;
use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::mpsc;

pub use file_states::FileStates;

mod file_states;

/// Looks at files while there are any to look at. The thread ends with this.
pub(crate) struct FileWatch {
    shared: Arc<Mutex<Shared>>,
    /// The thread, which waits at the other end of this and learns when it is gone.
    alive: Option<(Sender<Infallible>, JoinHandle<()>)>,
    changes: mpsc::Sender<Change>,
}

/// Files to be read again: those that changed, or none where reading them is only tried once more.
pub(crate) type Change = Vec<PathBuf>;

struct Shared {
    watched: Watched,
    /// Which configuration they belong to: a look that was begun before it was exchanged says nothing.
    generation: u64,
}

/// The state of the files.
struct Watched {
    /// As they were when they were last read, whether or not they were taken.
    read: FileStates,
    /// As they were seen last.
    last: FileStates,
    /// They were not taken. After this many looks they are read again, for the reason may have been another than they.
    retry_in: Option<u32>,
}

impl FileWatch {
    /// Watches nothing yet. Changes come to the receiver; one that waits there stands for all after it.
    pub(crate) fn new() -> (Self, mpsc::Receiver<Change>) {
        let (changes, changed) = mpsc::channel(1);
        let watched = Watched::since(FileStates::default());
        let shared = Arc::new(Mutex::new(Shared { watched, generation: 0 }));
        (Self { shared, alive: None, changes }, changed)
    }

    /// Takes the files of a configuration that was put in force, as they were before they were read. They are looked at from the
    /// [begin](Self::begin) on.
    pub(crate) fn watch(&mut self, read: FileStates) {
        if read.is_empty() {
            self.alive = None;
        }
        let mut shared = lock(&self.shared);
        shared.watched = Watched::since(read);
        shared.generation += 1;
    }

    /// Begins to look at files, where there are any and that was not done.
    ///
    /// # Errors
    ///
    /// Fails if the thread cannot be started. A folder that is watched stays: it may be tried again.
    pub(crate) fn begin(&mut self) -> io::Result<()> {
        let is_done = self.alive.as_ref().is_some_and(|(_, thread)| !thread.is_finished());
        if is_done || lock(&self.shared).watched.read.is_empty() {
            return Ok(());
        }
        let (alive, ended) = channel();
        let shared = Arc::clone(&self.shared);
        let changes = self.changes.clone();
        let thread = std::thread::Builder::new()
            .name("kettle-watch".to_owned())
            .spawn(move || run(&shared, &ended, &changes))?;
        self.alive = Some((alive, thread));
        Ok(())
    }

    /// The files were read and not taken.
    pub(crate) fn refused(&self) {
        lock(&self.shared).watched.retry_in = Some(RETRY_LOOKS);
    }
}

fn run(shared: &Mutex<Shared>, ended: &Receiver<Infallible>, changes: &mpsc::Sender<Change>) {
    while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(LOOK_PERIOD) {
        let (before, generation) = {
            let shared = lock(shared);
            (shared.watched.last.clone(), shared.generation)
        };
        // Nobody else waits when this takes long.
        let look = before.again();
        let mut shared = lock(shared);
        if shared.generation == generation
            && let Some(change) = shared.watched.see(look)
        {
            // If one waits already, the files are read after this moment all the same.
            let _ = changes.try_send(change);
        }
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watched {
    fn since(read: FileStates) -> Self {
        Self { last: read.clone(), read, retry_in: None }
    }

    /// Takes in another look. Files are to be read again when they are not what was read, and as they were at the look
    /// before: a program that writes several of them, or a long one, should have finished.
    fn see(&mut self, look: FileStates) -> Option<Change> {
        let has_settled = look == self.last;
        if look == self.read {
            self.last = look;
            return self.retry();
        }
        let change = has_settled.then(|| {
            let change = look.changed_since(&self.read);
            self.read = look.clone();
            self.retry_in = None;
            change
        });
        self.last = look;
        change
    }

    fn retry(&mut self) -> Option<Change> {
        let left = self.retry_in?;
        self.retry_in = left.checked_sub(1);
        (left == 0).then(Change::new)
    }
}

/// Two looks that agree make a change known, so it takes two to four seconds.
const LOOK_PERIOD: Duration = Duration::from_secs(2);

/// Ten minutes.
const RETRY_LOOKS: u32 = 300;

#[cfg(test)]
mod tests;

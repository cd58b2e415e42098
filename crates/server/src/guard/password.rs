//! Checking passwords, which is slow by design: on a few threads for the whole process, in a bounded queue and for a
//! bounded time. No worker waits for one.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use kettle_kernel::process;
use tokio::sync::oneshot;
use tokio::time::timeout;
use zeroize::Zeroizing;

use super::users::Hash;
use crate::clock::is_long_ago;

/// Why nobody knows whether a password is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Busy;

struct Job {
    hash: Arc<Hash>,
    password: Zeroizing<Vec<u8>>,
    answer: oneshot::Sender<bool>,
}

/// Notes on which processors such threads may run: workers are kept to one each, and they start them.
pub(super) fn note_processors() {
    PROCESSORS.get_or_init(process::cpus_allowed);
}

/// Whether a password fits a hash.
pub(super) async fn fits(hash: Arc<Hash>, password: Zeroizing<Vec<u8>>) -> Result<bool, Busy> {
    let (answer, answered) = oneshot::channel();
    let queue = THREADS.lock().unwrap_or_else(PoisonError::into_inner).queue(start).ok_or(Busy)?;
    queue.try_send(Job { hash, password, answer }).map_err(|_| Busy)?;
    match timeout(TIME_MAX, answered).await {
        Ok(Ok(fits)) => Ok(fits),
        Ok(Err(_)) | Err(_) => Err(Busy),
    }
}

/// The threads, which the first starts that needs them and finds the system willing.
struct Threads {
    queue: Option<SyncSender<Job>>,
    tried: Option<Instant>,
}

impl Threads {
    fn queue(
        &mut self,
        start: impl FnOnce() -> Option<SyncSender<Job>>,
    ) -> Option<SyncSender<Job>> {
        if self.queue.is_none() && is_long_ago(self.tried, TRIED_AGAIN) {
            self.tried = Some(Instant::now());
            self.queue = start();
        }
        self.queue.clone()
    }
}

fn start() -> Option<SyncSender<Job>> {
    let (queue, jobs) = sync_channel(QUEUE_MAX);
    let jobs = Arc::new(Mutex::new(jobs));
    let processors = PROCESSORS.get().map_or(&[][..], Vec::as_slice);
    let mut started = 0;
    for _ in 0..(processors.len() / PROCESSORS_PER_THREAD).clamp(1, THREADS_MAX) {
        let jobs = Arc::clone(&jobs);
        let thread = std::thread::Builder::new().name("kettle-password".to_owned());
        match thread.spawn(move || run(&jobs, processors)) {
            Ok(_) => started += 1,
            Err(error) => tracing::error!(%error, "cannot start a thread that checks passwords"),
        }
    }
    (started > 0).then_some(queue)
}

fn run(jobs: &Mutex<Receiver<Job>>, processors: &[usize]) {
    if !processors.is_empty()
        && let Err(error) = process::keep_to_cpus(processors)
    {
        tracing::debug!(%error, "passwords are checked on one worker's processor");
    }
    loop {
        let job = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { hash, password, answer }) = job else { return };
        // Who asked may be gone.
        if !answer.is_closed() {
            let _ = answer.send(hash.fits(&password));
        }
    }
}

static PROCESSORS: OnceLock<Vec<usize>> = OnceLock::new();
static THREADS: Mutex<Threads> = Mutex::new(Threads { queue: None, tried: None });

/// Passwords that wait for a thread.
const QUEUE_MAX: usize = 64;
/// How long a request waits for its turn and its answer.
const TIME_MAX: Duration = Duration::from_secs(10);
/// Of this many processors one checks passwords while they are guessed.
const PROCESSORS_PER_THREAD: usize = 4;
const THREADS_MAX: usize = 4;
/// After none could be started: who guesses passwords fills no log.
const TRIED_AGAIN: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_could_not_be_started_are_started_later() {
        let mut threads = Threads { queue: None, tried: None };
        assert!(threads.queue(|| None).is_none());
        assert!(threads.queue(|| panic!("at once")).is_none());
        threads.tried = None;
        let way = sync_channel(1).0;
        assert!(threads.queue(|| Some(way)).is_some());
        assert!(threads.queue(|| panic!("they run")).is_some());
    }
}

//! Checking passwords, which is slow by design: on a few threads for the whole process, in a bounded queue and for a
//! bounded time. No worker waits for one.

mod queue;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use kettle_kernel::process;
use kettle_runtime::client_address::ClientHost;
use kettle_runtime::clock::is_long_ago;
use tokio::sync::oneshot;
use tokio::time::timeout;
use zeroize::Zeroizing;

use super::users::Hash;
use queue::Queue;

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

/// Tells whether a password that a client sent fits a hash.
pub(super) async fn fits(
    hash: Arc<Hash>,
    password: Zeroizing<Vec<u8>>,
    client: ClientHost,
) -> Result<bool, Busy> {
    let are_there = THREADS.lock().unwrap_or_else(PoisonError::into_inner).are_there(start);
    if !are_there {
        return Err(Busy);
    }
    answer(&QUEUE, hash, password, client).await
}

async fn answer(
    queue: &Queue<Job>,
    hash: Arc<Hash>,
    password: Zeroizing<Vec<u8>>,
    client: ClientHost,
) -> Result<bool, Busy> {
    let (answer, answered) = oneshot::channel();
    let is_forsaken = |job: &Job| job.answer.is_closed();
    queue.push(client, Job { hash, password, answer }, is_forsaken).map_err(|_| Busy)?;
    match timeout(TIME_MAX, answered).await {
        Ok(Ok(fits)) => Ok(fits),
        // Too late, or displaced by a client that had none waiting.
        Ok(Err(_)) | Err(_) => Err(Busy),
    }
}

/// The threads, which the first starts that needs them and finds the system willing.
struct Threads {
    are_there: bool,
    tried: Option<Instant>,
}

impl Threads {
    fn are_there(&mut self, start: impl FnOnce() -> bool) -> bool {
        if !self.are_there && is_long_ago(self.tried, TRIED_AGAIN) {
            self.tried = Some(Instant::now());
            self.are_there = start();
        }
        self.are_there
    }
}

/// The number of threads check passwords.
pub(super) fn threads() -> usize {
    let processors = PROCESSORS.get().map_or(0, Vec::len);
    (processors / PROCESSORS_PER_THREAD).clamp(1, THREADS_MAX)
}

fn start() -> bool {
    let processors = PROCESSORS.get().map_or(&[][..], Vec::as_slice);
    let mut started = 0;
    for _ in 0..threads() {
        let thread = std::thread::Builder::new().name("kettle-password".to_owned());
        match thread.spawn(move || run(processors)) {
            Ok(_) => started += 1,
            Err(error) => tracing::error!(%error, "cannot start a thread that checks passwords"),
        }
    }
    started > 0
}

fn run(processors: &[usize]) {
    if !processors.is_empty()
        && let Err(error) = process::keep_to_cpus(processors)
    {
        tracing::debug!(%error, "passwords are checked on one worker's processor");
    }
    loop {
        check_next(&QUEUE);
    }
}

fn check_next(queue: &Queue<Job>) {
    let (client, Job { hash, password, answer }) = queue.next();
    // The client may be gone.
    let fits = (!answer.is_closed()).then(|| hash.fits(&password));
    // Before the answer: whoever gets it may ask again.
    queue.done(client);
    if let Some(fits) = fits {
        let _ = answer.send(fits);
    }
}

static PROCESSORS: OnceLock<Vec<usize>> = OnceLock::new();
static THREADS: Mutex<Threads> = Mutex::new(Threads { are_there: false, tried: None });
static QUEUE: Queue<Job> = Queue::new();

/// The time a request waits for its turn and its answer.
const TIME_MAX: Duration = Duration::from_secs(10);
/// Of this many processors one checks passwords while they are guessed.
const PROCESSORS_PER_THREAD: usize = 4;
const THREADS_MAX: usize = 4;
/// After none could be started: who guesses passwords fills no log.
const TRIED_AGAIN: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;

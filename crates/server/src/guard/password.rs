//! Checking passwords, which is slow by design: on a few threads for the whole process, in a bounded queue and for a
//! bounded time. No worker waits for one.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
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
    /// For as long as the job is here, whether or not the request still waits for it.
    pending: Pending,
}

/// A check's place in the queue. All workers count together: they share the threads that check.
struct Pending(IpAddr);

impl Pending {
    /// Counts a check for a client; none if it has too many under way.
    fn begin(client: IpAddr) -> Option<Self> {
        let client = match client.to_canonical() {
            // One subscriber has as many addresses as fit into a /64.
            IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
            client => client,
        };
        let mut pending = pending();
        let count = pending.entry(client).or_default();
        (*count < PENDING_PER_CLIENT_MAX).then(|| {
            *count += 1;
            Self(client)
        })
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let mut pending = pending();
        if let Some(count) = pending.get_mut(&self.0) {
            *count -= 1;
            if *count == 0 {
                pending.remove(&self.0);
            }
        }
    }
}

/// How many checks are under way for each client. Locked for a few instructions, and no longer than the queue of checks.
fn pending() -> MutexGuard<'static, BTreeMap<IpAddr, u32>> {
    PENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Notes on which processors such threads may run: workers are kept to one each, and they start them.
pub(super) fn note_processors() {
    PROCESSORS.get_or_init(process::cpus_allowed);
}

/// Whether a password that a client sent fits a hash.
pub(super) async fn fits(
    hash: Arc<Hash>,
    password: Zeroizing<Vec<u8>>,
    client: IpAddr,
) -> Result<bool, Busy> {
    let queue = THREADS.lock().unwrap_or_else(PoisonError::into_inner).queue(start).ok_or(Busy)?;
    answer(&queue, hash, password, client).await
}

async fn answer(
    queue: &SyncSender<Job>,
    hash: Arc<Hash>,
    password: Zeroizing<Vec<u8>>,
    client: IpAddr,
) -> Result<bool, Busy> {
    let pending = Pending::begin(client).ok_or(Busy)?;
    let (answer, answered) = oneshot::channel();
    queue.try_send(Job { hash, password, answer, pending }).map_err(|_| Busy)?;
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
        let Ok(Job { hash, password, answer, pending }) = job else { return };
        // Who asked may be gone.
        let fits = (!answer.is_closed()).then(|| hash.fits(&password));
        // Before the answer: whoever gets it may ask again.
        drop(pending);
        if let Some(fits) = fits {
            let _ = answer.send(fits);
        }
    }
}

static PROCESSORS: OnceLock<Vec<usize>> = OnceLock::new();
static THREADS: Mutex<Threads> = Mutex::new(Threads { queue: None, tried: None });
static PENDING: Mutex<BTreeMap<IpAddr, u32>> = Mutex::new(BTreeMap::new());

/// Passwords that wait for a thread.
const QUEUE_MAX: usize = 64;
/// A browser has six connections to a host.
const PENDING_PER_CLIENT_MAX: u32 = 8;
/// How long a request waits for its turn and its answer.
const TIME_MAX: Duration = Duration::from_secs(10);
/// Of this many processors one checks passwords while they are guessed.
const PROCESSORS_PER_THREAD: usize = 4;
const THREADS_MAX: usize = 4;
/// After none could be started: who guesses passwords fills no log.
const TRIED_AGAIN: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests;

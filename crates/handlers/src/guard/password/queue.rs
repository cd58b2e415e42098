//! Passwords that wait to be checked: a bounded queue in which each client has its turn, however much others ask.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use kettle_runtime::client_address::ClientHost;

/// Jobs that wait for a thread, and how many each client has under way. All workers share one: they share the threads that check.
#[derive(Debug)]
pub(super) struct Queue<Job>(Mutex<State<Job>>, Condvar);

#[derive(Debug)]
struct State<Job> {
    /// In the order in which they came.
    waiting: Vec<Waiting<Job>>,
    /// Those with a job that waits or is being done.
    clients: BTreeMap<ClientHost, Client>,
    /// Of the job that was taken last.
    round: u64,
}

#[derive(Debug)]
struct Waiting<Job> {
    client: ClientHost,
    /// A client's jobs are in one round each: each client has its turn before any has its next.
    round: u64,
    job: Job,
}

#[derive(Debug, Default)]
struct Client {
    pending: usize,
    waiting: usize,
    /// Of its last job.
    round: u64,
}

impl<Job> Queue<Job> {
    pub(super) const fn new() -> Self {
        let state = State { waiting: Vec::new(), clients: BTreeMap::new(), round: 0 };
        Self(Mutex::new(state), Condvar::new())
    }

    /// Puts a job at the end of its client's turns. Where there are too many, those go first for which `is_forsaken` says that
    /// nobody waits any more; then a client that has none waiting takes the last place of the one that has most, of which the job
    /// is dropped.
    ///
    /// # Errors
    /// The job, if its client has too many under way or nobody has more than one.
    pub(super) fn push(
        &self,
        client: ClientHost,
        job: Job,
        is_forsaken: impl Fn(&Job) -> bool,
    ) -> Result<(), Job> {
        let client = client.network();
        let mut state = self.state();
        if state.pending(client) >= PENDING_PER_CLIENT_MAX {
            return Err(job);
        }
        let mut dropped = Vec::new();
        if state.waiting.len() >= WAITING_MAX {
            dropped = state.drop_forsaken(is_forsaken);
        }
        if state.waiting.len() >= WAITING_MAX {
            match state.displaced_by(client) {
                Some(displaced) => dropped.push(displaced),
                None => return Err(job),
            }
        }
        state.add(client, job);
        drop(state);
        // Outside of the lock: each tells its request.
        drop(dropped);
        self.1.notify_one();
        Ok(())
    }

    /// The next job and its client, once there is one.
    pub(super) fn next(&self) -> (ClientHost, Job) {
        let mut state = self.state();
        loop {
            if let Some(next) = state.take_next() {
                return next;
            }
            state = self.1.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Notes that a job of this client, which [`next`](Self::next) gave, is done.
    pub(super) fn done(&self, client: ClientHost) {
        self.state().forget_one(client);
    }

    fn state(&self) -> MutexGuard<'_, State<Job>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<Job> State<Job> {
    fn pending(&self, client: ClientHost) -> usize {
        self.clients.get(&client).map_or(0, |client| client.pending)
    }

    fn add(&mut self, client: ClientHost, job: Job) {
        let known = self.clients.entry(client).or_default();
        let round = if known.pending == 0 { self.round } else { self.round.max(known.round + 1) };
        known.round = round;
        known.pending += 1;
        known.waiting += 1;
        self.waiting.push(Waiting { client, round, job });
    }

    fn take_next(&mut self) -> Option<(ClientHost, Job)> {
        // The first of those of the earliest round.
        let (at, _) = self.waiting.iter().enumerate().min_by_key(|(_, it)| it.round)?;
        let Waiting { client, round, job } = self.waiting.remove(at);
        self.round = self.round.max(round);
        if let Some(known) = self.clients.get_mut(&client) {
            known.waiting -= 1;
        }
        Some((client, job))
    }

    fn drop_forsaken(&mut self, is_forsaken: impl Fn(&Job) -> bool) -> Vec<Job> {
        let forsaken: Vec<_> = self.waiting.extract_if(.., |it| is_forsaken(&it.job)).collect();
        forsaken.into_iter().map(|it| self.dropped(it)).collect()
    }

    /// The last job of the client that has most waiting, for one that has none.
    fn displaced_by(&mut self, client: ClientHost) -> Option<Job> {
        if self.pending(client) > 0 {
            return None;
        }
        let (most, known) = self.clients.iter().max_by_key(|(_, client)| client.waiting)?;
        if known.waiting < 2 {
            return None;
        }
        let at = self.waiting.iter().rposition(|it| it.client == *most)?;
        let displaced = self.waiting.remove(at);
        Some(self.dropped(displaced))
    }

    fn dropped(&mut self, waiting: Waiting<Job>) -> Job {
        if let Some(known) = self.clients.get_mut(&waiting.client) {
            known.waiting -= 1;
        }
        self.forget_one(waiting.client);
        waiting.job
    }

    fn forget_one(&mut self, client: ClientHost) {
        let Some(known) = self.clients.get_mut(&client) else { return };
        known.pending -= 1;
        if known.pending == 0 {
            self.clients.remove(&client);
        }
    }
}

/// Passwords that wait for a thread.
pub(super) const WAITING_MAX: usize = 64;
/// A browser has six connections to a host.
pub(super) const PENDING_PER_CLIENT_MAX: usize = 8;

#[cfg(test)]
mod tests;

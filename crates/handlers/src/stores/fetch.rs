//! The objects on their way into a store, for all requests that ask for them meanwhile, on any worker.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use kettle_cache::{Fill, FillProgress, FillState, ObjectHead, Store, Waiting};
use tokio::sync::watch;

/// All that is on its way.
#[derive(Debug, Default)]
pub struct Fetches {
    under_way: Mutex<UnderWay>,
    waiting: AtomicU64,
}

/// Each under its key, and under its URI alone where that turned out to have no variants.
type UnderWay = HashMap<Box<str>, Arc<Fetch>>;

/// One object on its way.
#[derive(Debug)]
pub struct Fetch {
    key: Box<str>,
    state: watch::Sender<FetchState>,
    /// The heads of interim responses that came, as clients get them. A server has a bound for how many it may send.
    interim: watch::Sender<Vec<Bytes>>,
    /// The store's generation when it was asked for: later purges may mean it.
    generation: u64,
    /// True if the store has it, or never will.
    has_ended: AtomicBool,
}

/// The progress of a fetch.
#[derive(Clone, Debug)]
pub enum FetchState {
    /// The backend has not answered.
    Asked,
    /// It can be read.
    Growing(Arc<(ObjectHead, FetchBody)>),
    /// The stored object is still good.
    Validated,
    /// It was written to its end, or never will be.
    Ended,
    /// It is not kept: each asks for itself.
    Alone,
    /// The backend failed: with this status, and not for one client alone.
    Failed(u16),
}

/// The body of an object on its way.
#[derive(Debug)]
pub enum FetchBody {
    /// In a file that grows.
    InFile {
        /// The file.
        fill: Fill,
        /// True if the backend says that it answers with ranges of it, too.
        has_ranges: bool,
    },
    /// Here as a whole, and written behind that if it is kept.
    Whole {
        /// All of it.
        bytes: Bytes,
        /// True if it is written.
        is_kept: bool,
    },
}

impl FetchBody {
    /// True if it is kept, as far as is known.
    pub fn is_kept(&self) -> bool {
        !matches!(self, Self::Whole { is_kept: false, .. })
    }

    /// True if it is read without the disk, here as a whole.
    pub fn is_in_memory(&self) -> bool {
        matches!(self, Self::Whole { .. })
    }

    /// A place among those that wait for it, if it takes one to have more come.
    #[must_use]
    pub fn place(&self) -> Option<Waiting> {
        let Self::InFile { fill, .. } = self else { return None };
        Some(fill.wait())
    }

    /// True if the rest never comes.
    pub fn is_broken(&self) -> bool {
        let Self::InFile { fill, .. } = self else { return false };
        !matches!(fill.progress().state, FillState::Growing | FillState::Complete)
    }

    /// True if nothing more comes of it.
    pub fn is_whole(&self) -> bool {
        let Self::InFile { fill, .. } = self else { return true };
        let FillProgress { filled, state } = fill.progress();
        state != FillState::Growing || fill.announced_bytes() == Some(filled)
    }
}

/// Lets an object arrive. When it is dropped, all requests that wait for the object learn that no more comes.
#[derive(Debug)]
pub struct FetchWriter {
    fetches: Arc<Fetches>,
    fetch: Arc<Fetch>,
}

impl Fetches {
    /// The object that is arriving under a key. If there is none, or a purge may have covered it, the caller has to fetch the
    /// object.
    ///
    /// # Errors
    /// [`FetchWriter`], which is no failure: with it the caller lets the object arrive.
    pub fn join(self: &Arc<Self>, key: &str, store: &Store) -> Result<Arc<Fetch>, FetchWriter> {
        let generation = store.generation();
        let mut under_way = self.lock();
        if let Some(fetch) = found(&under_way, key, store) {
            return Ok(fetch);
        }
        let state = watch::Sender::new(FetchState::Asked);
        let interim = watch::Sender::default();
        let has_ended = AtomicBool::new(false);
        let fetch = Arc::new(Fetch { key: key.into(), state, interim, generation, has_ended });
        under_way.insert(key.into(), Arc::clone(&fetch));
        Err(FetchWriter { fetches: Arc::clone(self), fetch })
    }

    /// The object that is arriving under a key, for callers that would not fetch it themselves.
    pub fn find(&self, key: &str, store: &Store) -> Option<Arc<Fetch>> {
        found(&self.lock(), key, store)
    }

    /// The number of clients that wait for a backend's answer to another's request.
    pub fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, UnderWay> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Fetch {
    /// True if it was asked for before a purge that means it, or may mean it.
    fn is_purged(&self, store: &Store) -> bool {
        if let FetchState::Growing(arriving) = &*self.state.borrow() {
            return store.is_purged(&arriving.0);
        }
        store.may_be_purged(uri_of(&self.key), self.generation)
    }

    /// True if its head is there, and says that it is for whoever asks for its URI.
    fn is_for_all(&self) -> bool {
        matches!(&*self.state.borrow(), FetchState::Growing(arriving) if arriving.0.vary.is_empty())
    }

    /// True if its head is there already.
    pub fn is_growing(&self) -> bool {
        matches!(*self.state.borrow(), FetchState::Growing(_))
    }

    /// The interim responses to it.
    pub fn interim(&self) -> watch::Receiver<Vec<Bytes>> {
        self.interim.subscribe()
    }

    /// Waits until nothing more comes of it.
    pub async fn ended(&self) {
        let has_ended = |_: &FetchState| self.has_ended.load(Ordering::Acquire);
        let _ = self.state.subscribe().wait_for(has_ended).await;
    }

    /// Waits until it is known what becomes of it.
    pub async fn known(&self, fetches: &Fetches) -> FetchState {
        struct Counted<'c>(&'c AtomicU64);
        impl Drop for Counted<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
        }
        fetches.waiting.fetch_add(1, Ordering::Relaxed);
        let _counted = Counted(&fetches.waiting);
        let mut state = self.state.subscribe();
        let known = state.wait_for(|state| !matches!(state, FetchState::Asked)).await;
        known.map_or(FetchState::Alone, |state| state.clone())
    }
}

impl FetchWriter {
    /// True if anybody waits to know what becomes of it.
    pub fn has_waiting(&self) -> bool {
        self.fetch.state.receiver_count() > 0
    }

    /// The generation that it belongs to.
    pub fn generation(&self) -> u64 {
        self.fetch.generation
    }

    /// The fetch as others see it.
    pub fn fetch(&self) -> Arc<Fetch> {
        Arc::clone(&self.fetch)
    }

    /// Says that this interim response came.
    pub fn tell_interim(&self, head: Vec<u8>) {
        self.fetch.interim.send_modify(|heads| heads.push(head.into()));
    }

    /// Says how far it is.
    pub fn tell(&self, state: FetchState) {
        self.fetch.state.send_replace(state);
        if self.fetch.is_for_all() {
            let uri = uri_of(&self.fetch.key).into();
            self.fetches.lock().entry(uri).or_insert_with(|| Arc::clone(&self.fetch));
        }
    }
}

impl Drop for FetchWriter {
    fn drop(&mut self) {
        let mut under_way = self.fetches.lock();
        for key in [&*self.fetch.key, uri_of(&self.fetch.key)] {
            // After a purge another may have its place.
            if under_way.get(key).is_some_and(|it| Arc::ptr_eq(it, &self.fetch)) {
                under_way.remove(key);
            }
        }
        drop(under_way);
        self.fetch.has_ended.store(true, Ordering::Release);
        self.fetch.state.send_modify(|state| match state {
            FetchState::Asked => *state = FetchState::Alone,
            // A request that has joined and not read yet is answered from memory all the same.
            FetchState::Growing(arriving) if arriving.1.is_in_memory() => {}
            FetchState::Growing(_) => *state = FetchState::Ended,
            _ => {}
        });
    }
}

fn found(under_way: &UnderWay, key: &str, store: &Store) -> Option<Arc<Fetch>> {
    let own = under_way.get(key).filter(|it| !it.is_purged(store));
    let for_all = || {
        let fetch = under_way.get(uri_of(key)).filter(|it| it.is_for_all());
        fetch.filter(|it| !it.is_purged(store))
    };
    own.or_else(for_all).cloned()
}

/// The text that makes an object one of several variants stands behind its URI, by which purges name it.
fn uri_of(key: &str) -> &str {
    key.split('\n').next().unwrap_or_default()
}

#[cfg(test)]
mod tests;

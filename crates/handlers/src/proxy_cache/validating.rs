//! The effect of a 304 on the object that was asked about: newer fields and new time, or nothing that may be kept; and what a
//! write leaves of those it was about.

use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use kettle_cache::{Name, Object, ObjectHead, Purge, Store, StoreError, Times};
use kettle_http::caching::control::Control;
use kettle_http::caching::key::{also_invalid, by_other_scheme};
use kettle_http::caching::{self, FieldLines, vary};
use kettle_http::h1::response::ResponseHead;
use kettle_runtime::disk::{Device, Disks};
use kettle_upstream::SharedRequest;
use tokio::sync::watch;

use super::cache_request::CacheRequest;
use super::fetching::Fetching;
use super::stored_response::ObjectVersion;
use super::{CALL_BYTES, CachedRoute, TAGS_MAX, lines, stored_response};
use crate::proxy::SharedTarget;
use crate::stores::OpenStore;

/// The words of a backend in its 304.
struct Validation {
    /// The version about which it said that.
    version: ObjectVersion,
    /// Which it said that is.
    said: ObjectVersion,
    /// Its fields as they came.
    fields: Vec<(Vec<u8>, Vec<u8>)>,
    /// Those that clients see.
    lines: Vec<u8>,
    /// Those by which it is purged from now on, if it says so.
    tags: Option<Vec<String>>,
    asked: SystemTime,
    answered: SystemTime,
    /// The latest generation of the object that was asked about.
    generation: u64,
}

impl Fetching {
    /// Gives what is there the fields of the 304, and new time; whether it is still what was asked about.
    pub(super) async fn validate(
        &self,
        version: &ObjectVersion,
        head: &ResponseHead<Bytes>,
        asked: SystemTime,
        answered: SystemTime,
    ) -> bool {
        let fields = head.headers().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
        let lines = self.own_lines(head, answered);
        let tags = self.tags(head);
        let generation = self.arriving.generation();
        let version = version.clone();
        let said = ObjectVersion::said(head);
        let validation =
            Validation { version, said, fields, lines, tags, asked, answered, generation };
        let store = Arc::clone(&self.open.store);
        let this = Arc::clone(&self.asked);
        let route = Arc::clone(&self.route);
        let refresh = move || validation.refresh(&store, &this, &route);
        match self.disks.wait_for(&self.device, refresh).await {
            Ok(Ok(is_refreshed)) => is_refreshed,
            Ok(Err(error)) => {
                self.route.failed(&error);
                // An object that a disk does not take is still good; of all else nobody knows that.
                matches!(error, StoreError::Disk { .. })
            }
            Err(why) => {
                self.route.unanswered(why);
                true
            }
        }
    }
}

impl CachedRoute {
    /// Forgets what is kept of these, which were written to.
    pub(super) async fn invalidate(
        self: &Arc<Self>,
        keys: &Arc<[Name]>,
        disks: &Disks,
        device: &Arc<Device>,
        open: &OpenStore,
    ) {
        // At once, however busy the disk is, and whether or not the client waits for that.
        keys.iter().for_each(|key| open.store.forget(&Purge::Key(*key)));
        let store = Arc::clone(&open.store);
        let keys = Arc::clone(keys);
        let held_bytes = CALL_BYTES + size_of_val(&*keys);
        // Each of them, whatever becomes of the others.
        let remove = move || {
            keys.iter().map(|key| store.remove_key(*key).map(drop)).fold(Ok(()), Result::and)
        };
        match disks.wait_for(device, remove.clone()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.failed(&error),
            // The files have to go all the same: what the store remembers of them ends with the process.
            Err(_) if device.has_room(held_bytes) => {
                let route = Arc::clone(self);
                device.run_later(held_bytes, move || {
                    remove().unwrap_or_else(|error| route.failed(&error));
                });
            }
            Err(_) => self.failed(&StoreError::Crowded),
        }
    }

    /// The same, whatever becomes of the client; at once, or when the response to the write is over: dropped, `over` says so.
    pub(super) async fn invalidate_after(
        self: Arc<Self>,
        over: Option<watch::Receiver<()>>,
        keys: Arc<[Name]>,
        disks: Disks,
        device: Arc<Device>,
        _shared: SharedRequest,
    ) {
        if let Some(mut over) = over {
            let _ = over.changed().await;
        }
        if let Some(open) = self.store.written_to(&keys) {
            self.invalidate(&keys, &disks, &device, open).await;
        }
    }
}

/// Forgets what a write leaves nothing of: its own URL, and those that its response names in these lines, by either scheme.
pub(super) fn invalid_keys(target: &SharedTarget, own: &[u8]) -> Arc<[Name]> {
    let also = also_invalid(&lines::fields(own), target.origin(), target.reference());
    let keys = std::iter::once(target.uri()).chain(also.iter().map(String::as_str));
    let names = |key| {
        let other = by_other_scheme(key).map(|other| Name::of_key(&other));
        std::iter::once(Name::of_key(key)).chain(other)
    };
    keys.flat_map(names).collect()
}

impl Validation {
    /// Says whether there was something to refresh.
    fn refresh(
        &self,
        store: &Store,
        this: &CacheRequest,
        route: &CachedRoute,
    ) -> Result<bool, StoreError> {
        let Some(mut object) = store.find(this.key(), &|name| this.value(name))? else {
            return Ok(false);
        };
        if object.head.generation > self.generation
            || ObjectVersion::of(&object.head) != self.version
        {
            // The object in question was purged, or replaced for a client that takes another coding, and this has come since.
            return Ok(false);
        }
        let fresher = self.fresher(&object, this, route);
        match fresher.map(|fresher| store.refresh(&mut object, fresher)) {
            // It has to come anew.
            None | Some(Err(StoreError::HeadTooLarge)) => {
                store.purge(&Purge::Key(Name::of_key(this.key()))).map(|_| false)
            }
            Some(refreshed) => refreshed.map(|()| true),
        }
    }

    /// The object's new head; `None` if the 304 is not for this object, or for nobody else.
    fn fresher(
        &self,
        object: &Object,
        this: &CacheRequest,
        route: &CachedRoute,
    ) -> Option<ObjectHead> {
        let said: Vec<_> = self.fields.iter().map(|(name, value)| (&**name, &**value)).collect();
        let control = Control::of(&said, route.targeted.as_deref());
        let known = |name: String| object.head.vary.iter().any(|(other, _)| *other == name);
        let is_same_choice =
            vary::names(&said).is_some_and(|names| this.telling_apart(names).all(known));
        // Nobody's cookie is everybody's.
        let has_cookie = has(&said, "set-cookie");
        let etag = said.iter().find(|(name, _)| name.eq_ignore_ascii_case(b"etag"));
        // An object with another validator is another one (RFC 9111 §4.3.4).
        let is_other = match etag {
            Some((_, etag)) => opaque(etag) != opaque(&object.head.etag),
            None => {
                self.said.modified.zip(object.head.modified).is_some_and(|(new, old)| new != old)
            }
        };
        let tags = self.tags.as_ref().unwrap_or(&object.head.tags);
        if tags.len() > TAGS_MAX
            || has_cookie
            || is_other
            || !is_same_choice
            || control.forbids_storing()
            || control.private
        {
            return None;
        }
        let ObjectVersion { etag, modified } = self.said.clone();
        // The body that is kept may be another one of what a weak tag names: it is not made strong by a word (RFC 9110 §8.8.1).
        let keeps_tag = etag.is_empty() || (is_weak(&object.head.etag) && !is_weak(&etag));
        let merged = lines::updated(&object.head.lines, &self.lines, keeps_tag);
        let old = lines::fields(&merged);
        // The 304's own first: its date and its age count, and are not among those that are kept.
        let old =
            old.iter().copied().filter(|(name, _)| !has(&said, &String::from_utf8_lossy(name)));
        let fields: Vec<_> = said.iter().copied().chain(old).collect();
        let answer = route.answer(object.head.status, &fields, self.asked, self.answered);
        let mut times =
            stored_response::times(caching::revalidated(&answer, &route.defaults), self.answered);
        let mut is_for_everybody = Control::of(&fields, answer.targeted).is_for_everybody();
        let says = |name: &str| has(&said, name);
        // The first words of the server may be hidden behind the operator's words to clients.
        if !says("cache-control") && !answer.targeted.is_some_and(says) {
            is_for_everybody = object.head.is_for_everybody;
            let is_hidden = || !says_times(&object.head, route);
            if !says("expires") && (!caching::is_explicit(&answer) || is_hidden()) {
                times = Times { arrived: times.arrived, age: times.age, ..object.head.times };
            }
        }
        // From here on the backend is asked by what clients see.
        let etag = if keeps_tag { object.head.etag.clone() } else { etag };
        let modified = modified.or(object.head.modified);
        let tags = tags.clone();
        let lines = merged;
        let old = object.head.clone();
        Some(ObjectHead { times, is_for_everybody, lines, etag, modified, tags, ..old })
    }
}

/// True if the lines that clients get say for how long an object may be used, and nothing else did.
fn says_times(head: &ObjectHead, route: &CachedRoute) -> bool {
    let fields = lines::fields(&head.lines);
    let answer = route.answer(head.status, &fields, SystemTime::UNIX_EPOCH, SystemTime::UNIX_EPOCH);
    let said = stored_response::times(
        caching::revalidated(&answer, &route.defaults),
        SystemTime::UNIX_EPOCH,
    );
    Times { arrived: head.times.arrived, age: head.times.age, ..said } == head.times
}

fn has(fields: FieldLines<'_>, name: &str) -> bool {
    fields.iter().any(|(other, _)| other.eq_ignore_ascii_case(name.as_bytes()))
}

/// An entity tag without its weakness.
fn opaque(etag: &[u8]) -> &[u8] {
    etag.strip_prefix(b"W/").unwrap_or(etag)
}

fn is_weak(etag: &[u8]) -> bool {
    etag.starts_with(b"W/")
}

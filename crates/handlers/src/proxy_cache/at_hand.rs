//! Answers without a wait: an object that is remembered, or that the kernel has at hand. Most hits are answered here, and cost what
//! this does: nothing is copied for a thread, and no future is made.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use kettle_cache::ObjectHead;
use kettle_exchange::request::{Head, Request};
use kettle_exchange::response::{LogNotes, Response};
use kettle_http::caching::Use;

use super::cache_request::CacheRequest;
use super::stored_response::{self, StoredResponse};
use super::{CachedRoute, device, hit, is_read, with_status};
use crate::files::handler::Files;
use crate::files::object::{FoundObject, ObjectLook, ObjectMeeting, ReadyObject};
use crate::stores::{CacheOutcome, OpenStore};

/// The progress with a request that takes more than what is at hand.
#[derive(Debug, Default)]
pub struct Begun {
    pub(super) asked: Option<CacheRequest>,
    pub(super) sought: Sought,
}

/// The outcome of a look at what is at hand.
#[derive(Debug, Default)]
pub(super) enum Sought {
    /// Nothing was looked at.
    #[default]
    NotYet,
    /// An object, which is not simply the answer.
    Object(Rc<ReadyObject>),
    /// A thread has to look.
    Waits(ObjectMeeting),
}

/// The answer from an object that is at hand and fresh, for this path; how far it came if that takes more, or is an error.
///
/// # Errors
/// If a thread has to look, or the backend has to be asked.
#[expect(clippy::result_large_err, reason = "it is where the request goes on")]
pub fn ready(
    route: &CachedRoute,
    files: &Files,
    path: &str,
    request: &Request<'_>,
    notes: &mut LogNotes,
) -> Result<Response, Begun> {
    let Some(asked) = CacheRequest::new(route, path, request) else { return Err(Begun::default()) };
    let sought = match is_read(route, request) {
        true => look(route, files, &asked, &request.head),
        false => Sought::NotYet,
    };
    if let Sought::Object(object) = &sought {
        let is_allowed = !asked.has_credentials || object.head.is_for_everybody;
        let (_, now) = files.now();
        if let (true, Use::Fresh(left)) = (is_allowed, stored_response::usable(&object.head, now))
            && let Ok(response) =
                route.respond_from(&StoredResponse::whole(object), &request.head, now)
        {
            route.count(CacheOutcome::Hit, notes);
            return Ok(with_status(response, &hit(left)));
        }
    }
    Err(Begun { asked: Some(asked), sought })
}

fn look(route: &CachedRoute, files: &Files, asked: &CacheRequest, head: &Head) -> Sought {
    let remembered = files.remembered_object(route.number, asked.fetch_key());
    if let Some(object) = remembered.filter(|object| asked.fits(head, &object.head.vary)) {
        return Sought::Object(object);
    }
    let Some(open) = route.store.get() else { return Sought::NotYet };
    let look = begin(open, files, asked);
    if look.known.is_nothing() {
        return Sought::NotYet;
    }
    let met = meet(route, files, asked, &look);
    match find(route, files, asked, &look, &|name| asked.value_in(head, name), met) {
        Some(object) => Sought::Object(object),
        None => Sought::Waits(met),
    }
}

/// Begins to look for what is asked for.
pub(super) fn begin<'l>(
    open: &'l OpenStore,
    files: &'l Files,
    asked: &CacheRequest,
) -> ObjectLook<'l> {
    let device = device(files.disks(), open);
    ObjectLook::begin(&open.store, asked.key(), device, files.clock())
}

/// Meets what is looked for.
pub(super) fn meet(
    route: &CachedRoute,
    files: &Files,
    asked: &CacheRequest,
    look: &ObjectLook<'_>,
) -> ObjectMeeting {
    let known = &look.known;
    files.meet_object(route.number, asked.fetch_key(), &known.name(), known.bytes())
}

/// Returns the object that the kernel has at hand; `None` if a thread has to look.
pub(super) fn find(
    route: &CachedRoute,
    files: &Files,
    asked: &CacheRequest,
    look: &ObjectLook<'_>,
    value_of: &dyn Fn(&str) -> Vec<u8>,
    met: ObjectMeeting,
) -> Option<Rc<ReadyObject>> {
    let found = FoundObject::find_at_once(look, asked.key(), value_of, files.memory(), met)?;
    Some(made_ready(route, files, asked, look, found, met))
}

/// Returns the object that was found, ready to be answered with. It is remembered while it is fresh.
pub(super) fn made_ready(
    route: &CachedRoute,
    files: &Files,
    asked: &CacheRequest,
    look: &ObjectLook<'_>,
    mut found: FoundObject,
    met: ObjectMeeting,
) -> Rc<ReadyObject> {
    if let Cow::Owned(head) = as_passed_on(route, found.head()) {
        *found.head_mut() = head;
    }
    let (now, wall) = files.now();
    let object = ReadyObject::new(found, look.store(), Arc::clone(look.device()), now);
    if matches!(stored_response::usable(&object.head, wall), Use::Fresh(_)) {
        files.remember_object(route.number, asked.fetch_key(), &object, met);
    }
    object
}

/// Returns a stored head, as clients get it by the settings of today.
pub(super) fn as_passed_on<'h>(route: &CachedRoute, head: &'h ObjectHead) -> Cow<'h, ObjectHead> {
    match route.proxy.still_passed_on(head.status, &head.lines) {
        Some(lines) => Cow::Owned(ObjectHead { lines, ..head.clone() }),
        None => Cow::Borrowed(head),
    }
}

//! Letting an object arrive: one request, whoever asked for it, and a body that is written as it comes. The task belongs to
//! nobody: a client that goes away holds up nobody, and leaves nothing undone.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use kettle_cache::{Fill, Head as Stored, Purge, StoreError, Writer};
use kettle_http::caching::{self, Answer, control::Control, vary};
use kettle_http::date;
use kettle_http::h1::response::ResponseHead;
use tokio::sync::oneshot;

use super::asked::Asked;
use super::{CachedRoute, kept, lines};
use crate::disk::{Device, Disks};
use crate::stores::{ArrivalState, Arriving, OpenStore};
use crate::upstream::{OutgoingRequest, Pool, Trace, UpstreamBody, UpstreamResponse, fetch};

/// An object that is asked for.
pub(super) struct Fetching {
    pub(super) route: Arc<CachedRoute>,
    pub(super) open: OpenStore,
    pub(super) device: Arc<Device>,
    pub(super) disks: Disks,
    pub(super) pool: Rc<Pool>,
    pub(super) asked: Arc<Asked>,
    pub(super) outgoing: OutgoingRequest,
    /// Whether the backend is asked if what is there is still good.
    pub(super) is_validating: bool,
    /// Whether what is there is better than an error.
    pub(super) may_be_stale: bool,
    pub(super) arriving: Arriving,
}

/// What came of it, for whoever asked first.
pub(super) enum Led {
    Growing(Arc<(Stored, Fill)>, Option<Box<Trace>>),
    Validated(Option<Box<Trace>>),
    /// It has come meanwhile, or went away: the store has to be asked again.
    Again,
    /// The response is for one client; it is whose request went out.
    Alone(Option<(Box<UpstreamResponse>, Box<Trace>)>),
    Failed(u16, Box<Trace>),
}

impl From<ArrivalState> for Led {
    fn from(state: ArrivalState) -> Self {
        match state {
            ArrivalState::Growing(arriving) => Led::Growing(arriving, None),
            ArrivalState::Validated => Led::Validated(None),
            ArrivalState::Ended => Led::Again,
            ArrivalState::Asked | ArrivalState::Alone => Led::Alone(None),
            ArrivalState::Failed(status) => Led::Failed(status, Box::default()),
        }
    }
}

impl Fetching {
    /// Asks the backend, and sees to what comes. `leader` may have gone.
    pub(super) async fn run(self, leader: oneshot::Sender<Led>) {
        if self.has_come_meanwhile().await {
            self.arriving.tell(ArrivalState::Validated);
            let _ = leader.send(Led::Validated(None));
            return;
        }
        let mut trace = Box::<Trace>::default();
        let (asked, generation) = (SystemTime::now(), self.open.store.generation());
        let upstream = &self.route.proxy.upstream;
        let response = fetch(upstream, &self.pool, &self.outgoing, &mut trace).await;
        let answered = SystemTime::now();
        let response = match response {
            Ok(response) if !(self.may_be_stale && is_failure(response.head.status())) => response,
            failed => {
                let status = failed.map_or_else(|error| error.status(), |it| it.head.status());
                self.arriving.tell(ArrivalState::Failed(status));
                let _ = leader.send(Led::Failed(status, trace));
                return;
            }
        };
        if response.head.status() == 304 && self.is_validating {
            self.validate(&response.head, asked, answered).await;
            self.arriving.tell(ArrivalState::Validated);
            let _ = leader.send(Led::Validated(Some(trace)));
            return;
        }
        let fields: Vec<_> = response.head.headers().collect();
        let answer = Answer { status: response.head.status(), fields: &fields, asked, answered };
        let writer = match caching::evaluate(&answer, &self.route.defaults) {
            Ok(freshness) => {
                let times = kept::times(freshness, answered);
                let stored = Stored { times, generation, ..self.stored(&response.head) };
                self.begin(stored, response.body.length()).await
            }
            Err(_) => None,
        };
        let Some(writer) = writer else {
            self.arriving.tell(ArrivalState::Alone);
            // Where nobody waits, nobody reads it.
            let _ = leader.send(Led::Alone(Some((Box::new(response), trace))));
            return;
        };
        let arriving = Arc::new((writer.head().clone(), writer.fill().clone()));
        self.arriving.tell(ArrivalState::Growing(Arc::clone(&arriving)));
        let _ = leader.send(Led::Growing(arriving, Some(trace)));
        let fill = writer.fill().clone();
        self.write(writer, response.body).await;
        let Self { arriving, device, .. } = self;
        drop(arriving);
        // Without a name and readers it ends here, and its blocks with it.
        let bytes = fill.progress().filled;
        device.close(fill, bytes);
    }

    /// Whether another task was done with it between the look into the store and the beginning of this one.
    async fn has_come_meanwhile(&self) -> bool {
        if self.open.store.lacks(&self.asked.key) {
            return false;
        }
        let (store, asked) = (Arc::clone(&self.open.store), Arc::clone(&self.asked));
        let look = move || store.find(&asked.key, &|name| asked.value(name));
        let found = self.disks.wait_for(&self.device, look).await;
        let Ok(Ok(Some(object))) = found else { return false };
        kept::is_fresh(&object.head)
    }

    /// What is kept of a response's head.
    fn stored(&self, head: &ResponseHead<Bytes>) -> Stored {
        let fields: Vec<_> = head.headers().collect();
        let sole = |name: &str| {
            let mut values = head.header_values(name);
            values.next().filter(|_| values.next().is_none())
        };
        let tags = self.route.tags.as_ref().map(|name| head.header_values(name));
        let tags = tags.into_iter().flatten().flat_map(|value| {
            value.split(|byte| matches!(byte, b',' | b' ')).filter(|tag| !tag.is_empty())
        });
        let tags = tags.take(TAGS_MAX).map(|tag| String::from_utf8_lossy(tag).into_owned());
        let names = vary::names(&fields).unwrap_or_default();
        let modified = sole("last-modified").and_then(date::parse);
        let modified = modified.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        Stored {
            key: self.asked.key.clone(),
            vary: self.asked.vary_of(names, sole("content-encoding").is_some()),
            status: head.status(),
            lines: self.own_lines(head),
            etag: sole("etag").unwrap_or_default().to_vec(),
            modified: modified.map(|since| since.as_secs()),
            tags: tags.collect(),
            ..Stored::default()
        }
    }

    /// The backend's own lines, without what is only for us.
    fn own_lines(&self, head: &ResponseHead<Bytes>) -> Vec<u8> {
        let fields = self.route.proxy.fields(head);
        let [_, own] = fields.lines();
        let is_ours = |name: &[u8]| {
            let tags = self.route.tags.as_ref().is_some_and(|tags| name == tags.as_bytes());
            tags || matches!(name, b"age" | b"accept-ranges")
        };
        let mut out = Vec::with_capacity(own.len());
        for (name, value) in lines::fields(own).into_iter().filter(|(name, _)| !is_ours(name)) {
            let name = std::str::from_utf8(name).unwrap_or_default();
            kettle_http::h1::write::write_field(&mut out, name, value);
        }
        out
    }

    async fn begin(&self, head: Stored, announced_bytes: Option<u64>) -> Option<Writer> {
        let store = Arc::clone(&self.open.store);
        let begin = move || store.begin(head, announced_bytes);
        match self.disks.wait_for(&self.device, begin).await {
            Ok(Ok(writer)) => Some(writer),
            Ok(Err(error)) => {
                self.route.failed(&error);
                None
            }
            Err(_) => None,
        }
    }

    /// Writes what comes. Whatever goes wrong, the writer is dropped, and its readers learn of it.
    async fn write(&self, mut writer: Writer, mut body: UpstreamBody) {
        loop {
            let pieces = match pieces(&mut body).await {
                Ok(pieces) => pieces,
                Err(_) => return self.device.close(writer, u64::MAX),
            };
            let is_end = pieces.is_empty();
            if is_end && writer.is_too_large() {
                // Before its readers have all of it: they may ask again at once.
                self.route.store.pass(&self.asked.key);
            }
            let write = move || -> Result<Option<Writer>, StoreError> {
                if is_end {
                    return writer.finish().map(|_| None);
                }
                pieces.iter().try_for_each(|piece| writer.append(piece))?;
                writer.tell();
                Ok(Some(writer))
            };
            match self.disks.wait_for(&self.device, write).await {
                Ok(Ok(Some(rest))) => writer = rest,
                Ok(Ok(None)) | Err(_) => return,
                Ok(Err(error)) => {
                    // Whoever comes next is answered past the store.
                    if matches!(error, StoreError::TooLarge | StoreError::NoRoom) {
                        self.route.store.pass(&self.asked.key);
                    }
                    return self.route.failed(&error);
                }
            }
        }
    }

    /// Gives what is there the fields of the 304, and new time.
    async fn validate(&self, head: &ResponseHead<Bytes>, asked: SystemTime, answered: SystemTime) {
        let newer = self.own_lines(head);
        let said: Vec<_> = head.headers().collect();
        let said_vary = vary::names(&said);
        // Nobody's cookie is everybody's.
        let has_cookie = head.header_values("set-cookie").next().is_some();
        let raw: Vec<_> =
            head.headers().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
        let (store, this) = (Arc::clone(&self.open.store), Arc::clone(&self.asked));
        let defaults = self.route.defaults;
        let refresh = move || -> Result<(), StoreError> {
            let Some(mut object) = store.find(&this.key, &|name| this.value(name))? else {
                return Ok(());
            };
            let known = |name: &String| object.head.vary.iter().any(|(other, _)| other == name);
            let is_same_choice = said_vary.is_some_and(|names| names.iter().all(known));
            let control = Control::of(
                &raw.iter().map(|(name, value)| (&**name, &**value)).collect::<Vec<_>>(),
            );
            if has_cookie || !is_same_choice || control.no_store || control.private {
                // It has to come anew.
                return store.purge(&Purge::Key(this.key.clone())).map(|_| ());
            }
            let merged = lines::updated(&object.head.lines, &newer);
            let old = lines::fields(&merged);
            // The 304's own first: its date and its age count, and are not among those that are kept.
            let is_new = |name: &[u8]| raw.iter().any(|(it, _)| it.eq_ignore_ascii_case(name));
            let old = old.iter().copied().filter(|(name, _)| !is_new(name));
            let raw = raw.iter().map(|(name, value)| (name.as_slice(), value.as_slice()));
            let fields: Vec<_> = raw.chain(old).collect();
            let answer = Answer { status: object.head.status, fields: &fields, asked, answered };
            let times = kept::times(caching::revalidated(&answer, &defaults), answered);
            let fresher = Stored { times, lines: merged, ..object.head.clone() };
            match store.refresh(&mut object, fresher) {
                Ok(()) => Ok(()),
                Err(StoreError::HeadTooLarge) => {
                    store.purge(&Purge::Key(this.key.clone())).map(|_| ())
                }
                Err(error) => Err(error),
            }
        };
        if let Ok(Err(error)) = self.disks.wait_for(&self.device, refresh).await {
            self.route.failed(&error);
        }
    }
}

/// What comes next, and all that is there with it; nothing is the end.
async fn pieces(body: &mut UpstreamBody) -> Result<Vec<Bytes>, crate::upstream::UpstreamError> {
    let Some(first) = body.chunk().await? else { return Ok(Vec::new()) };
    let mut bytes = first.len();
    let mut pieces = vec![first];
    while bytes < PIECE_BYTES {
        let next = poll_fn(|context| {
            Poll::Ready(match body.poll_chunk(context) {
                Poll::Ready(Ok(Some(next))) => Some(next),
                // Told again when it is asked for the next time.
                _ => None,
            })
        });
        let Some(next) = next.await else { break };
        bytes += next.len();
        pieces.push(next);
    }
    Ok(pieces)
}

/// Whether an answer is one that a stale response is better than (RFC 5861 §4).
fn is_failure(status: u16) -> bool {
    matches!(status, 500 | 502..=504)
}

/// What is written at a time.
const PIECE_BYTES: usize = 256 * 1_024;

/// Tags that one object may have.
const TAGS_MAX: usize = 64;

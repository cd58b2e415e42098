//! Bodies that are stored before a server, or a client, gets them: which, and how one comes into the spool.

use std::sync::Arc;

use kettle_config::{BackendMethod, FieldTemplate, RequestBuffering, Route};
use kettle_exchange::request::{Head, Request, RequestBody};
use kettle_http::h1::framing::BodyFraming;
use kettle_runtime::client_address::ClientHost;
use kettle_runtime::disk::Disks;
use kettle_runtime::spool::{Spool, SpoolError, Spooled};
use kettle_upstream::UpstreamResponse;

use super::ProxyRoute;

/// The store of bodies of a worker.
#[derive(Clone, Copy)]
pub struct BodyStore<'w> {
    /// That of the process.
    pub spool: &'w Arc<Spool>,
    /// The worker's, by which it waits.
    pub disks: &'w Disks,
}

/// The treatment of a body before a server gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Buffering {
    /// It is passed on as it comes.
    Nothing,
    Stored,
    /// It has no length, and gets 411.
    Refused,
    /// It is thrown away. Servers get another one, or none.
    Replaced,
}

/// The parts that servers get in place of what clients send.
#[derive(Debug)]
pub(super) struct Replaced {
    pub(super) method: Option<BackendMethod>,
    pub(super) passes_headers: bool,
    passes_body: bool,
    pub(super) body: Option<FieldTemplate>,
}

impl Replaced {
    pub(super) fn of(route: &Route) -> Self {
        Self {
            method: route.backend_method,
            passes_headers: route.pass_headers,
            passes_body: route.pass_body,
            body: route.backend_body.clone(),
        }
    }
}

/// Why a body was not stored.
pub(super) enum StoreError {
    /// The client's part in it: what to answer.
    Client(u16),
    Spool(SpoolError),
}

impl ProxyRoute {
    /// Returns the treatment of a request's body.
    pub(super) fn buffering(&self, request: &Request<'_>) -> Buffering {
        let framing = request.body.framing();
        let has_no_length = framing == BodyFraming::Chunked;
        let is_replaced = match self.replaced.body {
            // A tunnel has none.
            Some(_) => !self.is_asked_to_upgrade(request),
            None => !self.replaced.passes_body && !framing.is_empty(),
        };
        match self.buffering {
            _ if is_replaced => Buffering::Replaced,
            RequestBuffering::Refuse if has_no_length => Buffering::Refused,
            // A program keeps a process busy while its client sends, and knows no body without a length.
            RequestBuffering::Off | RequestBuffering::Refuse
                if self.program.is_some() && !has_no_length =>
            {
                Buffering::Nothing
            }
            _ if self.program.is_some() && !framing.is_empty() => Buffering::Stored,
            // Its calls may be answered while they go on.
            _ if is_grpc(&request.head) || request.head.is_extended_connect() => Buffering::Nothing,
            RequestBuffering::UnknownLength if has_no_length => Buffering::Stored,
            RequestBuffering::All if !framing.is_empty() => Buffering::Stored,
            _ => Buffering::Nothing,
        }
    }

    /// True if nobody knows that servers take the body of a request for one, where it is passed on without a length. One that does
    /// not takes it for its next request, and that must not be another client's.
    pub(super) fn doubts_length(&self, request: &Request<'_>) -> bool {
        self.buffering != RequestBuffering::Off && request.body.framing() == BodyFraming::Chunked
    }
}

/// Has the body of a response taken at its server's speed, where that is wanted. An event stream has no end to wait for.
pub(crate) fn buffer_response(
    route: &ProxyRoute,
    response: &mut UpstreamResponse,
    client: ClientHost,
) {
    let head = &response.head;
    let said = head.header_values("x-accel-buffering").next().unwrap_or_default();
    let is_wanted = match route.takes_at_once {
        _ if said.eq_ignore_ascii_case(b"no") => false,
        Some(is_wanted) => is_wanted,
        None => said.eq_ignore_ascii_case(b"yes"),
    };
    let mut types = head.header_values("content-type");
    if is_wanted && !types.any(|it| begins_with(it, EVENT_STREAM)) {
        response.body.buffer(client.network());
    }
}

/// Stores all of a client's body of at most `bytes_max` bytes, or throws it away and stores its `own`: the request has none then. A client that waits to be told to go on is told at once: no server says it.
pub(super) async fn store(
    store: BodyStore<'_>,
    client: ClientHost,
    body: &mut RequestBody<'_>,
    own: Option<Vec<u8>>,
    bytes_max: u64,
) -> Result<Spooled, StoreError> {
    let bytes_max = bytes_max.min(store.spool.body_bytes_max());
    let mut spooled = store.spool.begin(client.network(), store.disks);
    while let Some(data) =
        body.chunk(bytes_max).await.map_err(|error| StoreError::Client(error.status()))?
    {
        if own.is_none() {
            spooled.push(data).await.map_err(StoreError::Spool)?;
        }
        body.note_passed_on();
    }
    if let Some(own) = own {
        spooled.push(&own).await.map_err(StoreError::Spool)?;
        body.set_framing(BodyFraming::None);
    }
    Ok(spooled)
}

fn is_grpc(head: &Head) -> bool {
    begins_with(head.header("content-type").unwrap_or_default(), GRPC)
}

fn begins_with(value: &[u8], beginning: &[u8]) -> bool {
    value.get(..beginning.len()).is_some_and(|it| it.eq_ignore_ascii_case(beginning))
}

const GRPC: &[u8] = b"application/grpc";
const EVENT_STREAM: &[u8] = b"text/event-stream";

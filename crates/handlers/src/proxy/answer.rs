//! From a request to a server's response, with an eye on the client: for one that has gone nobody is kept busy.

use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use kettle_exchange::error_page::HttpError;
use kettle_exchange::request::{Disconnected, Handed, Head, Request, Rest, websocket_accept};
use kettle_exchange::response::{Answer, Body, LogNotes, Nothing, Response, Upgraded};
use kettle_http::HttpVersion;
use kettle_http::forwarded::Scheme;
use kettle_http::h1::framing::BodyFraming;
use kettle_http::h1::response::ResponseHead;
use kettle_runtime::access_log::Destination;
use kettle_runtime::spool::{SpoolError, Spooled};
use kettle_upstream::backend::asked_by;
use kettle_upstream::{
    Answered, InFlight, OutgoingRequest, Pool, Reuse, Sent, Trace, Tries, UpstreamError,
    binds_connection,
};

use super::buffering::{BodyStore, Buffering, StoreError, buffer_response, store};
use super::upload::{Upload, UploadError, upload, upload_stored};
use super::{Asker, ProxyRoute};
use crate::words::cookie;

/// Why there is no response of a server's.
enum PassError {
    Upstream(UpstreamError),
    /// The request's body.
    Upload(u16),
    /// It cannot be stored.
    Spool(SpoolError),
    /// The client went away.
    Disconnected,
}

impl From<UpstreamError> for PassError {
    fn from(error: UpstreamError) -> Self {
        Self::Upstream(error)
    }
}

impl From<StoreError> for PassError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Client(status) => Self::Upload(status),
            StoreError::Spool(error) => Self::Spool(error),
        }
    }
}

impl From<Disconnected> for PassError {
    fn from(_: Disconnected) -> Self {
        Self::Disconnected
    }
}

/// Passes a request, for this path if not the one asked for, to a server and returns the head of its response, with the body to come.
///
/// # Errors
/// The response to send instead. `notes` say in any case what came of it.
pub async fn respond(
    route: &ProxyRoute,
    pool: &Rc<Pool>,
    bodies: BodyStore<'_>,
    path: Option<&str>,
    request: &mut Request<'_>,
    notes: &mut LogNotes,
) -> Result<Answer, HttpError> {
    let framing = request.body.framing();
    if matches!(framing, BodyFraming::Length(bytes) if bytes > route.request_body_bytes_max) {
        return Err(413.into());
    }
    // It would show a client what only servers are told.
    if request.head.method().as_str() == "TRACE" {
        return Err(HttpError { status: 405, fields: vec![("allow", METHODS.to_owned())] });
    }
    let asks_upgrade = route.is_asked_to_upgrade(request);
    if request.head.is_extended_connect() && !asks_upgrade {
        return Err(501.into());
    }
    let buffering = route.buffering(request);
    let is_stored = matches!(buffering, Buffering::Stored | Buffering::Replaced);
    let mut outgoing = route.outgoing(path, request, asks_upgrade, is_stored).ok_or(400_u16)?;
    outgoing.retries = route.retries;
    let named = route.upstream.backend.cookie_name();
    outgoing.asked_server = named.and_then(|it| asked_by(cookie(&request.head, it)?));
    if buffering == Buffering::Refused {
        return Err(411.into());
    }
    let trace = notes.upstream.insert(Trace::default());
    let mut stored = None;
    let mut failed = None;
    if is_stored {
        trace.backend = Some(Arc::clone(&route.upstream.backend));
        match Box::pin(take_in(route, bodies, (buffering, path), request)).await {
            Ok(mut body) => {
                body.stays(!outgoing.retries.is_empty());
                outgoing.announce_body(BodyFraming::Length(body.bytes()));
                stored = Some(body);
            }
            Err(error) => failed = Some(error),
        }
    }
    let outcome = match failed {
        None => ask(route, pool, &outgoing, &mut stored, request, trace).await,
        Some(error) => Err(error),
    };
    outcome.or_else(|error| {
        let (status, reason) = match &error {
            PassError::Upstream(error) => (error.status(), error.reason()),
            PassError::Upload(status) => (*status, "request_body"),
            PassError::Spool(error) => {
                bodies.spool.failed(error);
                (503, error.reason())
            }
            PassError::Disconnected => {
                trace.failure = Some(CLIENT_GONE);
                return Ok(Answer::Nothing(Nothing::client_gone()));
            }
        };
        if let PassError::Upstream(error) = &error {
            let backend = &route.upstream.backend.name;
            let server = trace.server.as_ref();
            let server = server.map(|server| &*server.name);
            tracing::debug!(%backend, server, %error, "a request got no response");
        }
        trace.failure = Some(reason);
        Err(status.into())
    })
}

impl ProxyRoute {
    /// True if a request asks to become a tunnel, and this route has them. A request with a body changes no protocol.
    pub(crate) fn is_asked_to_upgrade(&self, request: &Request<'_>) -> bool {
        self.takes_upgrades
            && request.body.framing().is_empty()
            && request.head.upgrade().is_some_and(is_websocket)
    }
}

/// Stores a body, or what servers get in its place, unless its client takes the request back.
async fn take_in(
    route: &ProxyRoute,
    bodies: BodyStore<'_>,
    (buffering, path): (Buffering, Option<&str>),
    request: &mut Request<'_>,
) -> Result<Spooled, PassError> {
    let is_replaced = buffering == Buffering::Replaced;
    let own = is_replaced.then(|| route.own_body(path, request).unwrap_or_default());
    let client = request.client.host();
    let body = &mut request.body;
    let taken_back = body.taken_back();
    tokio::select! {
        biased;
        () = taken_back => Err(PassError::Disconnected),
        stored = store(bodies, client, body, own, route.request_body_bytes_max) => Ok(stored?),
    }
}

async fn ask(
    route: &ProxyRoute,
    pool: &Rc<Pool>,
    outgoing: &OutgoingRequest,
    stored: &mut Option<Spooled>,
    request: &mut Request<'_>,
    trace: &mut Trace,
) -> Result<Answer, PassError> {
    let vouched = route.vouched(request).filter(|(name, _)| *name == AUTHORIZATION);
    let said = request.head.header_values(AUTHORIZATION);
    let is_bound = said.chain(vouched.map(|(_, value)| value)).any(binds_connection);
    let mut reuse = if is_bound { Reuse::Nothing } else { outgoing.reuse() };
    let mut tries = Tries::new(&route.upstream, outgoing);
    let answer = loop {
        // The matched value is not named: a name would keep its memory while the server is waited for.
        let mut in_flight = match begin(&mut tries, pool, reuse, request, trace).await {
            Ok(in_flight) => in_flight,
            Err(PassError::Upstream(error)) => break tries.earlier(error, trace)?,
            Err(error) => return Err(error),
        };
        let conversed = converse(route, &mut in_flight, outgoing, stored.as_mut(), request).await;
        let answered = match conversed {
            Ok(answered) => Ok(answered),
            Err(PassError::Upstream(error)) => Err(error),
            Err(error) => return Err(error),
        };
        let is_stored = stored.is_some();
        if let Some(answer) =
            tries.after(in_flight, answered, outgoing, is_stored, &mut reuse, trace)?
        {
            break answer;
        }
        stored.iter_mut().for_each(Spooled::begin_again);
    };
    pass_on(route, outgoing, stored, request, answer, is_bound)
}

/// Makes of a server's answer what the client gets.
fn pass_on(
    route: &ProxyRoute,
    outgoing: &OutgoingRequest,
    stored: &mut Option<Spooled>,
    request: &mut Request<'_>,
    (in_flight, head, sent): Answered,
    is_bound: bool,
) -> Result<Answer, PassError> {
    let asks_upgrade = route.is_asked_to_upgrade(request);
    // One that was asked to change its protocol may believe that it did.
    let may_keep = !asks_upgrade && !is_bound && !outgoing.is_doubtful;
    let is_whole = matches!(sent, Sent::Whole);
    let to_come_back = in_flight.cookie(outgoing, request.client.scheme == Scheme::Https);
    if let Some(mut handed) = Handed::of(&head, route.accel_redirect) {
        let cookie = to_come_back.map(|cookie| ("set-cookie", cookie.into_bytes()));
        handed.fields.extend(cookie);
        if let Ok(answered) = in_flight.answer(head, outgoing.is_head(), may_keep && is_whole) {
            answered.body.read_past();
        }
        request.handed = Some(Box::new(handed));
        return Err(UpstreamError::InternalRedirect.into());
    }
    if head.status() == 101 {
        let upgraded = upgraded(route, in_flight, &head, request, asks_upgrade);
        return Ok(upgraded.ok_or(UpstreamError::UnaskedUpgrade)?);
    }
    // Its client would take whatever follows for the server's side of a tunnel.
    if request.head.is_extended_connect() && (200..=299).contains(&head.status()) {
        return Err(UpstreamError::NotUpgraded.into());
    }
    let framing = stored.as_ref().map(|it| BodyFraming::Length(it.bytes()));
    let coding = in_flight.body_coding(framing.unwrap_or(request.body.framing()));
    let answered = in_flight.answer(head, outgoing.is_head(), may_keep && is_whole);
    let mut response = answered?;
    // Only beside that response: what takes the place of a broken one comes from elsewhere.
    if let Sent::Concurrent(unsent, has_ended) = sent {
        let trailers = route.request_trailers(&request.head, request.client);
        let bytes_max = route.request_body_bytes_max;
        let rest = Rest { unsent, has_ended, stored: stored.take(), coding };
        request.body.upload_concurrently(rest, bytes_max, trailers, may_keep);
    }
    // Behind a body of a known length there are none.
    if takes_trailers(&request.head) && response.body.length().is_none() {
        response.body.keep_trailers(route.response_trailers(&response.head));
    }
    buffer_response(route, &mut response, request.client.host());
    let mut response = route.incoming(response, Asker::One(request));
    if let Some(cookie) = to_come_back {
        response.fields.add("set-cookie", cookie.as_bytes());
    }
    Ok(response.into())
}

/// Takes a connection, unless the client goes away. It is apart from what follows it, so that both take the same memory.
async fn begin(
    tries: &mut Tries,
    pool: &Rc<Pool>,
    reuse: Reuse,
    request: &mut Request<'_>,
    trace: &mut Trace,
) -> Result<InFlight, PassError> {
    // Pinned where they are: each wait that they go through would have a copy of them.
    let begin = pin!(tries.begin(pool, reuse, trace));
    Ok(request.body.while_there(pin!(pool.until_drained(begin))).await??)
}

/// Sends the request, and returns the head of the final response and how much of the request had been sent by then.
async fn converse(
    route: &ProxyRoute,
    in_flight: &mut InFlight,
    outgoing: &OutgoingRequest,
    stored: Option<&mut Spooled>,
    request: &mut Request<'_>,
) -> Result<(ResponseHead<Bytes>, Sent), PassError> {
    request.body.while_there(pin!(in_flight.send_head(outgoing))).await??;
    if stored.is_some() || !request.body.framing().is_empty() {
        let is_head = outgoing.is_head();
        let bytes_max = route.request_body_bytes_max;
        let uploaded = if let Some(stored) = stored {
            request.body.while_there(Box::pin(upload_stored(in_flight, stored)).as_mut()).await?
        } else {
            let trailers = route.request_trailers(&request.head, request.client);
            let taken_back = request.body.taken_back();
            tokio::select! {
                biased;
                // The body's end comes with it.
                () = taken_back => return Err(PassError::Disconnected),
                uploaded = Box::pin(upload(in_flight, is_head, &mut request.body, bytes_max, &trailers)) => uploaded,
            }
        };
        match uploaded {
            Ok(Upload::Complete) => {}
            Ok(Upload::Answered(head)) => return Ok((head, Sent::Part)),
            Ok(Upload::Concurrent { head, unsent, has_ended }) => {
                return Ok((head, Sent::Concurrent(unsent, has_ended)));
            }
            Err(UploadError::Client(error)) => return Err(PassError::Upload(error.status())),
            Err(UploadError::Spool(error)) => return Err(PassError::Spool(error)),
            Err(UploadError::Upstream(error)) => return Err(error.into()),
            Err(UploadError::Disconnected) => return Err(PassError::Disconnected),
        }
    }
    loop {
        let head = request.body.while_there(pin!(in_flight.next_head())).await??;
        match head.status() {
            100 => {}
            102..=199 if route.passes_interim(request.head.version()) => {
                let interim = route.interim(&head, Asker::One(request));
                let sent = request.body.send_interim(&interim).await;
                sent.map_err(|_| PassError::Disconnected)?;
            }
            102..=199 => {}
            _ => return Ok((head, Sent::Whole)),
        }
    }
}

/// The connection becomes a tunnel only after a 101 that names what was asked for: until then whatever a client sends is a
/// request. A client of HTTP/2 made no handshake of its own, so the server's is looked at here.
fn upgraded(
    route: &ProxyRoute,
    in_flight: InFlight,
    head: &ResponseHead<Bytes>,
    request: &Request<'_>,
    is_asked: bool,
) -> Option<Answer> {
    let protocol = sole(head, "upgrade").filter(|protocol| {
        is_asked && head.has_member("connection", "upgrade") && is_websocket(protocol)
    })?;
    let asker = Asker::One(request);
    let (status, fields) = if request.head.is_extended_connect() {
        let key = request.head.header("sec-websocket-key");
        let accept = websocket_accept(key.unwrap_or_default());
        sole(head, "sec-websocket-accept").filter(|it| *it == accept.as_bytes())?;
        (200, route.fields(head, asker).without("sec-websocket-accept:"))
    } else {
        (101, route.fields(head, asker).with("connection", "upgrade").with("upgrade", protocol))
    };
    let (link, received, slot, backend) = in_flight.into_tunnel();
    let path = kettle_config::TxPathChoice::Auto;
    let client_place = None;
    let log = Destination::Common;
    let client = request.client.address;
    let upgraded = Upgraded { link, received, slot, backend, client_place, path, log, client };
    Some(Answer::Tunnel(Response::new(status, fields, Body::Empty), Box::new(upgraded)))
}

/// The value of the only field of this name.
fn sole<'h>(head: &'h ResponseHead<Bytes>, name: &'static str) -> Option<&'h [u8]> {
    let mut values = head.header_values(name);
    let first = values.next();
    first.filter(|_| values.next().is_none())
}

/// The one protocol that clients may change to. In a tunnel of HTTP they could ask for what this route's rules, and all other
/// routes', would have refused.
fn is_websocket(protocol: &[u8]) -> bool {
    protocol.eq_ignore_ascii_case(b"websocket")
}

/// True if a client gets trailers. Over HTTP/2 they are frames that each client has to read past; over HTTP/1.1 they are something
/// that many cannot, so only clients that ask for them get them.
fn takes_trailers(head: &Head) -> bool {
    match head.version() {
        HttpVersion::Http2 => true,
        HttpVersion::Http11 => head.takes_trailers(),
        HttpVersion::Http10 => false,
    }
}

const AUTHORIZATION: &str = "authorization";

/// The methods with which servers are asked.
const METHODS: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";

/// Notes that a client has gone while others ask for the same.
pub(crate) fn note_client_gone(route: &ProxyRoute, notes: &mut LogNotes) {
    let trace = notes.upstream.get_or_insert_default();
    trace.backend.get_or_insert_with(|| Arc::clone(&route.upstream.backend));
    trace.failure = Some(CLIENT_GONE);
}

/// The log's word for that.
const CLIENT_GONE: &str = "client_gone";

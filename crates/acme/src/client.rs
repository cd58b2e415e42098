//! The HTTP client that instant-acme asks authorities by: kettle's own, over HTTPS alone, which follows no redirect.
//!
//! instant-acme wants a client that threads may share, and kettle's connections belong to one thread: each request goes to a task of the
//! issuer's thread.

use std::cell::RefCell;
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use bytes::{Bytes, BytesMut};
use http::header::RETRY_AFTER;
use http::{Request, Response, Uri};
use http_body::Body;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use kettle_config::{BackendServer, Located, ServerAddress};
use kettle_http::date;
use kettle_http::h1::framing::BodyFraming;
use kettle_http::h1::response::ResponseHead;
use kettle_runtime::client_address::ClientHost;
use kettle_tls::connector::{Connector, ConnectorSettings, ResumeBy, Trust};
use kettle_tls::policy::Policy;
use kettle_upstream::backend::Backends;
use kettle_upstream::{
    InFlight, OutgoingRequest, Pool, Reuse, Trace, Upstream, UpstreamError, UpstreamResponse,
};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::timeout;

use crate::persist::Offer;
use crate::plan::WINDOW_ASKED;

/// A client of one authority. Each try has one of its own, by what it notes.
#[derive(Clone)]
pub struct Client {
    asked: mpsc::Sender<Asked>,
    notes: Arc<Mutex<Notes>>,
    /// The URL of the directory, and those that are kept.
    directory: String,
    directories: Directories,
}

/// The directories of an authority by their URLs, and when each was fetched: ten thousand questions when to renew are not to be
/// twenty thousand.
type Directories = Arc<Mutex<HashMap<String, (Instant, Bytes)>>>;

/// The parts of an answer that instant-acme does not hand on.
#[derive(Clone, Debug, Default)]
pub struct Notes {
    /// The status of the last answer, if there was one.
    pub status: Option<u16>,
    /// The time the authority wants to be left alone, if it said so in that.
    pub retry_after: Option<SystemTime>,
    /// Its offer of `dns-persist-01`, where it is an authorization.
    pub(crate) offer: Option<Offer>,
}

/// The task that asks.
pub struct ClientTask {
    asked: mpsc::Sender<Asked>,
    task: JoinHandle<()>,
    directories: Directories,
}

struct Asked {
    request: Request<Bytes>,
    answer: oneshot::Sender<Result<Response<Bytes>, Error>>,
}

impl ClientTask {
    /// Begins to ask those whom this trust is in. Within a local set.
    #[must_use]
    pub fn begin(trust: Trust, policy: Policy) -> Self {
        let (asked, requests) = mpsc::channel(REQUESTS_MAX);
        let hosts =
            Rc::new(Hosts { trust, policy, pool: Rc::default(), known: RefCell::default() });
        let task = spawn_local(run(hosts, requests));
        Self { asked, task, directories: Directories::default() }
    }

    /// A client for one try, at the directory with this URL.
    #[must_use]
    pub fn client(&self, directory: &str) -> Client {
        let asked = self.asked.clone();
        let directories = Arc::clone(&self.directories);
        Client { asked, notes: Arc::default(), directory: directory.to_owned(), directories }
    }

    /// Has each directory fetched again before it is used.
    pub(crate) fn forget_directories(&self) {
        locked(&self.directories).clear();
    }
}

impl Drop for ClientTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Client {
    /// Returns the notes of the last answer.
    #[must_use]
    pub fn notes(&self) -> Notes {
        locked(&self.notes).clone()
    }

    /// Has the directory fetched again before it is used: something was wrong, which it may be about.
    pub(crate) fn forget_directory(&self) {
        locked(&self.directories).remove(&self.directory);
    }

    /// The directory, if it was fetched a while ago at most.
    fn kept_directory(&self) -> Option<Bytes> {
        let kept = locked(&self.directories);
        let is_fresh = |at: &Instant| at.elapsed() < DIRECTORY_KEPT;
        kept.get(&self.directory).filter(|(at, _)| is_fresh(at)).map(|(_, body)| body.clone())
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl HttpClient for Client {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let is_directory = *request.uri() == *self.directory;
        if let Some(body) = self.kept_directory().filter(|_| is_directory) {
            let (parts, ()) = Response::new(()).into_parts();
            return Box::pin(async { Ok(BytesResponse { parts, body: Box::new(body) }) });
        }
        let keep = is_directory.then(|| (self.directory.clone(), Arc::clone(&self.directories)));
        let asked = self.asked.clone();
        let notes = Arc::clone(&self.notes);
        let note = move |noted: Notes| *locked(&notes) = noted;
        Box::pin(async move {
            note(Notes::default());
            let (parts, mut body) = request.into_parts();
            let is_get = parts.method == http::Method::GET;
            let frame = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
            // Such a body is one frame, or none.
            let body = frame.and_then(|frame| frame.ok()?.into_data().ok()).unwrap_or_default();
            let (answer, answered) = oneshot::channel();
            let request = Request::from_parts(parts, body);
            let gone = |_| other(io::Error::other("the issuer ends"));
            asked.send(Asked { request, answer }).await.map_err(|_| gone(()))?;
            let response = answered.await.map_err(|_| gone(()))??;
            let (mut parts, body) = response.into_parts();
            let after = parts.headers.remove(RETRY_AFTER);
            let after = after.and_then(|value| patience(value.to_str().ok()?));
            let retry_after = after.map(|after| SystemTime::now() + after);
            // instant-acme adds the number unchecked, and takes no renewal window without one (RFC 9773 §4.3.3 has six hours for that).
            let told = after.or(is_get.then_some(WINDOW_ASKED));
            if let Some(told) = told {
                parts.headers.insert(RETRY_AFTER, told.as_secs().into());
            }
            let status = Some(parts.status.as_u16());
            note(Notes { status, retry_after, offer: Offer::read(&body) });
            if parts.status.is_redirection() {
                return Err(other(io::Error::other(format!(
                    "the authority answers {}, and redirects are not followed",
                    parts.status
                ))));
            }
            if let Some((directory, directories)) = keep.filter(|_| parts.status.is_success()) {
                locked(&directories).insert(directory, (Instant::now(), body.clone()));
            }
            Ok(BytesResponse { parts, body: Box::new(body) })
        })
    }
}

/// The time the authority wants to be left alone by its `Retry-After`.
fn patience(value: &str) -> Option<Duration> {
    let wanted = match value.trim().parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let until = date::parse(value.trim().as_bytes())?;
            until.duration_since(SystemTime::now()).unwrap_or_default()
        }
    };
    Some(wanted.min(PATIENCE_MAX))
}

async fn run(hosts: Rc<Hosts>, mut requests: mpsc::Receiver<Asked>) {
    while let Some(Asked { request, answer }) = requests.recv().await {
        let hosts = Rc::clone(&hosts);
        spawn_local(async move {
            let uri = request.uri().clone();
            let asked = timeout(REQUEST_TIME_MAX, hosts.ask(request)).await;
            let asked = asked.unwrap_or_else(|_| Err(ErrorOf::late()));
            let told = asked.map_err(|ErrorOf(error)| {
                other(io::Error::other(format!("{uri} cannot be reached: {error}")))
            });
            // The one that asked may have given up.
            let _ = answer.send(told);
        });
    }
}

/// The known hosts.
struct Hosts {
    trust: Trust,
    policy: Policy,
    pool: Rc<Pool>,
    known: RefCell<HashMap<(String, u16), Known>>,
}

struct Known {
    upstream: Arc<Upstream>,
    connector: Connector,
    addresses: Vec<SocketAddr>,
    looked_up: Instant,
}

impl Hosts {
    async fn ask(&self, request: Request<Bytes>) -> Result<Response<Bytes>, ErrorOf> {
        let uri = request.uri();
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        if uri.scheme_str() != Some("https") || host.is_empty() {
            return Err("it is no https:// URL".to_owned().into());
        }
        let upstream = self.upstream(host, uri.port_u16().unwrap_or(443)).await?;
        let outgoing = outgoing(&request, uri)?;
        let body = request.body().clone();
        let mut trace = Trace::default();
        let mut begun = self.begin(&upstream, &outgoing, Reuse::Any, &body, &mut trace).await;
        // A kept connection had been closed. If it was not, the nonce in the request keeps it from counting twice.
        if trace.is_reused && matches!(begun, Err(UpstreamError::Ended(_))) {
            begun = self.begin(&upstream, &outgoing, Reuse::Nothing, &body, &mut trace).await;
        }
        let (in_flight, head) = begun?;
        let is_head = request.method() == http::Method::HEAD;
        read_whole(in_flight.answer(head, is_head, true)?).await
    }

    /// Sends a request and waits for the head of its answer.
    async fn begin(
        &self,
        upstream: &Arc<Upstream>,
        outgoing: &OutgoingRequest,
        reuse: Reuse,
        body: &[u8],
        trace: &mut Trace,
    ) -> Result<(InFlight, ResponseHead<Bytes>), UpstreamError> {
        let mut upstream = Arc::clone(upstream);
        let mut attempts = upstream.backend.attempts(CLIENT);
        let begun = InFlight::begin(&mut upstream, &self.pool, &mut attempts, reuse, trace);
        let mut in_flight = begun.await?;
        in_flight.send_head(outgoing).await?;
        let mut left = body;
        poll_fn(|context| in_flight.poll_send(context, &mut left)).await?;
        loop {
            let head = in_flight.next_head().await?;
            if head.status() >= 200 {
                return Ok((in_flight, head));
            }
        }
    }

    /// The servers of a host, whose name is looked up again after a while.
    async fn upstream(&self, host: String, port: u16) -> Result<Arc<Upstream>, ErrorOf> {
        let key = (host, port);
        let is_fresh = |known: &&Known| known.looked_up.elapsed() < ADDRESSES_KEPT;
        if let Some(known) = self.known.borrow().get(&key).filter(is_fresh) {
            return Ok(Arc::clone(&known.upstream));
        }
        let found = timeout(LOOKUP_TIME_MAX, tokio::net::lookup_host((&*key.0, port))).await;
        let found = found.map_err(|_| format!("nobody says in time where {} is", key.0))?;
        let mut addresses: Vec<SocketAddr> =
            found.map_err(|error| format!("{} is not found: {error}", key.0))?.collect();
        addresses.truncate(ADDRESSES_MAX);
        let mut all = self.known.borrow_mut();
        if let Some(known) = all.get_mut(&key).filter(|known| known.addresses == addresses) {
            known.looked_up = Instant::now();
            return Ok(Arc::clone(&known.upstream));
        }
        let connector = match all.get(&key) {
            Some(known) => known.connector.clone(),
            None => self.connector(&key.0)?,
        };
        let upstream = upstream(&key.0, &addresses, &connector)?;
        if all.len() >= HOSTS_MAX {
            all.clear();
        }
        let looked_up = Instant::now();
        all.insert(key, Known { upstream: Arc::clone(&upstream), connector, addresses, looked_up });
        Ok(upstream)
    }

    fn connector(&self, host: &str) -> Result<Connector, ErrorOf> {
        let settings = ConnectorSettings {
            trust: self.trust.clone(),
            name: Some(host),
            identity: None,
            alpn: &[b"http/1.1"],
            resume_by: ResumeBy::Ticket,
        };
        Connector::new(&self.policy, settings).map_err(|error| ErrorOf(error.to_string()))
    }
}

/// A backend of a host's addresses, which are tried one after the other.
fn upstream(
    host: &str,
    addresses: &[SocketAddr],
    connector: &Connector,
) -> Result<Arc<Upstream>, ErrorOf> {
    let server = |address: &SocketAddr| BackendServer {
        address: Located::not_written(ServerAddress::Socket(*address)),
        ..BackendServer::default()
    };
    let settings = kettle_config::Backend {
        name: Located::not_written(host.to_owned()),
        servers: addresses.iter().map(server).collect(),
        ..kettle_config::Backend::default()
    };
    let backends = Backends::new(&[settings], None);
    let backend = backends.find(host).ok_or("there is no such host".to_owned())?;
    let connectors = vec![connector.clone(); addresses.len()].into();
    Ok(Arc::new(Upstream::new(Arc::clone(backend), Some(connectors))))
}

fn outgoing(request: &Request<Bytes>, uri: &Uri) -> Result<OutgoingRequest, ErrorOf> {
    let host = uri.authority().map(|authority| authority.as_str()).unwrap_or_default();
    let target = uri.path_and_query().map_or("/", |target| target.as_str());
    let method = request.method().as_str();
    let outgoing = OutgoingRequest::new(method, target, host, CLIENT, SILENCE_MAX);
    let mut outgoing = outgoing.ok_or("it cannot be asked for over HTTP/1.1".to_owned())?;
    for (name, value) in request.headers() {
        if name == http::header::USER_AGENT {
            let crate_agent = value.to_str().unwrap_or_default();
            let agent = concat!("kettle/", env!("CARGO_PKG_VERSION"));
            outgoing.field("user-agent", format!("{agent} {crate_agent}"));
        } else {
            outgoing.field(name.as_str(), value.as_bytes());
        }
    }
    outgoing.field("accept-language", "en");
    let length = request.body().len() as u64;
    outgoing.announce_body(if length == 0 {
        BodyFraming::None
    } else {
        BodyFraming::Length(length)
    });
    Ok(outgoing)
}

async fn read_whole(response: UpstreamResponse) -> Result<Response<Bytes>, ErrorOf> {
    let UpstreamResponse { head, mut body } = response;
    let mut whole = BytesMut::new();
    let mut is_too_long = body.length().is_some_and(|length| length > BODY_BYTES_MAX as u64);
    while !is_too_long && let Some(bytes) = body.chunk().await? {
        whole.extend_from_slice(&bytes);
        is_too_long = whole.len() > BODY_BYTES_MAX;
    }
    if is_too_long {
        return Err(format!("its answer is longer than {} KiB", BODY_BYTES_MAX >> 10).into());
    }
    let mut answer = Response::builder().status(head.status());
    for name in [REPLAY_NONCE, "location", "retry-after", "content-type"] {
        if let Some(value) = head.header_values(name).next() {
            answer = answer.header(name, value);
        }
    }
    answer.body(whole.freeze()).map_err(|error| error.to_string().into())
}

/// Why a host was not asked.
struct ErrorOf(String);

impl ErrorOf {
    fn late() -> Self {
        Self(format!("nothing came for {} s", REQUEST_TIME_MAX.as_secs()))
    }
}

impl From<String> for ErrorOf {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<UpstreamError> for ErrorOf {
    fn from(error: UpstreamError) -> Self {
        Self(error.to_string())
    }
}

fn other(error: io::Error) -> Error {
    Error::Other(Box::new(error))
}

/// The issuer itself: no request is for anybody else.
const CLIENT: ClientHost = ClientHost::Ip(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST));

/// No authority is left alone for longer.
const PATIENCE_MAX: Duration = Duration::from_hours(30 * 24);

const REPLAY_NONCE: &str = "replay-nonce";

/// Requests that wait for the task.
const REQUESTS_MAX: usize = 16;

/// An answer that is longer is none of an authority's.
const BODY_BYTES_MAX: usize = 256 << 10;

/// The time an authority may send nothing, and take nothing,
const SILENCE_MAX: Duration = Duration::from_secs(30);
/// and how long a request may take in all.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(60);

const LOOKUP_TIME_MAX: Duration = Duration::from_secs(10);
const ADDRESSES_MAX: usize = 16;
const ADDRESSES_KEPT: Duration = Duration::from_mins(1);

/// The time a directory is taken for what it was.
const DIRECTORY_KEPT: Duration = Duration::from_hours(1);

/// An authority and its test directory have a few.
const HOSTS_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_of_an_authority_is_more_than_a_month() {
        for (value, expected) in [
            ("18446744073709551615", Some(PATIENCE_MAX)),
            ("120", Some(Duration::from_mins(2))),
            ("Fri, 31 Dec 9999 23:59:59 GMT", Some(PATIENCE_MAX)),
            ("Fri, 31 Dec 1999 23:59:59 GMT", Some(Duration::ZERO)),
            ("-1", None),
            ("soon", None),
        ] {
            assert_eq!(patience(value), expected, "{value}");
        }
    }
}

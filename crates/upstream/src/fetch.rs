//! The way of a request from server to server, and the fetch of one without a body.

use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use kettle_http::h1::response::ResponseHead;

use super::{
    InFlight, OutgoingRequest, Pool, Reuse, Trace, Upstream, UpstreamError, UpstreamResponse,
};
use crate::backend::Attempts;

/// Sends a request to a server of `upstream` and waits for the head of its response. Interim ones are for `on_interim`. A
/// request that could not have been seen by the server is sent once more.
///
/// # Errors
/// [`UpstreamError`]; `trace` says in one word why, too.
pub async fn fetch(
    upstream: &Arc<Upstream>,
    pool: &Rc<Pool>,
    request: &OutgoingRequest,
    trace: &mut Trace,
    on_interim: impl Fn(&ResponseHead<Bytes>),
) -> Result<UpstreamResponse, UpstreamError> {
    let outcome = try_fetch(upstream, pool, request, trace, &on_interim).await;
    outcome.inspect_err(|error| trace.failure = Some(error.reason()))
}

async fn try_fetch(
    upstream: &Arc<Upstream>,
    pool: &Rc<Pool>,
    request: &OutgoingRequest,
    trace: &mut Trace,
    on_interim: &impl Fn(&ResponseHead<Bytes>),
) -> Result<UpstreamResponse, UpstreamError> {
    let mut tries = Tries::new(upstream, request);
    let mut reuse = request.reuse();
    let (in_flight, head, _whole) = loop {
        let mut in_flight = match begin(&mut tries, pool, reuse, trace).await {
            Ok(in_flight) => in_flight,
            Err(error) => break tries.earlier(error, trace)?,
        };
        let answered = ask(&mut in_flight, request, on_interim).await;
        let answered = answered.map(|head| (head, Sent::Whole));
        if let Some(answer) = tries.after(in_flight, answered, request, false, &mut reuse, trace)? {
            break answer;
        }
    };
    in_flight.answer(head, request.is_head(), true)
}

/// Takes a connection. It is apart from what follows it, so that both take the same memory.
async fn begin(
    tries: &mut Tries,
    pool: &Rc<Pool>,
    reuse: Reuse,
    trace: &mut Trace,
) -> Result<InFlight, UpstreamError> {
    pool.until_drained(pin!(tries.begin(pool, reuse, trace))).await
}

async fn ask(
    in_flight: &mut InFlight,
    request: &OutgoingRequest,
    on_interim: &impl Fn(&ResponseHead<Bytes>),
) -> Result<ResponseHead<Bytes>, UpstreamError> {
    in_flight.send_head(request).await?;
    loop {
        let head = in_flight.next_head().await?;
        match head.status() {
            101 => return Err(UpstreamError::UnaskedUpgrade),
            100 => {}
            102..=199 => on_interim(&head),
            _ if head.hands_over() => return Err(UpstreamError::InternalRedirect),
            _ => return Ok(head),
        }
    }
}

/// A request on its way from server to server: whether another one is asked behind one, and whose answer counts in the end.
pub struct Tries {
    upstream: Arc<Upstream>,
    attempts: Attempts,
    /// The answer of a server that is taken if no other has one.
    kept: Option<Box<Answered>>,
}

/// The answer of a server, and the part of the request that it had been sent by then.
pub type Answered = (InFlight, ResponseHead<Bytes>, Sent);

/// The part of a request that had been sent when its response began.
pub enum Sent {
    /// All of it.
    Whole,
    /// Not all, and the rest does not follow.
    Part,
    /// The rest follows: what the server has not taken yet of a piece, and whether that is the last one.
    Concurrent(Vec<u8>, bool),
}

impl Tries {
    /// Those of a request.
    pub fn new(upstream: &Arc<Upstream>, request: &OutgoingRequest) -> Self {
        let attempts = upstream.backend.attempts(request.client).by_key(request.key);
        let attempts = attempts.beginning_with(request.asked_server);
        Self { upstream: Arc::clone(upstream), attempts, kept: None }
    }

    /// Takes a connection, as [`InFlight::begin`] does. No future of its own: each request would have memory for that.
    ///
    /// # Errors
    /// [`UpstreamError`].
    pub fn begin<'t>(
        &'t mut self,
        pool: &'t Rc<Pool>,
        reuse: Reuse,
        trace: &'t mut Trace,
    ) -> impl Future<Output = Result<InFlight, UpstreamError>> + use<'t> {
        InFlight::begin(&mut self.upstream, pool, &mut self.attempts, reuse, trace)
    }

    /// Returns the answer that counts, or nothing if a server is to be asked once more. A request that could not have been seen
    /// by its server is sent again over a new connection, and one that may be repeated goes on to another server as its route says:
    /// where it has a body, only if that `is_stored`.
    ///
    /// # Errors
    /// [`UpstreamError`], if no server has answered.
    pub fn after(
        &mut self,
        in_flight: InFlight,
        answered: Result<(ResponseHead<Bytes>, Sent), UpstreamError>,
        request: &OutgoingRequest,
        is_stored: bool,
        reuse: &mut Reuse,
        trace: &mut Trace,
    ) -> Result<Option<Answered>, UpstreamError> {
        match answered {
            Ok((head, sent)) => {
                in_flight.note(&head, trace);
                let goes_on = request.goes_on_after(head.status(), is_stored)
                    && in_flight.goes_on(&mut self.attempts, true, trace);
                if !goes_on {
                    return Ok(Some((in_flight, head, sent)));
                }
                // The rest of the body is the next server's from here on.
                let sent = if matches!(sent, Sent::Whole) { sent } else { Sent::Part };
                self.kept = Some(Box::new((in_flight, head, sent)));
            }
            Err(error) if in_flight.retries(request, &error, trace) => {
                in_flight.leave_to(&mut self.attempts, &error);
                *reuse = Reuse::Nothing;
            }
            Err(error)
                if request.goes_on_behind(&error, is_stored)
                    && in_flight.goes_on(&mut self.attempts, false, trace) => {}
            Err(error) => return self.earlier(error, trace).map(Some),
        }
        Ok(None)
    }

    /// Returns the answer of an earlier server in place of what went wrong with a later one.
    ///
    /// # Errors
    /// This error, if there is none.
    pub fn earlier(
        &mut self,
        error: UpstreamError,
        trace: &mut Trace,
    ) -> Result<Answered, UpstreamError> {
        let answer = *self.kept.take().ok_or(error)?;
        answer.0.note_again(&answer.1, trace);
        Ok(answer)
    }
}

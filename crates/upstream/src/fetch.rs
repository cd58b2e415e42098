//! A request without a body, and its response.

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
    let mut upstream = Arc::clone(upstream);
    let mut attempts = upstream.backend.attempts(request.client).by_key(request.key);
    let mut reuse = request.reuse();
    // The answer of a server that is taken if no other has one.
    let mut kept: Option<Box<(InFlight, ResponseHead<Bytes>)>> = None;
    let error = loop {
        let begun = begin(&mut upstream, pool, &mut attempts, reuse, trace).await;
        let mut in_flight = match begun {
            Ok(in_flight) => in_flight,
            Err(error) => break error,
        };
        match ask(&mut in_flight, request, on_interim).await {
            Ok(head) => {
                in_flight.note(&head, trace);
                if request.goes_on_after(head.status(), false)
                    && in_flight.goes_on(&mut attempts, true, trace)
                {
                    kept = Some(Box::new((in_flight, head)));
                    continue;
                }
                return in_flight.answer(head, request.is_head(), true);
            }
            Err(error) if in_flight.retries(request, &error, trace) => {
                in_flight.leave_to(&mut attempts, &error);
                reuse = Reuse::Nothing;
            }
            Err(error)
                if request.goes_on_behind(&error, false)
                    && in_flight.goes_on(&mut attempts, false, trace) => {}
            Err(error) => break error,
        }
    };
    let (in_flight, head) = *kept.ok_or(error)?;
    in_flight.note_again(&head, trace);
    in_flight.answer(head, request.is_head(), true)
}

/// Takes a connection. It is apart from what follows it, so that both take the same memory.
async fn begin(
    upstream: &mut Arc<Upstream>,
    pool: &Rc<Pool>,
    attempts: &mut Attempts,
    reuse: Reuse,
    trace: &mut Trace,
) -> Result<InFlight, UpstreamError> {
    let begin = pin!(InFlight::begin(upstream, pool, attempts, reuse, trace));
    pool.until_drained(begin).await
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

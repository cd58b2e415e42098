//! Bodies that are taken at their server's speed: as soon as a client keeps one waiting, a task of its own takes the rest and stores
//! it, so that the server is free for others while the client takes its time.

use std::cell::Cell;
use std::mem;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use kettle_runtime::client_address::ClientHost;
use kettle_runtime::disk::Disks;
use kettle_runtime::spool::{FlowNext, Spool, SpoolFlow};
use tokio::task::{AbortHandle, spawn_local};

use super::UpstreamBody;
use crate::UpstreamError;

/// The way a body is taken.
pub(super) enum Buffering {
    /// By the client, as it takes it.
    Off,
    /// By a task, if its client keeps it waiting. The client has its share of what is stored.
    Wanted(ClientHost),
    /// By a task.
    Begun(Stored),
}

/// The part that a task has taken, and how that ended.
pub(super) struct Stored {
    flow: Rc<SpoolFlow>,
    outcome: Rc<Cell<Option<Outcome>>>,
    task: AbortHandle,
}

/// The lines of its trailers that are passed on.
type Outcome = Result<Vec<u8>, UpstreamError>;

/// A client that leaves needs nothing more.
impl Drop for Stored {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl UpstreamBody {
    /// Has it taken at its server's speed once its client keeps it waiting.
    pub fn buffer(&mut self, client: ClientHost) {
        self.buffering = Buffering::Wanted(client);
    }

    /// Its client keeps it waiting: from now on a task takes it, if that is wanted and there is more to come.
    pub fn client_waits(&mut self, spool: &Arc<Spool>, disks: &Disks) {
        let Buffering::Wanted(client) = self.buffering else { return };
        if self.in_flight.is_none() {
            return;
        }
        let flow = spool.flow(client, disks);
        let outcome = Rc::new(Cell::new(None));
        let rest = self.split_rest();
        let task = spawn_local(take(rest, Rc::clone(&flow), Rc::clone(&outcome)));
        let task = task.abort_handle();
        self.buffering = Buffering::Begun(Stored { flow, outcome, task });
    }

    /// True if a task takes it: what comes next says [`poll_stored`](Self::poll_stored).
    pub fn is_stored(&self) -> bool {
        matches!(self.buffering, Buffering::Begun(_))
    }

    /// True while its server is kept busy because the client takes nothing.
    pub fn is_held_up(&self) -> bool {
        matches!(&self.buffering, Buffering::Begun(stored) if stored.flow.is_full())
    }

    /// Returns the next piece of what a task takes. An error means that the end did not come.
    ///
    /// # Errors
    /// [`UpstreamError`].
    pub fn poll_stored(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<FlowNext, UpstreamError>> {
        let Buffering::Begun(stored) = &self.buffering else {
            return Poll::Ready(Ok(FlowNext::End));
        };
        let next = ready!(stored.flow.poll_next(context));
        if matches!(next, FlowNext::End)
            && let Some(outcome) = stored.outcome.take()
        {
            self.trailers = outcome?;
        }
        Poll::Ready(Ok(next))
    }

    /// So many bytes of the file are sent that came last.
    pub fn sent_stored(&self, bytes: u64) {
        if let Buffering::Begun(stored) = &self.buffering {
            stored.flow.sent(bytes);
        }
    }

    /// All that is still to come.
    fn split_rest(&mut self) -> Self {
        Self {
            in_flight: self.in_flight.take(),
            ahead: mem::take(&mut self.ahead),
            rest: self.rest.take(),
            length: self.length,
            may_keep: self.may_keep,
            persists: self.persists,
            is_cut: self.is_cut,
            filter: self.filter.take(),
            trailers: Vec::new(),
            encoding: self.encoding.take(),
            buffering: Buffering::Off,
        }
    }
}

async fn take(mut body: UpstreamBody, flow: Rc<SpoolFlow>, outcome: Rc<Cell<Option<Outcome>>>) {
    let ended = loop {
        match body.chunk().await {
            Ok(Some(bytes)) => flow.push(bytes).await,
            Ok(None) => break Ok(body.take_trailers()),
            Err(error) => break Err(error),
        }
    };
    outcome.set(Some(ended));
    flow.end();
}

//! Streams in the turn they begin in. Most responses are whole by its end: those streams never have a task of their own.

use std::pin::Pin;
use std::task::Context;

use tokio::task::JoinSet;

use crate::http2::OutboundEnd;

/// Streams that were looked at once and are not over. None outlasts its turn here.
#[derive(Default)]
pub(super) struct Fresh(Vec<(Stream, OutboundEnd)>);

type Stream = Pin<Box<dyn Future<Output = ()>>>;

impl Fresh {
    /// Begins to serve a stream whose response ends so.
    pub(super) fn begin(
        &mut self,
        serve: impl Future<Output = ()> + 'static,
        end: OutboundEnd,
        tasks: &mut JoinSet<()>,
        context: &mut Context<'_>,
    ) {
        let mut serve: Stream = Box::pin(serve);
        if self.0.len() == FRESH_MAX {
            tasks.spawn_local(serve);
        } else if serve.as_mut().poll(context).is_pending() {
            self.0.push((serve, end));
        }
    }

    /// Lets those end whose responses the kernel has, and gives a task to each other.
    pub(super) fn end(&mut self, tasks: &mut JoinSet<()>, context: &mut Context<'_>) {
        for (mut serve, end) in self.0.drain(..) {
            if !end.is_sent() || serve.as_mut().poll(context).is_pending() {
                tasks.spawn_local(serve);
            }
        }
    }
}

/// How many wait for the end of a turn. Others have turns of their own, among those of the worker.
const FRESH_MAX: usize = 16;

//! A stream that is alone on its connection: whoever drives that looks at it in each turn. It needs no task of its own, and what it
//! waits for wakes the same task that sends what comes of it.
//!
//! Each of several streams has a task: their responses are made one after the other, and go out together.

use std::pin::Pin;
use std::rc::Rc;
use std::task::Context;

use tokio::task::JoinSet;

use crate::http2::StreamProgress;

/// The stream that is alone so far.
#[derive(Default)]
pub(super) struct InlineStream {
    alone: Option<(ServedStream, Rc<StreamProgress>)>,
}

type ServedStream = Pin<Box<dyn Future<Output = ()>>>;

impl InlineStream {
    /// Takes a stream.
    pub(super) fn begin<F: Future<Output = ()> + 'static>(
        &mut self,
        serve: impl FnOnce() -> F,
        progress: Rc<StreamProgress>,
        tasks: &mut JoinSet<()>,
    ) {
        let is_alone = self.is_empty() && tasks.is_empty();
        // A task copies what it runs when it begins and when it ends.
        let serve: ServedStream = Box::pin(serve());
        if is_alone {
            self.alone = Some((serve, progress));
            return;
        }
        self.give_task(tasks);
        tasks.spawn_local(serve);
    }

    /// Gives the stream that was alone a task: it is no more, or nobody looks at it any more.
    pub(super) fn give_task(&mut self, tasks: &mut JoinSet<()>) {
        if let Some((serve, _)) = self.alone.take() {
            tasks.spawn_local(serve);
        }
    }

    /// True if there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.alone.is_none()
    }

    /// Looks at the stream that is alone, if there is one.
    pub(super) fn look(&mut self, context: &mut Context<'_>) {
        if let Some((serve, _)) = &mut self.alone
            && serve.as_mut().poll(context).is_ready()
        {
            self.alone = None;
        }
    }

    /// Lets it end if the kernel has its response.
    pub(super) fn end(&mut self, context: &mut Context<'_>) {
        if self.alone.as_ref().is_some_and(|(_, progress)| progress.is_taken()) {
            self.look(context);
        }
    }
}

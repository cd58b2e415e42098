//! A stream that is alone on its connection, in the turn it begins in. Most responses are whole by its end: such a stream never
//! has a task of its own.
//!
//! Where there are several, each has a task: their responses are made one after the other, and go out together.

use std::pin::Pin;
use std::rc::Rc;
use std::task::Context;

use tokio::task::JoinSet;

use crate::http2::StreamProgress;

/// The stream that was alone so far. It does not outlast its turn here.
#[derive(Default)]
pub(super) struct Fresh {
    alone: Option<(ServedStream, Rc<StreamProgress>)>,
    is_looked_at: bool,
}

type ServedStream = Pin<Box<dyn Future<Output = ()>>>;

impl Fresh {
    /// Takes a stream whose response comes so far.
    pub(super) fn begin(
        &mut self,
        serve: impl Future<Output = ()> + 'static,
        progress: Rc<StreamProgress>,
        tasks: &mut JoinSet<()>,
    ) {
        if self.alone.is_none() && !self.is_looked_at && tasks.is_empty() {
            self.alone = Some((Box::pin(serve), progress));
            return;
        }
        if let Some((before, _)) = self.alone.take() {
            tasks.spawn_local(before);
        }
        tasks.spawn_local(serve);
    }

    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.alone.is_none()
    }

    /// Looks at the stream that is alone, if there is one and it was not looked at yet.
    pub(super) fn look(&mut self, context: &mut Context<'_>) {
        if let Some((serve, _)) = self.alone.as_mut().filter(|_| !self.is_looked_at) {
            self.is_looked_at = true;
            if serve.as_mut().poll(context).is_ready() {
                self.alone = None;
            }
        }
    }

    /// Lets it end if the kernel has its response, and gives it a task if not.
    pub(super) fn end(&mut self, tasks: &mut JoinSet<()>, context: &mut Context<'_>) {
        self.is_looked_at = false;
        if let Some((mut serve, progress)) = self.alone.take()
            && (!progress.is_sent() || serve.as_mut().poll(context).is_pending())
        {
            tasks.spawn_local(serve);
        }
    }
}

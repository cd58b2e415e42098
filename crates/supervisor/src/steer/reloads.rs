//! Reloads, one after the other: which one is under way, and who waits for which.

use std::future::pending;
use std::pin::Pin;

use kettle_config::Finding;
use tokio::sync::oneshot;

use crate::admin::protocol::Reply;
use crate::reload::Candidate;

/// What reading a configuration led to.
pub(super) type Outcome = Result<Candidate, Vec<Finding>>;

/// Who wants to know how a reload went. A signal asks without wanting to know.
pub(super) type Asker = Option<oneshot::Sender<Reply>>;

/// The reload under way, and the one after it.
#[derive(Default)]
pub(super) struct Reloads {
    under_way: Option<UnderWay>,
    /// Whoever asks during a reload gets another after it: files may have changed since they were read.
    /// One reload answers all of them.
    next: Vec<Asker>,
}

struct UnderWay {
    outcome: Pin<Box<dyn Future<Output = Outcome>>>,
    askers: Vec<Asker>,
}

impl Reloads {
    /// Asks for a reload, which begins as soon as none is under way.
    pub fn ask(&mut self, asker: Asker) {
        self.next.push(asker);
    }

    /// Begins the next reload, if one was asked for and none is under way.
    pub fn begin<F: Future<Output = Outcome> + 'static>(&mut self, begin: impl FnOnce() -> F) {
        if self.under_way.is_none() && !self.next.is_empty() {
            let askers = std::mem::take(&mut self.next);
            self.under_way = Some(UnderWay { outcome: Box::pin(begin()), askers });
        }
    }

    /// Waits for the end of the reload under way, for ever if there is none; dropping this forgets nothing.
    pub async fn next_end(&mut self) -> (Outcome, Vec<Asker>) {
        let Some(UnderWay { outcome, .. }) = &mut self.under_way else { return pending().await };
        let outcome = outcome.await;
        let askers = self.under_way.take().map(|under_way| under_way.askers);
        (outcome, askers.unwrap_or_default())
    }
}

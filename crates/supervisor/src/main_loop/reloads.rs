//! Reloads, one after the other: which one is under way, and which callers wait for it.

use std::future::pending;
use std::pin::Pin;

use kettle_config::Diagnostic;
use tokio::sync::oneshot;

use crate::admin::protocol::Reply;
use crate::reload::{BoundConfig, ReloadScope};

/// The outcome of reading a configuration.
pub(super) type Outcome = Result<BoundConfig, Vec<Diagnostic>>;

/// Which caller is told how a reload went. A signal has none.
pub(super) type Asker = Option<oneshot::Sender<Reply>>;

/// A reload that has been read and is to be committed.
pub(super) struct Ended {
    pub(super) scope: ReloadScope,
    pub(super) outcome: Outcome,
    pub(super) askers: Vec<Asker>,
}

/// The reload under way, and those after it.
#[derive(Default)]
pub(super) struct Reloads {
    under_way: Option<UnderWay>,
    /// A request during a reload gets another after it: files may have changed since they were read.
    /// One reload answers all of them.
    next: Vec<Asker>,
    /// Files have changed that the configuration in force names. That is a reload of its own: a mistake in the
    /// configuration file must not keep a renewed certificate out.
    have_files_changed: bool,
}

struct UnderWay {
    scope: ReloadScope,
    outcome: Pin<Box<dyn Future<Output = Outcome>>>,
    askers: Vec<Asker>,
}

impl Reloads {
    /// Asks for a reload, which begins as soon as none is under way.
    pub fn ask(&mut self, asker: Asker) {
        self.next.push(asker);
    }

    /// Asks for a reload of what the configuration in force names.
    pub fn ask_for_files(&mut self) {
        self.have_files_changed = true;
    }

    /// Begins the next reload, if one was asked for and none is under way.
    pub fn begin<F: Future<Output = Outcome> + 'static>(
        &mut self,
        read: impl FnOnce(ReloadScope) -> F,
    ) {
        if self.under_way.is_some() {
            return;
        }
        let scope = if !self.next.is_empty() {
            ReloadScope::Configuration
        } else if std::mem::take(&mut self.have_files_changed) {
            ReloadScope::Renewal
        } else {
            return;
        };
        let askers = std::mem::take(&mut self.next);
        self.under_way = Some(UnderWay { scope, outcome: Box::pin(read(scope)), askers });
    }

    /// Waits for the end of the reload under way, for ever if there is none; dropping this forgets nothing.
    pub async fn next_end(&mut self) -> Ended {
        let Some(UnderWay { outcome, scope, .. }) = &mut self.under_way else {
            return pending().await;
        };
        let scope = *scope;
        let outcome = outcome.await;
        let askers = self.under_way.take().map(|under_way| under_way.askers);
        Ended { scope, outcome, askers: askers.unwrap_or_default() }
    }
}

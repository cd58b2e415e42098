//! The guards of a request that act once its response is sent, or is not, apart from the notes for the log.

use std::rc::Rc;

use kettle_runtime::rate_limit::Counted;
use tokio::sync::oneshot;

/// The guards that are held for a request until its response is sent or given up. Each part acts by being dropped.
#[derive(Debug, Default)]
pub struct Held {
    /// The request's places among those of its client. A fetch that the request began shares them.
    pub client_place: Option<Rc<Counted>>,
    /// The end of a write that goes on beside its response: what was stored in the meantime is invalidated then.
    pub invalidation: Option<Box<oneshot::Sender<()>>>,
}

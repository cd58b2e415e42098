//! What a service has said of a request.

use std::sync::Arc;

use kettle_config::ForwardAuth;

/// Names, in lower case, and values that a backend is told in place of the client's.
pub type VouchedFields = Arc<[(String, Vec<u8>)]>;

/// The word of a service, for as long as its request lasts.
#[derive(Debug)]
pub struct Vouched {
    /// Who was asked, and how: what another route would ask alike is known.
    pub by: Arc<ForwardAuth>,
    /// The status of its refusal; `None` if the request may go on.
    pub refused: Option<u16>,
    /// What a backend is told.
    pub fields: VouchedFields,
    /// Cookies that the client gets with the answer.
    pub cookies: Vec<Vec<u8>>,
}

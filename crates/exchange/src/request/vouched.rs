//! The words of a service on a request.

use std::sync::Arc;

use bytes::Bytes;
use kettle_config::ForwardAuth;
use kettle_http::h1::response::ResponseHead;

/// Names, in lower case, and values that a backend is told in place of the client's.
pub type VouchedFields = Arc<[(String, Vec<u8>)]>;

/// The word of a service, for as long as its request lasts.
#[derive(Debug)]
pub struct Vouched {
    /// The service that was asked, and how: what another route would ask alike is known.
    pub by: Arc<ForwardAuth>,
    /// The status of its refusal; `None` if the request may go on.
    pub refused: Option<u16>,
    /// The fields for a backend.
    pub fields: VouchedFields,
    /// Cookies that the client gets with the answer.
    pub cookies: Vec<Vec<u8>>,
    /// Its answer, unless that is remembered from before.
    pub answer: Option<ResponseHead<Bytes>>,
}

impl Vouched {
    /// The first header of this name in the service's answer.
    pub fn said(&self, name: &str) -> Option<&[u8]> {
        self.answer.as_ref()?.header_values(name).next()
    }
}

//! Methods that a file can be asked by.

use kettle_exchange::error_page::HttpError;
use kettle_exchange::response::{Body, ConfiguredFields, Response, ResponseFields};
use kettle_http::Method;

/// Returns the answer to methods that read nothing: OPTIONS is answered, others are refused.
///
/// # Errors
/// Status 405, with the methods that are allowed.
pub fn allow(
    method: Method<'_>,
    configured: &ConfiguredFields,
    answers_options: bool,
) -> Option<Result<Response, HttpError>> {
    match method {
        Method::Get | Method::Head => None,
        Method::Options if answers_options => {
            let fields = ResponseFields::ready(configured.for_errors().clone());
            Some(Ok(Response::new(204, fields.with_own("allow", METHODS), Body::Empty)))
        }
        Method::Options | Method::Other(_) => {
            Some(Err(HttpError { status: 405, fields: vec![("allow", METHODS.to_owned())] }))
        }
    }
}

const METHODS: &str = "GET, HEAD, OPTIONS";

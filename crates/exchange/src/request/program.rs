//! The program that was found for a request.

/// A file that an application is to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Its path below the root of the route, with its slash.
    pub path: String,
    /// The part of the request's path that goes on behind it.
    pub path_info: String,
}

//! The names that nearly every end-to-end test uses. A folder of tests takes them all, and hands them to its files.

pub use crate::backend::{Backend, backend, read_exactly, read_to_end, read_until, reset};
pub use crate::certificate::{Kind, issue};
pub use crate::client::{Client, Dialer, End, Wire, end_of};
pub use crate::content::{assert_same, content};
pub use crate::environment::{kernel_tls_or_skip, paths_here, patience, scaled, skip, wait_until};
pub use crate::http::{Connection, Response, get, get_at, request};
pub use crate::kettle::Kettle;
pub use crate::setup::{Setup, unused_address};
pub use crate::suite::{
    ONE_OF_EACH_VERSION, SUITES, Suite, TLS12_AES_128, TLS13_AES_128, paths_and_versions,
};
pub use crate::tool::{Tool, scrape};

//! The work of a route besides serving files, as curl sees it.

mod access;
mod compression;
mod fallback;
mod guarded;
mod maps;
mod pairing;
mod places;
mod rate;
mod rate_of_responses;
mod redirect;
mod signed;

use kettle_tests::backend::answer;
use kettle_tests::prelude::*;

/// A backend that says one word to all, and lets it be kept.
fn saying(word: &str) -> Backend {
    let server = Backend::listen();
    let length = word.len();
    server.answer_all(&format!(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: {length}\r\n\r\n{word}"
    ));
    server
}

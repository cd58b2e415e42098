//! Sites without TLS: `kind = "http"`.

mod backends;
mod files;
mod names;

use std::io::{Read, Write};

use kettle_tests::prelude::*;

/// A server whose site is served by https, and without TLS at the second address, with these settings.
fn plain(settings: &str) -> Setup {
    Setup::default()
        .listener("path = \"auto\"")
        .listener(&format!("kind = \"http\"\nsites = [\"localhost\"]\n{settings}"))
}

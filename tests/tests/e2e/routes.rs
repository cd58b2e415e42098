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

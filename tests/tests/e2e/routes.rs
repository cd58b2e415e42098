//! What a route does besides serving files, as curl sees it.

mod access;
mod compression;
mod fallback;
mod pairing;
mod places;
mod rate;
mod redirect;
mod signed;

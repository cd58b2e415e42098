//! What a route does besides serving files, as curl sees it.

mod fallback;
mod redirect;

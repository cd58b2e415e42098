//! Answers to requests: which site and route answer, who may ask, and files, backends and what is kept of their responses.
//!
//! Nothing here knows a connection of a client: a request tells all that an answer is made of.
#![forbid(unsafe_code)]

pub mod files;
pub mod fixed;
mod forward_auth;
pub mod guard;
mod proxy;
mod proxy_cache;
pub mod redirect;
pub mod respond;
pub mod route;
pub mod site_names;
pub mod stores;
mod words;

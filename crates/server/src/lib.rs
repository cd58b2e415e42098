//! Placeholder module documentation.
#![forbid(unsafe_code)]

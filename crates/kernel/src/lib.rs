//! Placeholder module documentation.


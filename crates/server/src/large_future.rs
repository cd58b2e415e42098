//! Futures that are too large to be copied: they are made in the memory where they stay.

use std::pin::Pin;

/// Boxes the future that `make` makes. Made by the caller, it would be copied into its box, all its room included.
#[inline(never)]
pub(crate) fn boxed<F: Future>(make: impl FnOnce() -> F) -> Pin<Box<F>> {
    Box::pin(make())
}

//! The disk store: one file for each object, an index of them, filling and eviction. It knows no connection and no protocol.
//!
//! Calls that touch the disk say so; nothing here starts a thread or reads a clock.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod error;
mod fill;
mod head;
mod index;
mod layout;
mod name;
mod purges;
mod store;

pub use error::StoreError;
pub use fill::{Fill, FillProgress, FillState, Waiting};
pub use head::{BODY_ALIGNMENT, BodyExtent, DamagedHead, HEAD_BYTES_MAX, ObjectHead, Times};
pub use name::Name;
pub use purges::Purge;
pub use store::{
    AtOnce, FileState, FormOf, FoundAtOnce, Known, Left, Moment, Object, ObjectWriter, Reference,
    Status, Store, StoreSettings,
};

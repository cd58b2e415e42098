//! Files as answers: find one below a root, remember it, and say which of its bytes are wanted.

pub mod compressed;
pub mod current_roots;
pub mod entry;
pub mod file_route;
pub mod find;
pub mod folder;
pub mod generation;
pub mod handler;
pub mod listing;
pub mod locate;
pub mod marks;
pub mod memory;
pub mod mime;
pub mod object;
pub mod open_cache;
pub mod precompressed;
pub mod programs;
pub mod root;

pub use kettle_runtime::open_file::OpenFile;

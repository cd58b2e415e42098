//! Manual pages and completions, from the declaration of a command line and from the reference of the settings.
//!
//! They are written when a package is made; nothing that serves calls them.
#![forbid(unsafe_code)]

mod command;
mod completions;
mod markdown;

pub use clap_complete::Shell;
pub use command::write_pages;
pub use completions::{completions, write_completions};
pub use markdown::page_of_markdown;

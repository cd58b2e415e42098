//! The common part of command lines: manual pages and completions, from the declaration of a command line and
//! from the reference of the settings, how a size is written, and how commands print.
//!
//! Pages and completions are written when a package is made; nothing that serves calls them.
#![forbid(unsafe_code)]

mod command;
mod completions;
mod markdown;
pub mod output;
mod size;

pub use clap_complete::Shell;
pub use command::write_pages;
pub use completions::{completions, write_completions};
pub use markdown::page_of_markdown;
pub use size::parse_size;

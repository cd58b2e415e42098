//! The program's own messages: to standard error, from the level on that was asked for.

use std::io::{self, IsTerminal};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt;

/// Turns messages on from `level` on. `KETTLE_LOG` wins, so that a question can be answered
/// without touching the configuration.
pub(crate) fn start(level: &str) {
    let asked = std::env::var("KETTLE_LOG").ok();
    let level = asked.as_deref().unwrap_or(level);
    let filter = level.parse::<LevelFilter>();
    let subscriber = fmt()
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .with_target(false)
        .with_max_level(*filter.as_ref().unwrap_or(&LevelFilter::INFO))
        .finish();
    // A second call can only come from a test; the first one's choice stands.
    let _ = tracing::subscriber::set_global_default(subscriber);
    if filter.is_err() {
        tracing::warn!("KETTLE_LOG is one of error, warn, info, debug, trace, off; not `{level}`");
    }
}

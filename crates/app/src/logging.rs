//! The program's own messages: to standard error, from the level on that was asked for, and to the system's log.

pub(crate) mod journal;
mod syslog;

use std::io::{self, IsTerminal};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::{Layer, SubscriberExt};

pub(crate) use syslog::Syslog;

/// Turns messages on from `level` on. `KETTLE_LOG` wins, so that a question can be answered
/// without touching the configuration.
pub(crate) fn start(level: &str) {
    start_with(level, LevelFilter::OFF, None);
}

/// The same, also to the system's log. Warnings about the configuration are shown whatever the level.
pub(crate) fn start_with_warnings(level: &str, syslog: Option<Syslog>) {
    start_with(level, LevelFilter::WARN, syslog);
}

fn start_with(level: &str, of_configuration: LevelFilter, syslog: Option<Syslog>) {
    let asked = std::env::var("KETTLE_LOG").ok();
    let level = asked.as_deref().unwrap_or(level);
    let parsed = level.parse::<LevelFilter>();
    let shown = *parsed.as_ref().unwrap_or(&LevelFilter::INFO);
    let least = if asked.is_some() { LevelFilter::OFF } else { of_configuration };
    let filter = Targets::new()
        .with_default(shown)
        .with_target(kettle_supervisor::CONFIGURATION_TARGET, shown.max(least));
    let to_stderr = fmt::layer()
        .with_writer(journal::Stderr::of_this_process())
        .with_ansi(io::stderr().is_terminal())
        .with_target(false);
    let to_syslog = syslog.map(|syslog| {
        fmt::layer().with_writer(syslog).with_ansi(false).with_target(false).without_time()
    });
    let subscriber =
        tracing_subscriber::registry().with(to_stderr.and_then(to_syslog).with_filter(filter));
    // A second call can only come from a test; the first one's choice stands.
    let _ = tracing::subscriber::set_global_default(subscriber);
    if parsed.is_err() {
        tracing::warn!("KETTLE_LOG is one of error, warn, info, debug, trace, off; not `{level}`");
    }
}

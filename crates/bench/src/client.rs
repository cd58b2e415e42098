//! The load generator: a thread a core, each with its own connections, all on one clock.

pub mod outcome;

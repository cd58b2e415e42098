//! The servers a scenario compares: which there are on this machine, how each is configured, started and stopped.

pub mod subject;

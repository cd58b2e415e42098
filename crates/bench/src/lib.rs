//! Measures kettle on the user's own machine: where each record path wins (`calibrate`), with
//! the statistics that say how sure that is (`stats`).
#![forbid(unsafe_code)]

pub mod calibrate;
pub mod stats;

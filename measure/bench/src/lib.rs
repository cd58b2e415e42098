//! Measures kettle, and the servers people would otherwise pick, on the user's own machine.
//!
//! A `scenario` starts `peers`, puts loads on them, reads what that cost (both with `kettle_loadgen`) and writes `results`;
//! `report` draws them, `diff` compares two of them. `calibrate` asks a smaller question: where each record path wins.
#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "a program: names say what its items are")]

mod calibrate;
mod cli;
pub mod command;
mod diff;
mod figure;
mod number;
pub mod peers;
pub mod report;
pub mod results;
mod scenario;
pub mod stats;
mod word;

//! Measures kettle, and the servers people would otherwise pick, on the user's own machine.
//!
//! A `scenario` starts `peers`, puts a `load` on them with the `client`, reads what that cost (`measure`) and writes `results`;
//! `report` draws them, `diff` compares two of them. `calibrate` asks a smaller question: where each record path wins.
#![forbid(unsafe_code)]

pub mod calibrate;
pub mod client;
pub mod diff;
pub mod figure;
pub mod load;
pub mod measure;
pub mod number;
pub mod peers;
pub mod report;
pub mod results;
pub mod scenario;
pub mod stats;

//! The tools of each worker, whatever it serves: time, deadlines, turns, threads for disks, pipes, encoders, counters, the log
//! of requests. Nothing here knows a connection or a message.
#![forbid(unsafe_code)]

pub mod access_log;
pub mod client_address;
pub mod clock;
pub mod deadlines;
pub mod disk;
pub mod encoder;
pub mod head_buffers;
pub mod metrics;
pub mod offloads;
pub mod open_file;
pub mod pipes;
pub mod rate_limit;
pub mod spool;
pub mod turns;
pub mod tx_path;

//! The `kettle-bench` program, to which `kettle bench` and `kettle calibrate` hand over.
#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    kettle_bench::command::run_words(std::env::args_os())
}

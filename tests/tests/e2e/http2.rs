//! Requests over HTTP/2: answered as over HTTP/1.1, beside one another, and at no more cost than a client may cause.

mod backend;
mod beginning;
mod behind;
mod by_default;
mod connect;
mod early;
mod flood;
pub mod frames;
mod life;
mod pairing;
mod priority;
mod same;
mod slow_files;
mod spec;
mod windows;

use std::io::Write;
use std::net::TcpStream;

use frames::get;
use frames::*;
use kettle_tests::prelude::*;
use rustix::process::Signal;

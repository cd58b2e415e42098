//! Running a server: commands, reloads, the kill switch, numbers, logs and the orderly end.

mod command;
mod connecting;
mod log;
mod number;
mod privilege;
mod sandbox;
mod status_watch;
mod stop;
mod swap;
mod switch;
mod watch;

use std::fs;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};

use kettle_tests::content::LARGE;
use kettle_tests::environment::has_kernel_tls;
use kettle_tests::prelude::*;
use rustix::fs::{CWD, Mode, mkfifoat};
use rustix::process::Signal;

/// True if this kernel confines what is opened, as kettle itself says it, with the version of what it has.
fn is_confined(kettle: &Kettle) -> bool {
    kettle.status("/sandbox").as_str().unwrap().contains("(Landlock")
}

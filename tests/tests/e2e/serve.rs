//! Files over HTTP/1.1 and TLS, wherever the records are encrypted.

mod body;
mod client_certificate;
mod control_group;
mod curl;
mod disk;
mod doctor_host;
mod every_suite;
mod file;
mod handshake;
mod handshake_end;
mod hosts;
mod inherited;
mod limit;
mod names;
mod no_thread;
mod pairing;
mod post_quantum;
mod proxy_header;
mod range;
mod redirect;
mod refused;
mod resumption;
mod site;
mod unix;
mod workers;

use std::io::{Read, Write};
use std::time::Duration;
use std::{fs, thread};

use kettle_tests::certificate::ClientAuthority;
use kettle_tests::environment::is_guest;
use kettle_tests::prelude::*;
use rustix::process::Signal;

fn with_a_file() -> Setup {
    Setup::default().file("www/a", "content")
}

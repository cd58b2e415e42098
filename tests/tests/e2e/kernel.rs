//! Connections whose records the kernel encrypts, proven by its own counts.

mod changing_file;
mod crowd;
mod every_suite;
pub(crate) mod failure;
mod http2;
mod key_update;
mod peer;
mod switch;
mod violation;

use kettle_tests::environment::kernel_changes_keys;
use kettle_tests::kernel_counts::KernelCounts;
use kettle_tests::prelude::*;
use kettle_tests::raw_session::RawSession;
use kettle_tests::record::APPLICATION_DATA;

//! The view of anybody between client and server: records, their sizes and nonces, and how a connection ends.

mod border;
mod end;
mod nonce;
mod record_size;

use kettle_tests::prelude::*;

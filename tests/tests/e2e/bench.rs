//! `kettle bench`: comparisons that leave results, can be stopped and gone on with; loads on a running server; the program all of it is.

mod described;
mod handed_over;
mod load;
mod run;

use kettle_tests::prelude::*;
use tempfile::TempDir;

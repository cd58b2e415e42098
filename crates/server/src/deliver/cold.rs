//! Bringing what is not in the page cache there, on a thread that may wait for the disk.

use std::io;
use std::sync::Arc;

use kettle_kernel::transfer;

use crate::open_file::OpenFile;

/// Reads a piece of a file into the page cache without holding up the worker.
pub(super) async fn warm(file: Arc<OpenFile>, offset: u64, bytes: u64) -> io::Result<()> {
    tokio::task::spawn_blocking(move || transfer::warm(file.file(), offset, bytes))
        .await
        .map_err(io::Error::other)?
}

//! The static busybox of the guests' first file system.

use std::path::PathBuf;

use super::apt::{self};
use super::cache::Cache;
use crate::files::{self, remove_folder};

/// The program, downloaded on first use.
pub fn obtain(cache: &Cache) -> Result<PathBuf, String> {
    let folder = cache.obtain("busybox", &format!("{SUITE} {PACKAGE}\n"), |folder| {
        let work = folder.join("work");
        apt::fetch(PACKAGE, &[SUITE], &work)?;
        let candidates = [work.join("usr/bin/busybox"), work.join("bin/busybox")];
        let Some(program) = candidates.iter().find(|path| path.is_file()) else {
            return Err(format!("{PACKAGE} holds no busybox"));
        };
        files::rename(program, folder.join(PROGRAM))?;
        remove_folder(&work)
    })?;
    Ok(folder.join(PROGRAM))
}

const SUITE: &str = "trixie";
const PACKAGE: &str = "busybox-static";
const PROGRAM: &str = "busybox";

//! The static busybox of the guests' first file system.

use std::fs;
use std::path::PathBuf;

use super::apt::{self, Apt};
use super::cache::{Cache, at, create_folder, remove_folder};

/// The program, downloaded on first use.
pub fn obtain(cache: &Cache) -> Result<PathBuf, String> {
    let folder = cache.obtain("busybox", &format!("{SUITE} {PACKAGE}\n"), |folder| {
        let work = folder.join("work");
        create_folder(&work)?;
        let apt = Apt::new(&work.join("apt"), &[SUITE])?;
        apt::unpack(&apt.download(&[PACKAGE.to_owned()])?, &work)?;
        let candidates = [work.join("usr/bin/busybox"), work.join("bin/busybox")];
        let Some(program) = candidates.iter().find(|path| path.is_file()) else {
            return Err(format!("{PACKAGE} holds no busybox"));
        };
        fs::rename(program, folder.join(PROGRAM)).map_err(|error| at(program, &error))?;
        remove_folder(&work)
    })?;
    Ok(folder.join(PROGRAM))
}

const SUITE: &str = "trixie";
const PACKAGE: &str = "busybox-static";
const PROGRAM: &str = "busybox";

//! The overlay row of `measure native`: what a file costs kettle from overlayfs, which is what containers have, beside the same
//! from the file system that the overlay's own files lie on.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{FILES, Programs, Rounds, Run};
use crate::files::create_folder;
use crate::process;

/// A row for each target, the overlay's cost first. Both take their turn in every round.
pub fn rows(
    run: &Run,
    programs: &Programs,
    folder: &Path,
    rounds: usize,
) -> Result<Vec<String>, String> {
    let overlay = Overlay::mount(folder)?;
    let places = [overlay.0.clone(), folder.join("beside")];
    let mut taken = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        for (number, (place, taken)) in places.iter().zip(&mut taken).enumerate() {
            let output = folder.join(format!("{round}-{number}"));
            taken.push(run.lines(programs, SUBJECT, place, &output)?);
        }
    }
    let row = |target: &super::Target| {
        let [above, below] = taken.each_ref().map(|taken| -> Rounds {
            let of_round = |lines| target.values(lines, FILES.ours).into_values().next();
            (0..)
                .zip(taken.iter().map(Vec::as_slice))
                .filter_map(|(round, it)| Some((round, of_round(it)?)))
                .collect()
        });
        target.compared(&above, &[below])
    };
    run.target.iter().map(row).collect()
}

/// A mounted overlay, which goes with this.
struct Overlay(PathBuf);

impl Overlay {
    /// Mounts one over folders of its own.
    ///
    /// # Errors
    /// The error of `mount`: only root may, and not over another overlay.
    fn mount(folder: &Path) -> Result<Self, String> {
        let [lower, upper, work, mounted] =
            ["lower", "upper", "work", "overlay"].map(|name| folder.join(name));
        for folder in [&lower, &upper, &work, &mounted] {
            create_folder(folder)?;
        }
        let [lower, upper, work] = [&lower, &upper, &work].map(|it| it.display());
        let options = format!("lowerdir={lower},upperdir={upper},workdir={work}");
        let mut mount = Command::new("mount");
        mount.args(["-i", "-t", "overlay", "-o", &options, "overlay"]).arg(&mounted);
        process::run_quietly(&mut mount)?;
        Ok(Self(mounted))
    }
}

impl Drop for Overlay {
    fn drop(&mut self) {
        let outcome = process::run_quietly(Command::new("umount").arg(&self.0));
        if let Err(why) = outcome {
            eprintln!("{why}");
        }
    }
}

const SUBJECT: &str = "--servers kettle --paths user --rounds 1";

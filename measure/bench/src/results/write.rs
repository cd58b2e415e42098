//! Writes results as they are measured: each line is in the file before the next point begins, so that a run that dies
//! keeps what it has.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::{Line, Sample};

/// A results file that grows.
#[derive(Debug)]
pub struct Writer {
    file: File,
    path: PathBuf,
}

/// Returns the message about a file that cannot be written, for `map_err`.
fn unwritten(path: &Path) -> impl FnOnce(io::Error) -> String {
    move |error| {
        let is_there = error.kind() == io::ErrorKind::AlreadyExists;
        let mend = if is_there { "; resume that run, or name another file" } else { "" };
        format!("cannot write results: {}: {error}{mend}", path.display())
    }
}

impl Writer {
    /// Begins a new file. One that is there is never overwritten: it may be a day's work.
    ///
    /// # Errors
    /// A sentence with the path: the file exists already, or cannot be made.
    pub fn create(path: &Path) -> Result<Self, String> {
        let file = OpenOptions::new().write(true).create_new(true).open(path);
        Ok(Self { file: file.map_err(unwritten(path))?, path: path.to_owned() })
    }

    /// Goes on in a file. A last line that was cut off is removed; [`super::read::Results::cut_off`] has told of it.
    ///
    /// # Errors
    /// A sentence with the path: the file does not exist, or cannot be read or cut to whole lines.
    pub fn append(path: &Path) -> Result<Self, String> {
        let file = OpenOptions::new().read(true).write(true).open(path);
        let mut writer = Self { file: file.map_err(unwritten(path))?, path: path.to_owned() };
        writer.end_last_line().map_err(unwritten(path))?;
        Ok(writer)
    }

    /// Writes a line, so that it survives this process. Figures that are no numbers are left out, with a warning in the
    /// sample, because JSON has no word for them.
    ///
    /// # Errors
    /// A sentence with the path: the line cannot be written.
    pub fn write(&mut self, line: &Line) -> Result<(), String> {
        let written = match line {
            Line::Sample(sample) if sample.figures.values().any(|value| !value.is_finite()) => {
                to_text(&Line::Sample(without_odd_figures(sample)))
            }
            _ => to_text(line),
        };
        // One write for the whole line: a reader sees it whole or not at all.
        let written = written.and_then(|text| self.file.write_all(text.as_bytes()));
        written.map_err(unwritten(&self.path))
    }

    /// Leaves the place to write right behind the last whole line.
    fn end_last_line(&mut self) -> io::Result<()> {
        let mut content = Vec::new();
        self.file.read_to_end(&mut content)?;
        let whole = content.iter().rposition(|byte| *byte == b'\n').map_or(0, |place| place + 1);
        let (_, rest) = content.split_at(whole);
        if serde_json::from_slice::<Line>(rest).is_ok() {
            return self.file.write_all(b"\n");
        }
        let whole = whole as u64;
        self.file.set_len(whole)?;
        self.file.seek(SeekFrom::Start(whole))?;
        Ok(())
    }
}

fn to_text(line: &Line) -> io::Result<String> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    Ok(text)
}

fn without_odd_figures(sample: &Sample) -> Sample {
    let mut sample = sample.clone();
    let odd = sample.figures.extract_if(.., |_, value| !value.is_finite());
    let warning = |(name, _)| format!("{name} came out as no number and is left out");
    sample.warnings.extend(odd.map(warning));
    sample
}

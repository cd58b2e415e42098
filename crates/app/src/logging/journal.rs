//! Standard error where systemd's journal reads it: each line is an entry there, so a message gets one.

use std::io::{self, Write};

use rustix::fs::fstat;
use tracing_subscriber::fmt::MakeWriter;

/// Standard error; what is written at once is one line where the journal reads it.
#[derive(Clone, Copy)]
pub(crate) struct Stderr {
    is_journal: bool,
}

impl Stderr {
    pub(crate) fn of_this_process() -> Self {
        Self { is_journal: is_stderr() }
    }
}

impl<'w> MakeWriter<'w> for Stderr {
    type Writer = Self;

    fn make_writer(&'w self) -> Self {
        *self
    }
}

impl Write for Stderr {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let mut stderr = io::stderr().lock();
        match str::from_utf8(text) {
            Ok(lines) if self.is_journal => writeln!(stderr, "{}", one_line(lines))?,
            _ => stderr.write_all(text)?,
        }
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// True if the journal reads standard error (systemd.exec(5), `JOURNAL_STREAM`).
pub(crate) fn is_stderr() -> bool {
    let Ok(stream) = std::env::var("JOURNAL_STREAM") else { return false };
    fstat(io::stderr()).is_ok_and(|it| stream == format!("{}:{}", it.st_dev, it.st_ino))
}

/// The lines of a message as one, without those that only point at the text above them.
pub(crate) fn one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !is_pointer(line));
    lines.collect::<Vec<_>>().join("; ")
}

/// `| ^^^^^`, or nothing.
fn is_pointer(line: &str) -> bool {
    line.trim_start_matches(['|', ' ']).trim_end_matches('^').is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line_with_all_that_it_says() {
        for (text, expected) in [
            ("started\n", "started"),
            (
                "WARN k.toml:2:11: `workers` takes no \"auto\"\n 2 | workers = \"auto\"\n   |           ^^^^^^\nhelp: remove it\n",
                "WARN k.toml:2:11: `workers` takes no \"auto\"; 2 | workers = \"auto\"; help: remove it",
            ),
            ("one\n\ntwo\n", "one; two"),
        ] {
            assert_eq!(one_line(text), expected);
        }
    }

    /// Under `cargo test` nothing of the journal's is standard error, whatever the variable says.
    #[test]
    fn standard_error_is_not_taken_for_the_journal() {
        assert!(!is_stderr() || std::env::var_os("JOURNAL_STREAM").is_some());
    }
}

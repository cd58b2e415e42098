//! `kettle ctl status --watch`: what the server does now, once a second, until Ctrl-C, until nobody reads it, or until the server is gone.
//!
//! Nothing of the terminal is changed that would have to be put back, so an interrupt may come at any time.

mod screen;

use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use kettle_supervisor::admin::client::ask;
use kettle_supervisor::admin::protocol::{Reply, Request};
use kettle_supervisor::admin::status::Status;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::tcgetwinsize;

use crate::output::fail;
use screen::screen;

/// Shows a screen, or one JSON text a line, for each second.
pub(crate) fn watch(socket: &Path, is_json: bool) -> ExitCode {
    let mut last = match status(socket) {
        Ok(status) => (status, Instant::now()),
        Err(code) => return code,
    };
    let mut is_first = true;
    loop {
        if is_reader_gone_until(last.1 + INTERVAL) {
            return ExitCode::SUCCESS;
        }
        let now = match status(socket) {
            Ok(status) => (status, Instant::now()),
            Err(code) => return code,
        };
        let shown = if is_json {
            match serde_json::to_string(&now.0) {
                Ok(line) => write(&format!("{line}\n")),
                Err(error) => return fail(error),
            }
        } else {
            let text = screen(&last.0, &now.0, now.1.duration_since(last.1));
            show(&text, std::mem::take(&mut is_first))
        };
        if shown.is_err() {
            return ExitCode::SUCCESS;
        }
        last = now;
    }
}

/// Asks for the numbers. A server that is gone ends the watch: whoever started it says what became of it.
fn status(socket: &Path) -> Result<Status, ExitCode> {
    match ask(socket, Request::Status) {
        Ok(Reply::Status(status)) => Ok(*status),
        Ok(Reply::Refused { message, .. } | Reply::Done { message, .. }) => Err(fail(message)),
        Ok(_) => Err(fail("the server answered something else than its status")),
        Err(error) => Err(fail(error)),
    }
}

/// Waits for the time, or for the end of the pipe or the terminal that is written to.
fn is_reader_gone_until(due: Instant) -> bool {
    let stdout = io::stdout();
    loop {
        let rest = due.saturating_duration_since(Instant::now());
        if rest.is_zero() {
            return false;
        }
        let timeout = Timespec { tv_sec: 0, tv_nsec: rest.subsec_nanos().into() };
        let mut waited = [PollFd::new(&stdout, PollFlags::empty())];
        // An interrupted wait goes on; more than a second it never is.
        let _ = poll(&mut waited, Some(&timeout));
        let [stdout] = waited;
        if stdout.revents().intersects(PollFlags::HUP | PollFlags::ERR) {
            return true;
        }
    }
}

/// Draws over the screen before on a terminal; elsewhere the screens follow each other.
fn show(screen: &str, is_first: bool) -> io::Result<()> {
    if !io::stdout().is_terminal() {
        return write(&format!("{screen}\n"));
    }
    let (columns, rows) = match tcgetwinsize(io::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col, size.ws_row),
        _ => (80, 24),
    };
    if is_first {
        // The text on the screen can be scrolled back to.
        write(&"\n".repeat(rows.into()))?;
    }
    write(&fitted(screen, columns.into(), rows.into()))
}

/// The screen from the terminal's upper left corner, cut where it would wrap or scroll.
fn fitted(screen: &str, columns: usize, rows: usize) -> String {
    let mut text = String::from(HOME);
    for line in screen.lines().take(rows.saturating_sub(1)) {
        text.extend(line.chars().take(columns));
        text.push_str(END_OF_LINE);
    }
    text.push_str(CLEAR_BELOW);
    text
}

fn write(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()
}

/// A bit less than the second that `rest.subsec_nanos` can say.
const INTERVAL: Duration = Duration::from_millis(999);
const HOME: &str = "\x1b[H";
const END_OF_LINE: &str = "\x1b[K\r\n";
const CLEAR_BELOW: &str = "\x1b[J";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_screen_is_cut_to_the_terminal() {
        let text = fitted("abcdef\nöäü\nlast\n", 3, 3);
        assert_eq!(text, "\x1b[Habc\x1b[K\r\nöäü\x1b[K\r\n\x1b[J");
        assert_eq!(fitted("a\n", 80, 0), "\x1b[H\x1b[J");
    }
}

//! HTTP dates (RFC 9110 §5.6.7), which know whole seconds from 1970 to 9999.

use std::cell::Cell;
use std::io::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use httpdate::HttpDate;

/// Writes a time as `Sun, 06 Nov 1994 08:49:37 GMT`. A time out of range becomes the nearest one.
#[must_use]
pub fn write_imf_fixdate(time: SystemTime) -> [u8; 29] {
    let mut text = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    let mut free = text.as_mut_slice();
    // The text has exactly the length of `free`, so the write cannot come short.
    let written = write!(free, "{}", HttpDate::from(whole_second(time)));
    debug_assert!(written.is_ok());
    text
}

/// Reads a date in any of the three formats a recipient must accept.
#[must_use]
pub fn parse(value: &[u8]) -> Option<SystemTime> {
    httpdate::parse_http_date(std::str::from_utf8(value).ok()?).ok()
}

/// True if [`parse`] reads it. Servers say the same for a second, so the last one is known.
#[must_use]
pub fn is_date(value: &[u8]) -> bool {
    thread_local! {
        static LAST: Cell<[u8; 29]> = const { Cell::new(*b"Thu, 01 Jan 1970 00:00:00 GMT") };
    }
    let is_last = value == LAST.get().as_slice();
    let is_date = is_last || parse(value).is_some();
    if let (true, false, Ok(last)) = (is_date, is_last, value.try_into()) {
        LAST.set(last);
    }
    is_date
}

/// The time as an HTTP date can say it.
#[must_use]
pub fn whole_second(time: SystemTime) -> SystemTime {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    UNIX_EPOCH + Duration::from_secs(seconds.min(SECONDS_MAX))
}

/// Fri, 31 Dec 9999 23:59:59 GMT
const SECONDS_MAX: u64 = 253_402_300_799;

#[cfg(test)]
mod tests;

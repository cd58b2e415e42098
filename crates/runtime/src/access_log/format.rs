//! One entry as one line, in JSON, in the combined format, or for a person.

use std::io::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::client_address::ClientAddress;

use kettle_tls::Session;
use time::OffsetDateTime;

use super::ResponseEntry;
use super::escape::{write_combined_field, write_json_string};

/// Writes one JSON object and a line feed. Fields without a value are left out.
pub(super) fn write_json(out: &mut Vec<u8>, clock: &mut TimeTexts, entry: &ResponseEntry<'_>) {
    out.extend_from_slice(b"{\"time\":\"");
    write_iso(out, clock, entry.time);
    out.push(b'"');
    address_members(out, ["remote", "remote_port"], entry.remote);
    text_member(out, "server_name", server_name(entry));
    text_member(out, "host", entry.host);
    text_member(out, "method", Some(entry.method));
    text_member(out, "target", Some(entry.target));
    text_member(out, "version", Some(entry.version.as_bytes()));
    number_member(out, "status", entry.status.into());
    text_member(out, "user", entry.user.map(str::as_bytes));
    text_member(out, "refused", entry.refusal.map(str::as_bytes));
    number_member(out, "bytes_sent", entry.bytes_sent);
    number_member(out, "body_bytes", entry.body_bytes);
    text_member(out, "path", Some(entry.path.as_str().as_bytes()));
    text_member(out, "reason", entry.reason.map(|reason| reason.as_str().as_bytes()));
    if let Some(session) = entry.session {
        text_member(out, "tls_version", Some(session.version_name().as_bytes()));
        text_member(out, "suite", Some(session.suite.as_bytes()));
        text_member(out, "group", Some(session.group.as_bytes()));
        text_member(out, "resumed", Some(session.resumed.as_str().as_bytes()));
    }
    text_member(out, "client", client(entry));
    if entry.cache.is_some() {
        text_member(out, "cache", entry.cache.map(str::as_bytes));
    }
    if let Some(upstream) = &entry.upstream {
        upstream.write_json(out);
    }
    text_member(out, "referer", entry.referer);
    text_member(out, "user_agent", entry.user_agent);
    number_member(out, "duration_us", microseconds(entry.duration));
    number_member(out, "connection", entry.connection);
    number_member(out, "request", entry.request_number);
    plain_member(out, "request_id", entry.request_id);
    out.extend_from_slice(b",\"completed\":");
    out.extend_from_slice(if entry.completed { b"true" } else { b"false" });
    out.extend_from_slice(b"}\n");
}

/// Writes the combined format, then a line feed.
pub(super) fn write_combined_plain(
    out: &mut Vec<u8>,
    clock: &mut TimeTexts,
    entry: &ResponseEntry<'_>,
) {
    write_combined_fields(out, clock, entry);
    out.push(b'\n');
}

fn write_combined_fields(out: &mut Vec<u8>, clock: &mut TimeTexts, entry: &ResponseEntry<'_>) {
    write_display(out, entry.remote.host());
    out.extend_from_slice(b" - ");
    match entry.user {
        // A space would end the field.
        Some(user) => write_combined_field(out, user.replace(' ', "_").as_bytes()),
        None => out.push(b'-'),
    }
    out.extend_from_slice(b" [");
    clock.write_common(out, entry.time);
    out.extend_from_slice(b"] \"");
    if entry.method.is_empty() {
        out.push(b'-');
    } else {
        write_combined_field(out, entry.method);
        out.push(b' ');
        write_combined_field(out, entry.target);
        out.push(b' ');
        out.extend_from_slice(entry.version.as_bytes());
    }
    out.extend_from_slice(b"\" ");
    write_number(out, entry.status.into());
    out.push(b' ');
    write_number(out, entry.body_bytes);
    quoted_field(out, " \"", entry.referer);
    quoted_field(out, " \"", entry.user_agent);
}

/// Writes the combined format, then kettle's own fields as `name=value`, then a line feed.
pub(super) fn write_combined(out: &mut Vec<u8>, clock: &mut TimeTexts, entry: &ResponseEntry<'_>) {
    write_combined_fields(out, clock, entry);
    let session = entry.session;
    word_field(out, " path=", Some(entry.path.as_str()));
    word_field(out, " reason=", entry.reason.map(|reason| reason.as_str()));
    word_field(out, " tls=", session.map(Session::version_name));
    word_field(out, " suite=", session.map(|session| session.suite));
    word_field(out, " group=", session.map(|session| session.group));
    word_field(out, " resumed=", session.map(|session| session.resumed.as_str()));
    quoted_field(out, " host=\"", entry.host);
    quoted_field(out, " server_name=\"", server_name(entry));
    out.extend_from_slice(b" bytes_sent=");
    write_number(out, entry.bytes_sent);
    out.extend_from_slice(b" duration_us=");
    write_number(out, microseconds(entry.duration));
    out.extend_from_slice(b" connection=");
    write_number(out, entry.connection);
    out.extend_from_slice(b" request=");
    write_number(out, entry.request_number);
    out.extend_from_slice(b" request_id=");
    write_display(out, entry.request_id);
    word_field(out, " completed=", Some(if entry.completed { "true" } else { "false" }));
    if entry.refusal.is_some() {
        word_field(out, " refused=", entry.refusal);
    }
    if entry.cache.is_some() {
        word_field(out, " cache=", entry.cache);
    }
    if let Some(upstream) = &entry.upstream {
        upstream.write_combined(out);
    }
    if let Some(client) = client(entry) {
        quoted_field(out, " client=\"", Some(client));
    }
    out.push(b'\n');
}

/// Writes what a person at a terminal wants to see, and a line feed.
pub(super) fn write_short(out: &mut Vec<u8>, clock: &mut TimeTexts, entry: &ResponseEntry<'_>) {
    write_time_of_day(out, clock, entry.time);
    out.push(b' ');
    write_number(out, entry.status.into());
    out.push(b' ');
    if entry.method.is_empty() {
        out.push(b'-');
    } else {
        write_combined_field(out, entry.method);
        out.push(b' ');
        write_combined_field(out, entry.target);
    }
    let milliseconds = entry.duration.as_secs_f64() * 1000.0;
    let path = entry.path.as_str();
    let cut = if entry.completed { "" } else { " cut short" };
    let bytes = entry.body_bytes;
    let client = entry.remote.host();
    write_display(out, format_args!(" {bytes} B {milliseconds:.1} ms {path} {client}{cut}\n"));
}

/// The last second written, in both notations, so that most lines need no calendar.
#[derive(Debug, Default)]
pub(super) struct TimeTexts {
    second: Option<i64>,
    iso_second: Vec<u8>,
    common_second: Vec<u8>,
}

impl TimeTexts {
    /// Writes a time as servers' logs have it.
    pub(super) fn write_common(&mut self, out: &mut Vec<u8>, time: SystemTime) {
        self.turn_to(time);
        out.extend_from_slice(&self.common_second);
    }

    /// Makes the two notations those of `time`, and returns the milliseconds beyond them.
    fn turn_to(&mut self, time: SystemTime) -> u32 {
        let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let second = i64::try_from(since_epoch.as_secs()).unwrap_or(0);
        if self.second != Some(second) {
            self.second = Some(second);
            self.write_second(second);
        }
        since_epoch.subsec_millis()
    }

    fn write_second(&mut self, second: i64) {
        let date =
            OffsetDateTime::from_unix_timestamp(second).unwrap_or(OffsetDateTime::UNIX_EPOCH);
        let (year, month, day) = date.to_calendar_date();
        let (hour, minute, seconds) = date.to_hms();
        let month_number = u8::from(month);
        let month_name = MONTHS.get(usize::from(month_number) - 1).copied().unwrap_or_default();
        self.iso_second.clear();
        self.common_second.clear();
        // Writing to a vector cannot fail.
        let _ = write!(
            self.iso_second,
            "{year:04}-{month_number:02}-{day:02}T{hour:02}:{minute:02}:{seconds:02}"
        );
        let _ = write!(
            self.common_second,
            "{day:02}/{month_name}/{year:04}:{hour:02}:{minute:02}:{seconds:02} +0000"
        );
    }
}

/// Writes a time with its milliseconds (RFC 3339).
pub(super) fn write_iso(out: &mut Vec<u8>, clock: &mut TimeTexts, time: SystemTime) {
    let milliseconds = clock.turn_to(time);
    out.extend_from_slice(&clock.iso_second);
    let _ = write!(out, ".{milliseconds:03}Z");
}

/// Writes hours, minutes and seconds.
pub(super) fn write_time_of_day(out: &mut Vec<u8>, clock: &mut TimeTexts, time: SystemTime) {
    clock.turn_to(time);
    out.extend_from_slice(clock.iso_second.get(ISO_DATE_BYTES..).unwrap_or_default());
}

fn server_name<'a>(entry: &ResponseEntry<'a>) -> Option<&'a [u8]> {
    entry.session?.server_name.as_deref().map(str::as_bytes)
}

/// Whose certificate the client showed.
fn client<'a>(entry: &ResponseEntry<'a>) -> Option<&'a [u8]> {
    Some(entry.session?.peer.as_ref()?.subject.as_bytes())
}

pub(super) fn text_member(out: &mut Vec<u8>, name: &str, value: Option<&[u8]>) {
    if let Some(value) = value {
        member_name(out, name);
        write_json_string(out, value);
    }
}

pub(super) fn number_member(out: &mut Vec<u8>, name: &str, value: u64) {
    member_name(out, name);
    write_number(out, value);
}

/// An address, and its port where that is known, each under its name.
pub(super) fn address_members(out: &mut Vec<u8>, names: [&str; 2], address: ClientAddress) {
    let [name, port_name] = names;
    plain_member(out, name, address.host());
    if let Some(port) = address.port() {
        number_member(out, port_name, port.into());
    }
}

/// A text in which nothing has to be escaped.
fn plain_member(out: &mut Vec<u8>, name: &str, value: impl std::fmt::Display) {
    member_name(out, name);
    out.push(b'"');
    write_display(out, value);
    out.push(b'"');
}

fn member_name(out: &mut Vec<u8>, name: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

pub(super) fn quoted_field(out: &mut Vec<u8>, opening: &str, value: Option<&[u8]>) {
    out.extend_from_slice(opening.as_bytes());
    match value {
        Some(value) => write_combined_field(out, value),
        None => out.push(b'-'),
    }
    out.push(b'"');
}

pub(super) fn word_field(out: &mut Vec<u8>, name: &str, value: Option<&str>) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(value.unwrap_or("-").as_bytes());
}

pub(super) fn write_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

pub(super) fn write_display(out: &mut Vec<u8>, value: impl std::fmt::Display) {
    let _ = write!(out, "{value}");
}

pub(super) fn microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// `2026-11-21T`.
const ISO_DATE_BYTES: usize = 11;

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

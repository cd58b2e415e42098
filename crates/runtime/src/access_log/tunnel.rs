//! One tunnel as one line, in JSON, as fields behind a client's address, or for a person.

use std::time::{Duration, SystemTime};

use kettle_config::{ListenAddress, LogFormat};
use kettle_tls::Session;

use super::escape::write_combined_field;
use super::format::{
    TimeTexts, address_members, microseconds, number_member, quoted_field, text_member, word_field,
    write_display, write_iso, write_number, write_time_of_day,
};
use crate::client_address::ClientAddress;
use crate::tx_path::{Flow, Reason};

/// The facts known of one tunnel when it is over.
#[derive(Clone, Copy, Debug)]
pub struct TunnelEntry<'a> {
    /// When its connection was accepted.
    pub time: SystemTime,
    /// The client, by its PROXY header where it came with one.
    pub remote: ClientAddress,
    /// The peer that connected to us: the load balancer, where that is not the client.
    pub peer: ClientAddress,
    /// The address of its listener.
    pub listener: &'a ListenAddress,
    /// The backend's name.
    pub backend: &'a str,
    /// The server's name; none if none could be had.
    pub server: Option<&'a str>,
    /// The time the server took to take the connection.
    pub connect_time: Option<Duration>,
    /// The flow to the backend; nothing if nothing could go.
    pub to_backend: Option<Flow>,
    /// The flow to the client; nothing if nothing could go.
    pub to_client: Option<Flow>,
    /// The way it ended.
    pub end: &'a str,
    /// Why no server could be had, for a person.
    pub failure: Option<&'a str>,
    /// The parameters that the handshake with the client agreed on.
    pub session: Option<&'a Session>,
    /// The name the client asked for.
    pub server_name: Option<&'a str>,
    /// The parameters that the handshake with the server agreed on.
    pub server_session: Option<&'a Session>,
    /// From accept to the end.
    pub duration: Duration,
    /// The connection, unique while this process lives.
    pub connection: u64,
}

impl TunnelEntry<'_> {
    pub(super) fn write(&self, format: LogFormat, out: &mut Vec<u8>, clock: &mut TimeTexts) {
        match format {
            LogFormat::Json => self.write_json(out, clock),
            LogFormat::Combined => self.write_combined(out, clock),
            LogFormat::CombinedPlain => {
                self.write_combined_fields(out, clock);
                out.extend_from_slice(b" \"-\" \"-\"\n");
            }
            LogFormat::Short => self.write_short(out, clock),
        }
    }

    fn write_json(&self, out: &mut Vec<u8>, clock: &mut TimeTexts) {
        out.extend_from_slice(b"{\"time\":\"");
        write_iso(out, clock, self.time);
        out.push(b'"');
        address_members(out, ["remote", "remote_port"], self.remote);
        if self.peer != self.remote {
            address_members(out, ["peer", "peer_port"], self.peer);
        }
        text_member(out, "listener", Some(self.listener.to_string().as_bytes()));
        text_member(out, "server_name", self.server_name.map(str::as_bytes));
        text_member(out, "backend", Some(self.backend.as_bytes()));
        text_member(out, "server", self.server.map(str::as_bytes));
        if let Some(time) = self.connect_time {
            number_member(out, "connect_us", microseconds(time));
        }
        for (word, flow) in [("sent", self.to_client), ("received", self.to_backend)] {
            number_member(out, &format!("bytes_{word}"), bytes(flow));
            let path = flow.map(|flow| flow.path.as_str().as_bytes());
            text_member(out, &format!("path_{word}"), path);
            let reason = flow.and_then(|flow| flow.reason).map(|it| it.as_str().as_bytes());
            text_member(out, &format!("reason_{word}"), reason);
        }
        text_member(out, "end", Some(self.end.as_bytes()));
        text_member(out, "failure", self.failure.map(str::as_bytes));
        for (prefix, session) in [("", self.session), ("server_", self.server_session)] {
            let Some(session) = session else { continue };
            let member = |out: &mut Vec<u8>, name: &str, value: Option<&[u8]>| {
                text_member(out, &format!("{prefix}{name}"), value);
            };
            member(out, "tls_version", Some(session.version_name().as_bytes()));
            member(out, "suite", Some(session.suite.as_bytes()));
            member(out, "group", Some(session.group.as_bytes()));
            member(out, "resumed", Some(session.resumed.as_str().as_bytes()));
            member(out, "alpn", session.alpn.as_ref().map(|alpn| alpn.as_bytes()));
        }
        let client = self.session.and_then(|session| session.peer.as_ref());
        text_member(out, "client", client.map(|peer| peer.subject.as_bytes()));
        number_member(out, "duration_us", microseconds(self.duration));
        number_member(out, "connection", self.connection);
        out.extend_from_slice(b"}\n");
    }

    /// No request stands in it: what readers of the combined format look for is not there.
    fn write_combined_fields(&self, out: &mut Vec<u8>, clock: &mut TimeTexts) {
        write_display(out, self.remote.host());
        out.extend_from_slice(b" - - [");
        clock.write_common(out, self.time);
        out.extend_from_slice(b"] \"-\" - ");
        write_number(out, bytes(self.to_client));
    }

    fn write_combined(&self, out: &mut Vec<u8>, clock: &mut TimeTexts) {
        self.write_combined_fields(out, clock);
        quoted_field(out, " backend=\"", Some(self.backend.as_bytes()));
        quoted_field(out, " server=\"", self.server.map(str::as_bytes));
        quoted_field(out, " server_name=\"", self.server_name.map(str::as_bytes));
        let session = self.session;
        let flow = self.to_client;
        word_field(out, " path=", flow.map(|flow| flow.path.as_str()));
        word_field(out, " reason=", flow.and_then(|flow| flow.reason).map(Reason::as_str));
        word_field(out, " tls=", session.map(|session| session.version_name()));
        word_field(out, " suite=", session.map(|session| session.suite));
        word_field(out, " resumed=", session.map(|session| session.resumed.as_str()));
        out.extend_from_slice(b" bytes_received=");
        write_number(out, bytes(self.to_backend));
        out.extend_from_slice(b" duration_us=");
        write_number(out, microseconds(self.duration));
        out.extend_from_slice(b" connection=");
        write_number(out, self.connection);
        word_field(out, " end=", Some(self.end));
        if self.failure.is_some() {
            quoted_field(out, " failure=\"", self.failure.map(str::as_bytes));
        }
        out.push(b'\n');
    }

    fn write_short(&self, out: &mut Vec<u8>, clock: &mut TimeTexts) {
        write_time_of_day(out, clock, self.time);
        let place = self.server.unwrap_or(self.backend);
        let sent = bytes(self.to_client);
        let received = bytes(self.to_backend);
        let path = self.to_client.map_or("-", |flow| flow.path.as_str());
        let seconds = self.duration.as_secs_f64();
        let client = self.remote.host();
        let end = self.end;
        write_display(
            out,
            format_args!(
                " {client} to {place} {received} B, back {sent} B {seconds:.3} s {path} {end}"
            ),
        );
        if let Some(failure) = self.failure {
            out.extend_from_slice(b": ");
            write_combined_field(out, failure.as_bytes());
        }
        out.push(b'\n');
    }
}

fn bytes(flow: Option<Flow>) -> u64 {
    flow.map_or(0, |flow| flow.bytes)
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::time::UNIX_EPOCH;

    use super::*;
    use crate::tx_path::TxPath;

    fn line(format: LogFormat) -> String {
        let listener = SocketAddr::from(([0, 0, 0, 0], 443)).into();
        let entry = TunnelEntry {
            time: UNIX_EPOCH + Duration::from_millis(1_795_295_747_042),
            remote: SocketAddr::from(([192, 0, 2, 7], 40_000)).into(),
            peer: SocketAddr::from(([10, 0, 0, 1], 5_000)).into(),
            listener: &listener,
            backend: "app",
            server: Some("127.0.0.1:80"),
            connect_time: Some(Duration::from_micros(90)),
            to_backend: Some(Flow { bytes: 100, path: TxPath::User, reason: None }),
            to_client: Some(Flow {
                bytes: 70_000,
                path: TxPath::User,
                reason: Some(Reason::KernelLacksSuite),
            }),
            end: "client_closed",
            failure: None,
            session: None,
            server_name: Some("a\"b"),
            server_session: None,
            duration: Duration::from_micros(1_234),
            connection: 9,
        };
        let mut out = Vec::new();
        let mut clock = TimeTexts::default();
        entry.write(format, &mut out, &mut clock);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn json_has_both_directions() {
        let line: serde_json::Value = serde_json::from_str(&line(LogFormat::Json)).unwrap();
        let expected = serde_json::json!({
            "time": "2026-11-21T21:15:47.042Z", "remote": "192.0.2.7", "remote_port": 40_000, "peer": "10.0.0.1", "peer_port": 5_000,
            "listener": "0.0.0.0:443", "server_name": "a\"b", "backend": "app", "server": "127.0.0.1:80",
            "connect_us": 90, "bytes_sent": 70_000, "path_sent": "user",
            "reason_sent": "kernel_lacks_suite", "bytes_received": 100, "path_received": "user",
            "end": "client_closed", "duration_us": 1_234, "connection": 9,
        });
        assert_eq!(line, expected);
    }

    #[test]
    fn other_formats_are_one_line_each() {
        assert_eq!(
            line(LogFormat::Short),
            "21:15:47 192.0.2.7 to 127.0.0.1:80 100 B, back 70000 B 0.001 s user client_closed\n"
        );
        assert_eq!(
            line(LogFormat::CombinedPlain),
            "192.0.2.7 - - [21/Nov/2026:21:15:47 +0000] \"-\" - 70000 \"-\" \"-\"\n"
        );
        assert_eq!(
            line(LogFormat::Combined),
            "192.0.2.7 - - [21/Nov/2026:21:15:47 +0000] \"-\" - 70000 backend=\"app\" \
             server=\"127.0.0.1:80\" server_name=\"a\\x22b\" path=user reason=kernel_lacks_suite tls=- \
             suite=- resumed=- bytes_received=100 duration_us=1234 connection=9 end=client_closed\n"
        );
    }
}

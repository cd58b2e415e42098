//! A request to a server, written by us from parsed parts: a request line, one `host`, one framing; or the parameters of a program.

use std::borrow::Cow;
use std::mem;
use std::num::NonZero;
use std::time::Duration;

use super::{Retries, UpstreamError};

use kettle_config::BackendProtocol;
use kettle_http::h1::framing::BodyFraming;
use kettle_http::h1::write::{write_content_length, write_field, write_field_with};
use kettle_http::{cgi, fcgi, uwsgi};
use kettle_runtime::client_address::ClientHost;

/// A request's head on its way to a server.
#[derive(Clone, Debug)]
pub struct OutgoingRequest {
    /// The bytes of its form.
    bytes: Vec<u8>,
    form: Form,
    /// The number of bytes at its end that a line or a parameter that follows takes back; none while it has not ended.
    end_bytes: u8,
    /// True if something that it was to say to a program could not be said.
    is_short: bool,
    is_head: bool,
    is_idempotent: bool,
    has_body: bool,
    /// True if its method gives content a meaning, so that servers are told of none, too (RFC 9110 §8.6).
    says_no_content: bool,
    /// True if its server may take its body for the next request: its connection carries no other.
    pub is_doubtful: bool,
    /// The server that its client's cookie names.
    pub asked_server: Option<u64>,
    /// The key that chooses its server, for backends that go by that.
    pub key: Option<NonZero<u64>>,
    /// For which answers and failures another server is asked, if it may be repeated.
    pub retries: Retries,
    /// For whom it is, for backends that choose a server by that.
    pub client: ClientHost,
    /// The time the server may send nothing, and take nothing.
    pub timeout: Duration,
}

/// The form of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// The head of HTTP/1.1.
    Http1,
    /// Parameters of a program, by any other protocol.
    Program {
        protocol: BackendProtocol,
        /// True if the application is not to close the connection.
        keeps_connection: bool,
        /// True if a body follows.
        has_body: bool,
    },
}

/// Which kept connections a request may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// Any: if one has died meanwhile, the request is sent again.
    Any,
    /// Those of servers that have let none die under a request lately: it is not sent again.
    OfSteady,
    /// None.
    Nothing,
}

impl OutgoingRequest {
    /// A request without a body. `target` is a path that begins with a slash, and perhaps a query: visible ASCII only.
    /// `None` if it, the method or the host is none.
    #[must_use]
    pub fn new(
        method: &str,
        target: &str,
        host: &str,
        client: ClientHost,
        timeout: Duration,
    ) -> Option<Self> {
        if !is_method(method)
            || !target.starts_with('/')
            || !is_visible(target)
            || !is_visible(host)
        {
            return None;
        }
        let mut bytes = Vec::with_capacity(HEAD_BYTES_USUAL);
        for part in [method, " ", target, " HTTP/1.1\r\n"] {
            bytes.extend_from_slice(part.as_bytes());
        }
        write_field(&mut bytes, "host", host.as_bytes());
        Some(Self::of(Form::Http1, bytes, method, client, timeout))
    }

    /// A request without a body for a program, which knows no target but by its parameters. `None` if the method or the host is none.
    #[must_use]
    pub fn to_program(
        (protocol, keeps_connection): (BackendProtocol, bool),
        method: &str,
        host: Option<&str>,
        client: ClientHost,
        timeout: Duration,
    ) -> Option<Self> {
        if !is_method(method) || !host.is_none_or(is_visible) {
            return None;
        }
        let form = Form::Program { protocol, keeps_connection, has_body: false };
        let mut bytes = Vec::with_capacity(PARAMETER_BYTES_USUAL);
        if protocol == BackendProtocol::FastCgi {
            bytes.extend_from_slice(&[0; fcgi::ROOM_BYTES]);
        }
        let mut outgoing = Self::of(form, bytes, method, client, timeout);
        if protocol == BackendProtocol::Scgi {
            outgoing.parameter("SCGI", "1");
        }
        outgoing.parameter("REQUEST_METHOD", method);
        if let Some(host) = host {
            outgoing.field("host", host);
        }
        Some(outgoing)
    }

    fn of(form: Form, bytes: Vec<u8>, method: &str, client: ClientHost, timeout: Duration) -> Self {
        let is_idempotent = matches!(method, "GET" | "HEAD" | "OPTIONS" | "PUT" | "DELETE");
        let says_no_content = matches!(method, "POST" | "PUT" | "PATCH");
        let is_head = method == "HEAD";
        let is_doubtful = false;
        Self {
            bytes,
            form,
            end_bytes: 0,
            is_short: false,
            is_head,
            is_idempotent,
            has_body: false,
            says_no_content,
            is_doubtful,
            asked_server: None,
            key: None,
            retries: Retries::default(),
            client,
            timeout,
        }
    }

    /// Adds a field. One whose name or value could not stand in a message is left out.
    pub fn field(&mut self, name: impl AsRef<[u8]>, value: impl AsRef<[u8]>) {
        match self.form {
            Form::Http1 => self.write(|bytes| write_field(bytes, name, value.as_ref())),
            Form::Program { protocol, .. } => cgi::with_parameter_name(name.as_ref(), |name| {
                self.pair(protocol, name, value.as_ref());
            }),
        }
    }

    /// The same for a value that is written piece by piece.
    pub fn field_with(&mut self, name: &str, value: impl FnOnce(&mut Vec<u8>)) {
        match self.form {
            Form::Http1 => self.write(|bytes| write_field_with(bytes, name, value)),
            Form::Program { .. } => {
                let mut text = Vec::new();
                value(&mut text);
                self.field(name, text);
            }
        }
    }

    /// Adds a parameter that is no field. HTTP/1.1 has none.
    pub fn parameter(&mut self, name: &str, value: impl AsRef<[u8]>) {
        if let Form::Program { protocol, .. } = self.form {
            self.pair(protocol, name.as_bytes(), value.as_ref());
        }
    }

    fn pair(&mut self, protocol: BackendProtocol, name: &[u8], value: &[u8]) {
        let pair = match protocol {
            BackendProtocol::Uwsgi => uwsgi::pair,
            BackendProtocol::Scgi => uwsgi::scgi_pair,
            BackendProtocol::FastCgi | BackendProtocol::Http1 => fcgi::pair,
        };
        let is_said = self.write(|bytes| pair(bytes, name, value));
        self.is_short |= !is_said;
    }

    /// Itself; `None` if a program would not be told all of it: a value has a control character, or is too long.
    #[must_use]
    pub fn if_sound(self) -> Option<Self> {
        (!self.is_short).then_some(self)
    }

    /// Returns the protocol for which it is written.
    pub fn protocol(&self) -> BackendProtocol {
        match self.form {
            Form::Http1 => BackendProtocol::Http1,
            Form::Program { protocol, .. } => protocol,
        }
    }

    /// Writes a line or a parameter, in front of the end if that is there.
    fn write<T>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let end_bytes = usize::from(mem::take(&mut self.end_bytes));
        self.bytes.truncate(self.bytes.len().saturating_sub(end_bytes));
        write(&mut self.bytes)
    }

    /// Ends the head: what is sent needs no copy then. A line or a parameter that follows takes that back.
    #[must_use]
    pub fn ended(mut self) -> Self {
        self.end_bytes = match self.form {
            _ if self.end_bytes > 0 => self.end_bytes,
            Form::Http1 => {
                self.bytes.extend_from_slice(END);
                END.len() as u8
            }
            Form::Program { protocol: BackendProtocol::FastCgi, keeps_connection, has_body } => {
                fcgi::enclose(&mut self.bytes, keeps_connection, has_body).unwrap_or_default()
            }
            Form::Program { .. } => 0,
        };
        self
    }

    /// Announces a body, which the sender of the request sends behind it. Programs know none without a length.
    pub fn announce_body(&mut self, framing: BodyFraming) {
        if let Form::Program { has_body, protocol, .. } = &mut self.form {
            *has_body = !framing.is_empty();
            let is_first = *protocol == BackendProtocol::Scgi;
            let mut digits = itoa::Buffer::new();
            let length = match framing {
                BodyFraming::Length(length) => digits.format(length),
                BodyFraming::None | BodyFraming::Chunked if is_first => "0",
                // As nginx does.
                BodyFraming::None | BodyFraming::Chunked => "",
            };
            let told = self.write(|bytes| bytes.len());
            self.parameter(CONTENT_LENGTH, length);
            if is_first {
                let bytes = self.bytes.len() - told;
                self.bytes.rotate_right(bytes);
            }
            if matches!(framing, BodyFraming::Length(_)) {
                self.field("content-length", length);
            }
        } else {
            self.announce_http_body(framing);
        }
        self.has_body = !framing.is_empty();
    }

    fn announce_http_body(&mut self, framing: BodyFraming) {
        match framing {
            BodyFraming::None if self.says_no_content => {
                self.write(|bytes| write_content_length(bytes, 0));
            }
            BodyFraming::None => {}
            BodyFraming::Length(length) => self.write(|bytes| write_content_length(bytes, length)),
            BodyFraming::Chunked => self.field("transfer-encoding", "chunked"),
        }
    }

    /// True if its response has no body, whatever it announces.
    pub fn is_head(&self) -> bool {
        self.is_head
    }

    /// True if it may be sent again if it got no response.
    pub(crate) fn is_repeatable(&self) -> bool {
        // A body that was given away once may not be there a second time.
        self.is_idempotent && !self.has_body
    }

    /// True if another server may be asked, where its body `is_stored` if it has one.
    fn may_go_on(&self, is_stored: bool) -> bool {
        self.is_idempotent && (is_stored || !self.has_body)
    }

    /// True if it goes on to another server for an answer of this status.
    pub fn goes_on_after(&self, status: u16, is_stored: bool) -> bool {
        self.retries.has_status(status) && self.may_go_on(is_stored)
    }

    /// True if it goes on to another server for such a failure.
    pub fn goes_on_behind(&self, error: &UpstreamError, is_stored: bool) -> bool {
        self.retries.has_error(error) && self.may_go_on(is_stored)
    }

    /// Which kept connections it may take.
    pub fn reuse(&self) -> Reuse {
        if self.is_repeatable() { Reuse::Any } else { Reuse::OfSteady }
    }

    /// The bytes of the whole head; of a program's, of all that comes before its body.
    pub fn head(&self) -> Cow<'_, [u8]> {
        let (protocol, keeps_connection, has_body) = match self.form {
            _ if self.end_bytes > 0 => return Cow::Borrowed(&self.bytes),
            Form::Http1 => return [&self.bytes, END].concat().into(),
            Form::Program { protocol, keeps_connection, has_body } => {
                (protocol, keeps_connection, has_body)
            }
        };
        match protocol {
            BackendProtocol::Uwsgi => return uwsgi::block(&self.bytes).into(),
            BackendProtocol::Scgi => return uwsgi::scgi_block(&self.bytes).into(),
            BackendProtocol::FastCgi | BackendProtocol::Http1 => {}
        }
        let mut head = Vec::with_capacity(self.bytes.len() + RECORD_BYTES_USUAL);
        fcgi::begin(&mut head, keeps_connection);
        fcgi::parameters(&mut head, self.bytes.get(fcgi::ROOM_BYTES..).unwrap_or_default());
        if !has_body {
            fcgi::end_input(&mut head);
        }
        Cow::Owned(head)
    }
}

fn is_visible(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_graphic())
}

fn is_method(method: &str) -> bool {
    !method.is_empty() && is_visible(method)
}

/// True if a value of `Authorization` or `WWW-Authenticate` names a scheme by which servers take all that comes over a connection
/// for one client's (RFC 4559 §6).
pub fn binds_connection(value: &[u8]) -> bool {
    let binds = |challenge: &[u8]| {
        let mut words = challenge.trim_ascii().split(u8::is_ascii_whitespace);
        let scheme = words.next().unwrap_or_default();
        BINDING.iter().any(|known| scheme.eq_ignore_ascii_case(known.as_bytes()))
    };
    value.split(|byte| *byte == b',').any(binds)
}

const BINDING: [&str; 3] = ["ntlm", "negotiate", "kerberos"];

/// Members of `Connection` in a message that is passed on.
pub const CONNECTION_OPTIONS_MAX: usize = 32;

/// The empty line that ends a head.
const END: &[u8] = b"\r\n";

/// The parameter that says how long a body is; servers of HTTP/1.1 have a field for it.
const CONTENT_LENGTH: &str = "CONTENT_LENGTH";

/// Room that most heads find enough,
const HEAD_BYTES_USUAL: usize = 1_024;
/// and what a program is told,
const PARAMETER_BYTES_USUAL: usize = 2_048;
/// and what stands around that.
const RECORD_BYTES_USUAL: usize = 64;

#[cfg(test)]
mod tests;

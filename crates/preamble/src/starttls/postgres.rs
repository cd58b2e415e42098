//! SSLRequest in PostgreSQL's protocol, as the server and as the client (PostgreSQL's manual, "Message Formats", and
//! `src/backend/tcop/backend_startup.c`).

use super::{Dialogue, Next, StartTlsError};

/// We are the server, until the client asks for TLS or begins it without asking.
#[derive(Clone, Debug, Default)]
pub struct Server {
    request: Vec<u8>,
    /// Asked for, and denied, already.
    has_asked_gss: bool,
}

/// We are the client, until the server agrees to begin TLS.
#[derive(Clone, Debug, Default)]
pub struct Client {
    error: Vec<u8>,
}

impl Dialogue for Server {
    fn begin(&mut self, _: &mut Vec<u8>) {}

    fn receive(&mut self, received: &[u8], answer: &mut Vec<u8>) -> Result<Next, StartTlsError> {
        let is_first = self.request.is_empty() && !self.has_asked_gss;
        // Since PostgreSQL 17 a client may begin with a ClientHello. No request is as long as that would make it.
        if is_first && received.first() == Some(&TLS_HANDSHAKE) {
            return Ok(Next::TlsBegun);
        }
        let missing = REQUEST_BYTES.saturating_sub(self.request.len()).min(received.len());
        let (now, rest) = received.split_at_checked(missing).unwrap_or_default();
        self.request.extend_from_slice(now);
        let Some((length, code)) = read_request(&self.request) else {
            return Ok(Next::Receive);
        };
        self.request.clear();
        match (length, code) {
            (REQUEST_LENGTH, SSL_REQUEST | GSS_REQUEST) if !rest.is_empty() => {
                refuse("nothing may follow a request before its answer", answer);
                Err(StartTlsError::SaidTooMuch)
            }
            (REQUEST_LENGTH, SSL_REQUEST) => {
                answer.push(b'S');
                Ok(Next::Tls)
            }
            (REQUEST_LENGTH, GSS_REQUEST) if !self.has_asked_gss => {
                self.has_asked_gss = true;
                answer.push(b'N');
                Ok(Next::Receive)
            }
            (REQUEST_LENGTH, GSS_REQUEST) => {
                refuse("GSSAPI encryption was denied already", answer);
                Err(StartTlsError::TooMany)
            }
            // Nobody reads an answer to that (manual, "Canceling Requests in Progress").
            (CANCEL_LENGTH_MIN..=CANCEL_LENGTH_MAX, CANCEL_REQUEST) => {
                Err(StartTlsError::PlainText)
            }
            (REQUEST_LENGTH..=STARTUP_LENGTH_MAX, VERSION_2..VERSION_4) => {
                refuse("SSL required: connect with sslmode=require", answer);
                Err(StartTlsError::PlainText)
            }
            _ => {
                refuse("this is no request of the PostgreSQL protocol", answer);
                Err(StartTlsError::Malformed)
            }
        }
    }
}

impl Dialogue for Client {
    fn begin(&mut self, answer: &mut Vec<u8>) {
        answer.extend_from_slice(&REQUEST_LENGTH.to_be_bytes());
        answer.extend_from_slice(&SSL_REQUEST.to_be_bytes());
    }

    fn receive(&mut self, received: &[u8], _: &mut Vec<u8>) -> Result<Next, StartTlsError> {
        if !self.error.is_empty() {
            return self.gather_error(received);
        }
        match received {
            [] => Ok(Next::Receive),
            [b'S'] => Ok(Next::Tls),
            // Behind it could stand what an attacker wants us to take for the server's (CVE-2021-23222).
            [b'S' | b'N', _, ..] => Err(StartTlsError::SaidTooMuch),
            [b'N'] => Err(StartTlsError::Refused("it does not speak TLS".to_owned())),
            [b'E', ..] => self.gather_error(received),
            _ => Err(StartTlsError::Malformed),
        }
    }
}

impl Client {
    /// Reads an ErrorResponse: it is nobody's yet, so its text is told and not believed (CVE-2024-10977).
    fn gather_error(&mut self, received: &[u8]) -> Result<Next, StartTlsError> {
        let room = ERROR_BYTES_MAX.saturating_sub(self.error.len()).min(received.len());
        self.error.extend_from_slice(received.get(..room).unwrap_or(received));
        let body = match self.error.get(1..).and_then(|rest| rest.split_first_chunk::<4>()) {
            Some((length, body)) => {
                let length = u32::from_be_bytes(*length).saturating_sub(4) as usize;
                body.get(..length).or_else(|| (self.error.len() == ERROR_BYTES_MAX).then_some(body))
            }
            None => None,
        };
        let Some(body) = body else { return Ok(Next::Receive) };
        let mut fields = body.split(|byte| *byte == 0);
        let message = fields.find_map(|field| field.strip_prefix(b"M"));
        Err(StartTlsError::refused(message.unwrap_or(b"an error without a message")))
    }
}

/// The length of a request, which counts itself, and its code.
fn read_request(bytes: &[u8]) -> Option<(u32, u32)> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (code, _) = rest.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*length), u32::from_be_bytes(*code)))
}

/// Writes an ErrorResponse of a protocol violation.
fn refuse(message: &str, answer: &mut Vec<u8>) {
    let mut fields = Vec::new();
    for (kind, text) in [(b'S', "FATAL"), (b'V', "FATAL"), (b'C', "08P01"), (b'M', message)] {
        fields.push(kind);
        fields.extend_from_slice(text.as_bytes());
        fields.push(0);
    }
    fields.push(0);
    let length = u32::try_from(fields.len() + 4).unwrap_or(u32::MAX);
    answer.push(b'E');
    answer.extend_from_slice(&length.to_be_bytes());
    answer.extend_from_slice(&fields);
}

/// The first byte of a TLS record with a ClientHello.
const TLS_HANDSHAKE: u8 = 0x16;

const SSL_REQUEST: u32 = 80_877_103;
const GSS_REQUEST: u32 = 80_877_104;
const CANCEL_REQUEST: u32 = 80_877_102;

/// Versions of the protocol, as a StartupMessage has them: 2.0 up to all of 3.
const VERSION_2: u32 = 2 << 16;
const VERSION_4: u32 = 4 << 16;

/// A length and a code: the whole of a request for encryption, the beginning of everything else.
const REQUEST_BYTES: usize = 8;
const REQUEST_LENGTH: u32 = 8;

/// With a process and its key, whose length is 4 bytes, or up to 256 since version 3.2.
const CANCEL_LENGTH_MIN: u32 = 16;
const CANCEL_LENGTH_MAX: u32 = 12 + 256;

/// `MAX_STARTUP_PACKET_LENGTH`, and the length itself.
const STARTUP_LENGTH_MAX: u32 = 10_000 + 4;

/// Of a server's error so much is kept.
const ERROR_BYTES_MAX: usize = 1_024;

#[cfg(test)]
mod tests;

//! STARTTLS in SMTP (RFC 3207), as the server and as the client.
//!
//! After TLS has begun the client speaks first (RFC 3207 §4.2): the server's greeting is in the dialogue and not behind it. So
//! where we are the server, whoever is behind us must have its own [`Greeting`] taken; and where we are the client of a
//! server whose greeting nobody has seen yet, [`Client::greeting`] has it.

use super::lines::{Commands, Line, REPLY_LINES_MAX, Refusals, split};
use super::{Dialogue, Next, StartTlsError};

/// We are the server, until the client says STARTTLS.
#[derive(Clone, Debug)]
pub struct Server {
    host: String,
    commands: Commands,
}

/// We are the client, until the server agrees to begin TLS.
#[derive(Clone, Debug)]
pub struct Client {
    host: String,
    line: Line,
    reply: Reply,
    stage: Stage,
    greeting: Vec<u8>,
}

/// The greeting of a server, which is all that is wanted of it.
#[derive(Clone, Debug, Default)]
pub struct Greeting {
    line: Line,
    reply: Reply,
}

/// The command to which a reply is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Greeting,
    Hello,
    StartTls,
}

impl Server {
    /// A server that calls itself so.
    #[must_use]
    pub fn new(host: &str) -> Self {
        Self { host: host.to_owned(), commands: Commands::default() }
    }

    fn command(host: &str, line: &[u8]) -> (String, Next) {
        let (verb, argument) = split(line);
        let has_argument = !argument.trim_ascii().is_empty();
        let answer = match (verb.to_ascii_uppercase().as_slice(), has_argument) {
            (b"STARTTLS", false) => {
                return ("220 2.0.0 Ready to start TLS\r\n".to_owned(), Next::Tls);
            }
            (b"QUIT", false) => return ("221 2.0.0 Goodbye\r\n".to_owned(), Next::End),
            (b"EHLO", true) => return (format!("250-{host}\r\n250 STARTTLS\r\n"), Next::Receive),
            (b"HELO", true) => return (format!("250 {host}\r\n"), Next::Receive),
            (b"EHLO" | b"HELO", false) | (b"STARTTLS" | b"QUIT", true) => {
                "501 5.5.4 Syntax error in parameters\r\n"
            }
            (b"NOOP", _) | (b"RSET", false) => "250 2.0.0 OK\r\n",
            _ => "530 5.7.0 Must issue a STARTTLS command first\r\n",
        };
        (answer.to_owned(), Next::Receive)
    }
}

impl Dialogue for Server {
    fn begin(&mut self, answer: &mut Vec<u8>) {
        answer.extend_from_slice(format!("220 {} ESMTP\r\n", self.host).as_bytes());
    }

    fn receive(&mut self, received: &[u8], answer: &mut Vec<u8>) -> Result<Next, StartTlsError> {
        let refusals = Refusals {
            too_many: "421 4.7.0 Too many commands\r\n",
            malformed: "500 5.5.2 Syntax error\r\n",
            behind: "554 5.5.0 Data behind STARTTLS\r\n",
        };
        let host = &self.host;
        self.commands.receive(received, answer, &refusals, |line| Self::command(host, line))
    }
}

impl Client {
    /// A client that calls itself so.
    #[must_use]
    pub fn new(host: &str) -> Self {
        Self {
            host: host.to_owned(),
            line: Line::default(),
            reply: Reply::default(),
            stage: Stage::Greeting,
            greeting: Vec::new(),
        }
    }

    /// Returns the server's greeting, line ends included.
    #[must_use]
    pub fn greeting(&self) -> &[u8] {
        &self.greeting
    }

    fn replied(
        &mut self,
        code: Code,
        last: &[u8],
        answer: &mut Vec<u8>,
    ) -> Result<Next, StartTlsError> {
        match (self.stage, &code) {
            (Stage::Greeting, b"220") => {
                answer.extend_from_slice(format!("EHLO {}\r\n", self.host).as_bytes());
                self.stage = Stage::Hello;
            }
            (Stage::Hello, b"250") if self.reply.offers_tls => {
                answer.extend_from_slice(b"STARTTLS\r\n");
                self.stage = Stage::StartTls;
            }
            (Stage::Hello, b"250") => {
                answer.extend_from_slice(b"QUIT\r\n");
                return Err(StartTlsError::Refused("it does not offer STARTTLS".to_owned()));
            }
            (Stage::StartTls, b"220") => return Ok(Next::Tls),
            _ => {
                answer.extend_from_slice(b"QUIT\r\n");
                return Err(StartTlsError::refused(last));
            }
        }
        self.reply = Reply::default();
        Ok(Next::Receive)
    }
}

impl Dialogue for Client {
    fn begin(&mut self, _: &mut Vec<u8>) {}

    fn receive(&mut self, received: &[u8], answer: &mut Vec<u8>) -> Result<Next, StartTlsError> {
        let mut rest = received;
        while let Some(line) = self.line.take(&mut rest, LINE_BYTES_MAX)? {
            let ended = self.reply.read(&line)?;
            if self.stage == Stage::Greeting {
                self.greeting.extend_from_slice(&line);
                self.greeting.extend_from_slice(b"\r\n");
            }
            if let Some(code) = ended {
                // It is our turn, whatever it was said.
                if !rest.is_empty() {
                    return Err(StartTlsError::SaidTooMuch);
                }
                return self.replied(code, &line, answer);
            }
        }
        Ok(Next::Receive)
    }
}

impl Greeting {
    /// Takes what the server said. Says whether that was all of its greeting: it waits for a command now.
    ///
    /// # Errors
    /// [`StartTlsError::Refused`] if it greets with something else than 220, and what else its lines may be.
    pub fn receive(&mut self, received: &[u8]) -> Result<bool, StartTlsError> {
        let mut rest = received;
        while let Some(line) = self.line.take(&mut rest, LINE_BYTES_MAX)? {
            match self.reply.read(&line)? {
                None => {}
                Some(_) if !rest.is_empty() => return Err(StartTlsError::SaidTooMuch),
                Some(code) if code == *b"220" => return Ok(true),
                Some(_) => return Err(StartTlsError::refused(&line)),
            }
        }
        Ok(false)
    }
}

/// A reply of one line or more (RFC 5321 §4.2).
#[derive(Clone, Debug, Default)]
struct Reply {
    code: Option<Code>,
    lines: usize,
    offers_tls: bool,
}

type Code = [u8; 3];

impl Reply {
    /// Reads one line. The code, if it is the last one.
    fn read(&mut self, line: &[u8]) -> Result<Option<Code>, StartTlsError> {
        let (code, text) = line.split_first_chunk::<3>().ok_or(StartTlsError::Malformed)?;
        let is_number = code.iter().all(u8::is_ascii_digit);
        if !is_number || self.code.is_some_and(|first| first != *code) {
            return Err(StartTlsError::Malformed);
        }
        self.code = Some(*code);
        self.lines += 1;
        if self.lines > REPLY_LINES_MAX {
            return Err(StartTlsError::TooMany);
        }
        let (is_last, text) = match text {
            [] => (true, text),
            [b' ', text @ ..] => (true, text),
            [b'-', text @ ..] => (false, text),
            _ => return Err(StartTlsError::Malformed),
        };
        // The first line of an answer to EHLO has the server's name.
        if self.lines > 1 && text.trim_ascii().eq_ignore_ascii_case(b"STARTTLS") {
            self.offers_tls = true;
        }
        Ok(is_last.then_some(*code))
    }
}

/// The longest line of a reply, with its end (RFC 5321 §4.5.3.1.5).
const LINE_BYTES_MAX: usize = 512;

#[cfg(test)]
mod tests;

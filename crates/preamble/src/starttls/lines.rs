//! STARTTLS in IMAP (RFC 9051 §6.2.1), POP3 (RFC 2595 §4) and NNTP (RFC 4642), as the server and as the client, and what SMTP has in
//! common with them.
//!
//! As in SMTP, the server's greeting is in the dialogue and not behind it.

use super::{Dialogue, Next, StartTlsError};

/// Which of them is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineProtocol {
    /// IMAP.
    Imap,
    /// POP3.
    Pop3,
    /// NNTP.
    Nntp,
}

/// We are the server, until the client asks for TLS.
#[derive(Clone, Debug)]
pub struct LineServer {
    protocol: LineProtocol,
    commands: Commands,
}

/// We are the client, until the server agrees to begin TLS.
#[derive(Clone, Debug)]
pub struct LineClient {
    protocol: LineProtocol,
    line: Line,
    lines: usize,
    greeting: Vec<u8>,
}

impl LineProtocol {
    /// True if this is how a server greets that may be asked for TLS. One of IMAP that greets with PREAUTH may not.
    fn is_greeting(self, line: &[u8]) -> bool {
        let words: &[&str] = match self {
            Self::Imap => &["* OK"],
            Self::Pop3 => &["+OK"],
            Self::Nntp => &["200", "201"],
        };
        words.iter().any(|word| begins(line, word))
    }

    fn malformed(self) -> &'static str {
        match self {
            Self::Imap => "* BAD this is no command\r\n",
            Self::Pop3 => "-ERR this is no command\r\n",
            Self::Nntp => "500 this is no command\r\n",
        }
    }

    fn too_many(self) -> &'static str {
        match self {
            Self::Imap => "* BYE too many commands\r\n",
            Self::Pop3 => "-ERR too many commands\r\n",
            Self::Nntp => "400 too many commands\r\n",
        }
    }
}

impl LineServer {
    /// A server of this protocol.
    #[must_use]
    pub fn new(protocol: LineProtocol) -> Self {
        Self { protocol, commands: Commands::default() }
    }

    fn command(protocol: LineProtocol, line: &[u8]) -> (String, Next) {
        let (first, rest) = split(line);
        let (tag, verb) = match protocol {
            LineProtocol::Imap => (first, rest),
            LineProtocol::Pop3 | LineProtocol::Nntp => (b"".as_slice(), line),
        };
        // A tag that is said back is printable, and no `*` or `+`, which begin what is no answer.
        let is_tag = !tag.is_empty()
            && tag.iter().all(|byte| byte.is_ascii_graphic() && !b"*+%(){\"\\".contains(byte));
        if protocol == LineProtocol::Imap && !is_tag {
            return (protocol.malformed().to_owned(), Next::Receive);
        }
        let tag = String::from_utf8_lossy(tag);
        let verb = verb.trim_ascii().to_ascii_uppercase();
        let (answer, next) = match (protocol, verb.as_slice()) {
            (LineProtocol::Imap, b"STARTTLS") => ("TAG OK begin TLS\r\n", Next::Tls),
            (LineProtocol::Imap, b"CAPABILITY") => {
                ("* CAPABILITY IMAP4rev1 STARTTLS LOGINDISABLED\r\nTAG OK done\r\n", Next::Receive)
            }
            (LineProtocol::Imap, b"NOOP") => ("TAG OK done\r\n", Next::Receive),
            (LineProtocol::Imap, b"LOGOUT") => ("* BYE\r\nTAG OK done\r\n", Next::End),
            (LineProtocol::Imap, _) => {
                ("TAG NO [PRIVACYREQUIRED] say STARTTLS first\r\n", Next::Receive)
            }
            (LineProtocol::Pop3, b"STLS") => ("+OK begin TLS\r\n", Next::Tls),
            (LineProtocol::Pop3, b"CAPA") => ("+OK\r\nSTLS\r\n.\r\n", Next::Receive),
            (LineProtocol::Pop3, b"QUIT") => ("+OK\r\n", Next::End),
            (LineProtocol::Pop3, _) => ("-ERR say STLS first\r\n", Next::Receive),
            (LineProtocol::Nntp, b"STARTTLS") => ("382 begin TLS\r\n", Next::Tls),
            (LineProtocol::Nntp, b"CAPABILITIES") => {
                ("101 capabilities\r\nVERSION 2\r\nSTARTTLS\r\n.\r\n", Next::Receive)
            }
            (LineProtocol::Nntp, b"QUIT") => ("205 goodbye\r\n", Next::End),
            (LineProtocol::Nntp, _) => ("483 say STARTTLS first\r\n", Next::Receive),
        };
        (answer.replace("TAG", &tag), next)
    }
}

impl Dialogue for LineServer {
    fn begin(&mut self, answer: &mut Vec<u8>) {
        answer.extend_from_slice(match self.protocol {
            LineProtocol::Imap => b"* OK [CAPABILITY IMAP4rev1 STARTTLS LOGINDISABLED] ready\r\n",
            LineProtocol::Pop3 => b"+OK ready\r\n",
            LineProtocol::Nntp => b"200 ready\r\n",
        });
    }

    fn receive(&mut self, received: &[u8], answer: &mut Vec<u8>) -> Result<Next, StartTlsError> {
        let protocol = self.protocol;
        let refusals = Refusals {
            too_many: protocol.too_many(),
            malformed: protocol.malformed(),
            behind: protocol.malformed(),
        };
        self.commands.receive(received, answer, &refusals, |line| Self::command(protocol, line))
    }
}

impl LineClient {
    /// A client of this protocol.
    #[must_use]
    pub fn new(protocol: LineProtocol) -> Self {
        Self { protocol, line: Line::default(), lines: 0, greeting: Vec::new() }
    }

    /// Returns the greeting for a client that has not been greeted, line end included. That of an IMAP server says what it
    /// could before TLS, so it is not passed on.
    #[must_use]
    pub fn greeting(&self) -> &[u8] {
        match (self.protocol, self.greeting.is_empty()) {
            (LineProtocol::Imap, false) => b"* OK IMAP4rev1 ready\r\n",
            _ => &self.greeting,
        }
    }

    /// Takes a greeting, whose last byte is to be the last that was received. True once it is there.
    ///
    /// # Errors
    /// [`StartTlsError::Refused`] if the server greets with something else, and what else its line may be.
    pub fn receive_greeting(&mut self, received: &[u8]) -> Result<bool, StartTlsError> {
        let mut rest = received;
        let Some(line) = self.line.take(&mut rest, REPLY_BYTES_MAX)? else { return Ok(false) };
        if !self.protocol.is_greeting(&line) {
            return Err(StartTlsError::refused(&line));
        }
        if !rest.is_empty() {
            return Err(StartTlsError::SaidTooMuch);
        }
        self.greeting = [line.as_slice(), b"\r\n"].concat();
        Ok(true)
    }
}

impl Dialogue for LineClient {
    fn begin(&mut self, _: &mut Vec<u8>) {}

    fn receive(&mut self, received: &[u8], answer: &mut Vec<u8>) -> Result<Next, StartTlsError> {
        let (ask, agreed, leave) = match self.protocol {
            LineProtocol::Imap => ("k STARTTLS\r\n", "k OK", "k LOGOUT\r\n"),
            LineProtocol::Pop3 => ("STLS\r\n", "+OK", "QUIT\r\n"),
            LineProtocol::Nntp => ("STARTTLS\r\n", "382", "QUIT\r\n"),
        };
        let mut refused = |error| {
            answer.extend_from_slice(leave.as_bytes());
            Err(error)
        };
        if self.greeting.is_empty() {
            return match self.receive_greeting(received) {
                Ok(false) => Ok(Next::Receive),
                Ok(true) => {
                    answer.extend_from_slice(ask.as_bytes());
                    Ok(Next::Receive)
                }
                Err(error) => refused(error),
            };
        }
        let mut rest = received;
        while let Some(line) = self.line.take(&mut rest, REPLY_BYTES_MAX)? {
            self.lines += 1;
            match begins(&line, agreed) {
                true if !rest.is_empty() => return Err(StartTlsError::SaidTooMuch),
                true => return Ok(Next::Tls),
                false if self.lines > REPLY_LINES_MAX => return Err(StartTlsError::TooMany),
                // A server of IMAP says it by the way.
                false if self.protocol == LineProtocol::Imap && begins(&line, "*") => {}
                false => return refused(StartTlsError::refused(&line)),
            }
        }
        Ok(Next::Receive)
    }
}

/// True if a line begins with these words, in whatever letters.
fn begins(line: &[u8], words: &str) -> bool {
    let (front, rest) = line.split_at_checked(words.len()).unwrap_or_default();
    front.eq_ignore_ascii_case(words.as_bytes()) && matches!(rest, [] | [b' ', ..])
}

/// The first word of a line, and what is behind it.
pub(super) fn split(line: &[u8]) -> (&[u8], &[u8]) {
    let end = line.iter().position(|byte| *byte == b' ').unwrap_or(line.len());
    line.split_at_checked(end).unwrap_or((line, b""))
}

/// The commands of a client, one a line.
#[derive(Clone, Debug, Default)]
pub(super) struct Commands {
    pub(super) line: Line,
    count: usize,
}

/// The words for a client before its connection ends.
pub(super) struct Refusals {
    pub(super) too_many: &'static str,
    pub(super) malformed: &'static str,
    /// Something stands behind the command that begins TLS.
    pub(super) behind: &'static str,
}

impl Commands {
    /// Answers what was received, as far as it is whole commands.
    pub(super) fn receive(
        &mut self,
        received: &[u8],
        answer: &mut Vec<u8>,
        refusals: &Refusals,
        command: impl Fn(&[u8]) -> (String, Next),
    ) -> Result<Next, StartTlsError> {
        let mut rest = received;
        loop {
            let line = match self.line.take(&mut rest, COMMAND_BYTES_MAX) {
                Ok(Some(line)) => line,
                Ok(None) => return Ok(Next::Receive),
                Err(error) => {
                    answer.extend_from_slice(refusals.malformed.as_bytes());
                    return Err(error);
                }
            };
            self.count += 1;
            if self.count > COMMANDS_MAX {
                answer.extend_from_slice(refusals.too_many.as_bytes());
                return Err(StartTlsError::TooMany);
            }
            match command(&line) {
                (_, Next::Tls) if !rest.is_empty() => {
                    answer.extend_from_slice(refusals.behind.as_bytes());
                    return Err(StartTlsError::SaidTooMuch);
                }
                (said, next) => {
                    answer.extend_from_slice(said.as_bytes());
                    if next != Next::Receive {
                        return Ok(next);
                    }
                }
            }
        }
    }
}

/// A line that has not ended yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Line(pub(super) Vec<u8>);

impl Line {
    /// Takes a line off the front, without its CR LF; or all there is, if no line ends in it.
    pub(super) fn take(
        &mut self,
        rest: &mut &[u8],
        bytes_max: usize,
    ) -> Result<Option<Vec<u8>>, StartTlsError> {
        let end = rest.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
        let (now, later) = rest.split_at_checked(end.unwrap_or(rest.len())).unwrap_or_default();
        if self.0.len() + now.len() > bytes_max {
            return Err(StartTlsError::TooLong);
        }
        self.0.extend_from_slice(now);
        *rest = later;
        if end.is_none() {
            return Ok(None);
        }
        let mut line = std::mem::take(&mut self.0);
        // A line feed alone ends no line (RFC 5321 §2.3.8): two readers of it would see different commands.
        if !line.ends_with(b"\r\n") {
            return Err(StartTlsError::Malformed);
        }
        line.truncate(line.len() - 2);
        match line.contains(&b'\r') {
            true => Err(StartTlsError::Malformed),
            false => Ok(Some(line)),
        }
    }
}

/// The longest command with its end (RFC 5321 §4.5.3.1.4; before TLS none of the others needs more).
pub(super) const COMMAND_BYTES_MAX: usize = 512;

/// Commands before TLS. A client needs two.
pub(super) const COMMANDS_MAX: usize = 20;

/// The longest line of a server: greetings of IMAP name all that it can.
const REPLY_BYTES_MAX: usize = 4_096;

/// Lines of one reply. Servers have a dozen extensions.
pub(super) const REPLY_LINES_MAX: usize = 64;

#[cfg(test)]
mod tests;

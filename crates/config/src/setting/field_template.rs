//! Fields that servers are sent: their values, with words that each request fills in (`{client_ip}`), and which names are not the
//! operator's.

use super::rules::{Guess, TextRule, Wrong, header_value, token};
use super::template::Read;
use crate::nearest::closest;
use crate::word::{Word, words};

words! {
    /// A word in braces that a request fills in.
    pub enum RequestWord {
        /// The address of the client.
        ClientIp = "client_ip",
        /// The port of the client; nothing where a proxy speaks for the client and says none.
        ClientPort = "client_port",
        /// `https`, or `http` where a trusted proxy says so.
        Scheme = "scheme",
        /// The host that is asked for, without its port.
        Host = "host",
        /// The port that is asked for, or else the usual one of the scheme.
        Port = "port",
        /// Path and query as the server gets them.
        Uri = "uri",
        /// The subject of the client's certificate (RFC 4514), in ASCII.
        ClientSubject = "client_subject",
        /// The certificate of the client (RFC 9440).
        ClientCert = "client_cert",
        /// The certificates that the client showed beside its own (RFC 9440).
        ClientCertChain = "client_cert_chain",
    }
}

impl RequestWord {
    /// True if all requests for the same URL have the same value.
    pub fn is_of_url(self) -> bool {
        matches!(self, Self::Scheme | Self::Host | Self::Uri)
    }

    /// True if it says something of the certificate that a client showed.
    pub fn is_of_certificate(self) -> bool {
        matches!(self, Self::ClientSubject | Self::ClientCert | Self::ClientCertChain)
    }
}

/// The value of a field, with words that a request fills in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldTemplate {
    parts: Vec<FieldPart>,
}

/// A part of a [`FieldTemplate`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldPart {
    /// Itself.
    Text(String),
    /// What the request says.
    Word(RequestWord),
}

impl FieldTemplate {
    /// Its parts in order.
    pub fn parts(&self) -> &[FieldPart] {
        &self.parts
    }

    /// The words in it.
    pub fn words(&self) -> impl Iterator<Item = RequestWord> {
        self.parts.iter().filter_map(|part| match part {
            FieldPart::Text(_) => None,
            FieldPart::Word(word) => Some(*word),
        })
    }

    /// Takes a text as a file has it.
    ///
    /// # Errors
    /// What is wrong with the text, for a person.
    pub fn parse(text: &str) -> Result<Self, String> {
        read(text).map_err(|wrong| wrong.why)
    }
}

fn read(text: &str) -> Result<FieldTemplate, Wrong> {
    header_value(text)?;
    let (mut parts, mut plain, mut rest) = (Vec::new(), String::new(), text);
    while let Some((before, behind)) = rest.split_once('{') {
        plain.push_str(before);
        if let Some(behind) = behind.strip_prefix('{') {
            plain.push('{');
            rest = behind;
            continue;
        }
        let Some((name, after)) = behind.split_once('}') else {
            return Err(Wrong { why: "a brace is not closed".to_owned(), help: brace_itself() });
        };
        let word = name.parse::<RequestWord>().map_err(|_| unknown(text, name))?;
        if !plain.is_empty() {
            parts.push(FieldPart::Text(std::mem::take(&mut plain)));
        }
        parts.push(FieldPart::Word(word));
        rest = after;
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        parts.push(FieldPart::Text(plain));
    }
    Ok(FieldTemplate { parts })
}

fn unknown(text: &str, name: &str) -> Wrong {
    let known: Vec<&str> = RequestWord::ALL.iter().map(|word| word.word()).collect();
    let help = match closest(name, &known) {
        Some(closest) => {
            let [written, meant] = [name, closest].map(|name| format!("{{{name}}}"));
            Guess::Text(text.replacen(&written, &meant, 1))
        }
        None => brace_itself(),
    };
    let known = known.join("}, {");
    Wrong { why: format!("{{{name}}} is none of {{{known}}}"), help }
}

fn brace_itself() -> Guess {
    Guess::Advice("write `{{` for a brace itself".to_owned())
}

/// The value of a field that servers are sent.
pub(super) static FIELD_TEMPLATE: TextRule = TextRule {
    what: "a header value",
    example: "{client_ip}",
    read: |text| read(text).map(|_| text.to_owned()),
};

/// The value of a text that follows [`FIELD_TEMPLATE`].
pub(super) fn field_template(text: &str) -> Option<FieldTemplate> {
    read(text).ok()
}

/// A text with words that each request fills in.
pub(crate) fn field_words() -> Read<FieldTemplate> {
    Read { rule: &FIELD_TEMPLATE, read: field_template, none: FieldTemplate::default }
}

/// The name of a header by which proxies name clients.
pub(crate) static CLIENT_IP_HEADER: TextRule = TextRule {
    what: "the name of a header that has an address",
    example: "X-Real-IP",
    read: client_ip_header,
};

fn client_ip_header(text: &str) -> Result<String, Wrong> {
    let name = token(text)?;
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Err(Wrong::new("it has only letters, digits and `-`"));
    }
    let lower = name.to_ascii_lowercase();
    if lower == "host" || is_own_request_header(&lower) {
        return Err(Wrong::new("that one is about the message or the connection"));
    }
    Ok(name)
}

/// True if no field of this name, in lower case, may be said of requests, because it is about one message or one connection.
pub fn is_own_request_header(name: &str) -> bool {
    OURS.contains(&name) || name.starts_with("proxy-")
}

/// Fields of requests that no operator writes, besides `host` and `proxy-…`.
const OURS: &[&str] = &[
    "connection",
    "content-length",
    "expect",
    "http2-settings",
    "keep-alive",
    "proxy",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

#[cfg(test)]
mod tests;

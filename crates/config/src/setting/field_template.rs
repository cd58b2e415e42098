//! Texts with words that each request fills in (`{client_ip}`), as fields have them, and which names of fields are not the operator's.

use std::fmt;

use super::regex::Expression;
use super::rules::{self, Guess, TextRule, Wrong, header_value, token};
use super::text::Read;
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
        /// Path and query as the client asked for them, whatever rewrites and error pages have made of them.
        AskedUri = "asked_uri",
        /// The path, decoded.
        Path = "path",
        /// The path that the client asked for, decoded, whatever rewrites and error pages have made of it.
        AskedPath = "asked_path",
        /// The part of the target behind the `?`, as it was sent.
        Query = "query",
        /// The method.
        Method = "method",
        /// `HTTP/1.0`, `HTTP/1.1` or `HTTP/2.0`, as the client speaks it.
        Protocol = "protocol",
        /// The name of the request, as the log has it.
        RequestId = "request_id",
        /// The subject of the client's certificate (RFC 4514), in ASCII.
        ClientSubject = "client_subject",
        /// The certificate of the client (RFC 9440).
        ClientCert = "client_cert",
        /// The certificates that the client showed beside its own (RFC 9440).
        ClientCertChain = "client_cert_chain",
        /// In `headers`, and in maps for them: the status of the response. Elsewhere nothing.
        Status = "status",
    }
}

words! {
    /// A word in braces that is followed by a colon and a name: `{header:origin}`.
    pub enum NamedWord {
        /// The request header of this name. Several are one, with commas between.
        Header = "header",
        /// The first cookie of this name.
        Cookie = "cookie",
        /// The first query argument of this name, as it was sent.
        Query = "query",
        /// The value of the `[[map]]` of this name.
        Map = "map",
        /// The text of the group of this name in the regular expression by which the site was found.
        Name = "name",
        /// In `headers`, and in maps for them: the first header of this name that the response has by itself. Elsewhere nothing.
        Answer = "answer",
        /// In `headers` and in redirects of `error_pages`: the first header of this name in the answer of the service of
        /// `forward_auth`. Elsewhere nothing, and where that answer is remembered from before.
        Auth = "auth",
    }
}

impl RequestWord {
    /// True if all requests for the same URL have the same value, among those that a store answers.
    pub fn is_of_url(self) -> bool {
        matches!(
            self,
            Self::Scheme
                | Self::Host
                | Self::Uri
                | Self::AskedUri
                | Self::Path
                | Self::AskedPath
                | Self::Query
                | Self::Method
                | Self::Status
        )
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
    /// A word on the request.
    Word(RequestWord),
    /// A word with this name.
    Named(NamedWord, String),
    /// In a `[[map]]`: what the group of this number or name stands for.
    Group(String),
}

impl FieldPart {
    /// True if all requests for the same URL have the same value. A map counts as one that has: it has words of its own.
    pub fn is_of_url(&self) -> bool {
        match self {
            Self::Text(_) | Self::Group(_) => true,
            Self::Word(word) => word.is_of_url(),
            Self::Named(word, _) => {
                !matches!(word, NamedWord::Header | NamedWord::Cookie | NamedWord::Auth)
            }
        }
    }
}

/// A word as it is written.
impl fmt::Display for FieldPart {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => formatter.write_str(&text.replace('{', "{{")),
            Self::Word(word) => write!(formatter, "{{{word}}}"),
            Self::Named(word, name) => write!(formatter, "{{{word}:{name}}}"),
            Self::Group(name) => write!(formatter, "{{{name}}}"),
        }
    }
}

impl FieldTemplate {
    /// Its parts in order.
    pub fn parts(&self) -> &[FieldPart] {
        &self.parts
    }

    /// The words in it that need no name.
    pub fn words(&self) -> impl Iterator<Item = RequestWord> {
        self.parts.iter().filter_map(|part| match part {
            FieldPart::Word(word) => Some(*word),
            _ => None,
        })
    }

    /// The names of the maps in it.
    pub fn maps(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            FieldPart::Named(NamedWord::Map, name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// The text that it is for all requests; `None` if they fill something in.
    pub fn plain(&self) -> Option<&str> {
        match &*self.parts {
            [] => Some(""),
            [FieldPart::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// True if requests fill something in.
    pub fn has_words(&self) -> bool {
        self.plain().is_none()
    }

    /// The first word whose value two requests for the same URL may differ in, whatever maps say.
    pub fn not_of_url(&self) -> Option<&FieldPart> {
        self.parts.iter().find(|part| !part.is_of_url())
    }

    /// The same for a text that an expression chooses: what has the name of one of its groups is that group.
    ///
    /// # Errors
    /// A group that it has not.
    pub(crate) fn with_groups(mut self, expression: &Expression) -> Result<Self, String> {
        for part in &mut self.parts {
            match part {
                FieldPart::Word(word) if expression.has_group(word.word()) => {
                    *part = FieldPart::Group(word.word().to_owned());
                }
                FieldPart::Group(name) if expression.group_number(name).is_none() => {
                    return Err(std::mem::take(name));
                }
                _ => {}
            }
        }
        Ok(self)
    }

    /// The same for a text that no expression chooses.
    ///
    /// # Errors
    /// A group that it names.
    pub(crate) fn without_groups(self) -> Result<Self, String> {
        let mut parts = self.parts.iter();
        match parts
            .find_map(|part| if let FieldPart::Group(name) = part { Some(name) } else { None })
        {
            Some(name) => Err(name.clone()),
            None => Ok(self),
        }
    }

    /// Takes a text as a file has it.
    ///
    /// # Errors
    /// The fault of the text, for a person.
    pub fn parse(text: &str) -> Result<Self, String> {
        read(text, Groups::None).map_err(|wrong| wrong.why)
    }
}

/// A text without words.
impl From<&str> for FieldTemplate {
    fn from(text: &str) -> Self {
        let part = FieldPart::Text(text.to_owned());
        Self { parts: (!text.is_empty()).then_some(part).into_iter().collect() }
    }
}

/// The contents of braces other than words.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Groups {
    None,
    /// Numbers and names of groups.
    Any,
}

fn read(text: &str, groups: Groups) -> Result<FieldTemplate, Wrong> {
    header_value(text)?;
    read_parts(text, groups)
}

fn read_parts(text: &str, groups: Groups) -> Result<FieldTemplate, Wrong> {
    let mut parts = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
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
        if !plain.is_empty() {
            parts.push(FieldPart::Text(std::mem::take(&mut plain)));
        }
        parts.push(read_word(text, name, groups)?);
        rest = after;
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        parts.push(FieldPart::Text(plain));
    }
    Ok(FieldTemplate { parts })
}

/// Reads the text between two braces.
fn read_word(text: &str, written: &str, groups: Groups) -> Result<FieldPart, Wrong> {
    if let Ok(word) = written.parse::<RequestWord>() {
        return Ok(FieldPart::Word(word));
    }
    if let Some((word, name)) = written.split_once(':')
        && let Ok(word) = word.parse::<NamedWord>()
    {
        let rule = match word {
            NamedWord::Header | NamedWord::Answer | NamedWord::Auth => &rules::FIELD_NAME,
            NamedWord::Cookie => &rules::COOKIE_NAME,
            NamedWord::Query => &rules::ARGUMENT_NAME,
            NamedWord::Map => &rules::BACKEND_NAME,
            NamedWord::Name => &rules::GROUP_NAME,
        };
        return match (rule.read)(name) {
            Ok(name) => Ok(FieldPart::Named(word, name)),
            Err(wrong) => {
                let why = format!("{{{written}}} takes {}: {}", rule.what, wrong.why);
                Err(Wrong { why, help: Guess::None })
            }
        };
    }
    let is_number = !written.is_empty() && written.bytes().all(|byte| byte.is_ascii_digit());
    match groups == Groups::Any && (is_number || (rules::GROUP_NAME.read)(written).is_ok()) {
        true => Ok(FieldPart::Group(written.to_owned())),
        false => Err(unknown(text, written)),
    }
}

fn unknown(text: &str, name: &str) -> Wrong {
    let known: Vec<&str> = RequestWord::ALL.iter().map(|word| word.word()).collect();
    let named: Vec<&str> = NamedWord::ALL.iter().map(|word| word.word()).collect();
    let (own, behind) = name.split_once(':').map_or((name, None), |it| (it.0, Some(it.1)));
    let known_here = if behind.is_some() { &named } else { &known };
    let help = match closest(own, known_here) {
        Some(closest) => {
            let meant = behind.map_or(closest.to_owned(), |name| format!("{closest}:{name}"));
            let [written, meant] = [name, &meant].map(|name| format!("{{{name}}}"));
            Guess::Text(text.replacen(&written, &meant, 1))
        }
        None => brace_itself(),
    };
    let known = known.join("}, {");
    let named = named.join(":…}, {");
    Wrong { why: format!("{{{name}}} is none of {{{known}}}, {{{named}:…}}"), help }
}

fn brace_itself() -> Guess {
    Guess::Advice("write `{{` for a brace itself".to_owned())
}

/// The value of a field that servers are sent.
pub(super) static FIELD_TEMPLATE: TextRule = TextRule {
    what: "a header value",
    example: "{client_ip}",
    read: |text| read(text, Groups::None).map(|_| text.to_owned()),
};

/// The word of a map, where a setting takes nothing else with words.
pub(crate) static MAP_WORD: TextRule =
    TextRule { what: "the word of a map", example: "{map:expires}", ..FIELD_TEMPLATE };

/// The value of a field that clients are sent.
pub(super) static RESPONSE_TEMPLATE: TextRule = TextRule { example: "DENY", ..FIELD_TEMPLATE };

/// The value of a text that follows one of both.
pub(super) fn field_template(text: &str) -> Option<FieldTemplate> {
    read(text, Groups::None).ok()
}

/// The text that a regular expression of a map chooses.
pub(super) static GROUP_TEMPLATE: TextRule = TextRule {
    what: "a text",
    example: "{1}",
    read: |text| read(text, Groups::Any).map(|_| text.to_owned()),
};

/// The value of a text that follows [`GROUP_TEMPLATE`].
pub(super) fn group_template(text: &str) -> Option<FieldTemplate> {
    read(text, Groups::Any).ok()
}

/// The text that clients get in place of what a server says.
static ANSWER_TEMPLATE: TextRule = TextRule {
    what: "a text",
    example: "/app/",
    read: |text| read_answer(text).map(|_| text.to_owned()),
};

/// No client chooses where others are sent, or for whom a cookie is.
fn read_answer(text: &str) -> Result<FieldTemplate, Wrong> {
    let template = read(text, Groups::Any)?;
    let is_taken = |part: &&FieldPart| match part {
        FieldPart::Text(_) | FieldPart::Group(_) => true,
        FieldPart::Word(word) => {
            matches!(word, RequestWord::Scheme | RequestWord::Host | RequestWord::Port)
        }
        FieldPart::Named(word, _) => *word == NamedWord::Name,
    };
    match template.parts.iter().find(|part| !is_taken(part)) {
        Some(part) => {
            Err(Wrong::new(&format!("{part} is none of {{scheme}}, {{host}}, {{port}} and groups")))
        }
        None => Ok(template),
    }
}

/// A text in place of what a server says.
pub(crate) fn answer_words() -> Read<FieldTemplate> {
    let read = |text: &str| read_answer(text).ok();
    Read { rule: &ANSWER_TEMPLATE, read, none: FieldTemplate::default }
}

/// A body with words and groups, as long as one without.
static ANSWER_TEXT: TextRule = TextRule {
    what: "a text of at most 64 KiB",
    example: "{client_ip}\n",
    read: |text| read_parts(&(rules::ANSWER.read)(text)?, Groups::Any).map(|_| text.to_owned()),
};

/// A body with words that each request fills in.
pub(crate) fn answer_text() -> Read<FieldTemplate> {
    let read = |text: &str| read_parts(text, Groups::Any).ok();
    Read { rule: &ANSWER_TEXT, read, none: FieldTemplate::default }
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

//! The values of the words of texts such as `request_headers` in one request: here and nowhere else.
//!
//! Each is made of parts of a head that was parsed. No control character is in it, so it can end no line and begin no field; those who
//! write fields look at that again.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kettle_config::{BackendHost, FieldPart, FieldTemplate, Maps, NamedWord, RequestWord};
use kettle_exchange::request::{Client, FileFacts, Head, Request, Vouched};
use kettle_exchange::response::Response;
use kettle_http::HttpVersion;
use kettle_http::forwarded::Scheme;
use kettle_http::target::{SlashRuns, reference};
use kettle_http::uri::{decode_query_value, percent_encode_path};
use kettle_tls::PeerIdentity;
use kettle_tls::names::Names;

/// The source of the words of a site's requests, besides the request.
#[derive(Clone, Debug, Default)]
pub struct WordSource {
    /// The maps of the configuration.
    pub maps: Arc<Maps>,
    /// The names of the site, if one of them is a regular expression.
    pub names: Option<Arc<Names<usize>>>,
    /// True if clients are asked for certificates; where they are not, none was verified for this site.
    pub asks_certificates: bool,
}

/// A request, as conditions and words see it.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'r> {
    /// Its head.
    pub head: &'r Head,
    /// The client it is for; `None` where it was never answered, so that only its head is known.
    pub client: Option<&'r Client>,
    /// The certificate that the client showed.
    pub certificate: Option<&'r PeerIdentity>,
    /// The facts on files; `None` where none is looked for.
    pub files: Option<&'r FileFacts>,
    /// The name that the client asked for in TLS.
    pub server_name: Option<&'r str>,
    /// The words of a service on the request, if one was asked.
    pub vouched: Option<&'r Vouched>,
}

/// One request, as words see it.
#[derive(Clone, Debug)]
pub(crate) struct Words<'r> {
    /// None where the response is for many.
    pub(crate) head: Option<&'r Head>,
    /// The host that is asked for, with its port where that was said.
    pub(crate) host: Option<Cow<'r, str>>,
    /// Path and query as servers get them.
    pub(crate) reference: Cow<'r, str>,
    /// The path as routes are found by it, where that is at hand.
    pub(crate) path: Option<&'r str>,
    pub(crate) scheme: Scheme,
    /// None where the response is for many.
    pub(crate) client: Option<&'r Client>,
    /// The certificate that the client showed, if its site asks for one.
    pub(crate) certificate: Option<&'r PeerIdentity>,
    /// The response, where its fields are what is filled in.
    pub(crate) answer: Option<&'r Response>,
    /// The words of a service on the request, where that is for its client.
    pub(crate) vouched: Option<&'r Vouched>,
    pub(crate) source: &'r WordSource,
}

impl<'r> Asked<'r> {
    /// A request that is to be answered.
    pub fn of(request: &'r Request<'_>) -> Self {
        let certificate = request.certificate();
        let files = Some(&request.files);
        let server_name = request.presented().server_name;
        Self {
            client: Some(request.client),
            certificate,
            files,
            server_name,
            vouched: request.vouched.as_deref(),
            ..Self::by_head(&request.head)
        }
    }

    /// A request of which only the head is known.
    pub fn by_head(head: &'r Head) -> Self {
        Self {
            head,
            client: None,
            certificate: None,
            files: None,
            server_name: None,
            vouched: None,
        }
    }

    /// The host that is asked for, as [`asked_host`] has it.
    pub(crate) fn host(self) -> Option<Cow<'r, str>> {
        asked_host(self.head, self.server_name)
    }

    /// Returns the values of words in it, by what the client asked for.
    pub(crate) fn words(self, source: &'r WordSource) -> Words<'r> {
        let Self { head, client, certificate, vouched, .. } = self;
        let port = head.authority().and_then(|it| it.port);
        let host = self.host().map(|host| match port {
            Some(port) => format!("{host}:{port}").into(),
            None => host,
        });
        let target = head.target().ok();
        let as_sent = |target| reference(target, head.raw_target(), SlashRuns::AS_SENT);
        Words {
            head: Some(head),
            host,
            reference: target.and_then(as_sent).unwrap_or_default(),
            path: target.map(|target| target.path),
            scheme: client.map_or(Scheme::Https, |client| client.scheme),
            client,
            certificate: certificate.filter(|_| source.asks_certificates),
            answer: None,
            vouched,
            source,
        }
    }
}

/// The host that is asked for, without its port, as it is compared and as servers are told it: in lower case, without a last dot, and
/// that of TLS where the request names none.
pub(crate) fn asked_host<'r>(head: &'r Head, server_name: Option<&'r str>) -> Option<Cow<'r, str>> {
    let host = head.authority().map(|it| it.host).or(server_name)?;
    let host = host.strip_suffix('.').unwrap_or(host);
    // Most are sent so.
    Some(match host.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => host.to_ascii_lowercase().into(),
        false => host.into(),
    })
}

/// The value of a header; empty if there is none. Several of one name are one, with commas (RFC 9110 §5.3).
pub(crate) fn header<'r>(head: &'r Head, name: &str) -> Cow<'r, [u8]> {
    let mut values = head.header_values(name);
    let first = values.next().unwrap_or_default();
    match values.next() {
        None => Cow::Borrowed(first),
        Some(_) => {
            let all: Vec<&[u8]> = head.header_values(name).collect();
            Cow::Owned(all.join(&b", "[..]))
        }
    }
}

/// The value of the first cookie of this name (RFC 6265 §4.2.1).
pub(crate) fn cookie<'r>(head: &'r Head, name: &str) -> Option<&'r [u8]> {
    let lines = head.header_values("cookie");
    let mut pairs = lines.flat_map(|line| line.split(|byte| *byte == b';'));
    pairs.find_map(|pair| value_of(pair.trim_ascii_start(), name).map(<[u8]>::trim_ascii_end))
}

/// The value of the first argument of this name in a query, as it was sent.
pub(crate) fn argument<'q>(query: &'q str, name: &str) -> Option<&'q [u8]> {
    query.as_bytes().split(|byte| *byte == b'&').find_map(|pair| value_of(pair, name))
}

fn value_of<'p>(pair: &'p [u8], name: &str) -> Option<&'p [u8]> {
    pair.strip_prefix(name.as_bytes())?.strip_prefix(b"=")
}

/// The parts of a template one behind the other, each as `say` has it.
fn filled<'p>(
    template: &'p FieldTemplate,
    say: impl Fn(&'p FieldPart) -> Cow<'p, [u8]>,
) -> Vec<u8> {
    let mut text = Vec::new();
    template.parts().iter().for_each(|part| text.extend_from_slice(&say(part)));
    text
}

/// A version as CGI has it.
pub(crate) fn protocol(version: HttpVersion) -> &'static str {
    match version {
        HttpVersion::Http10 => "HTTP/1.0",
        HttpVersion::Http11 => "HTTP/1.1",
        HttpVersion::Http2 => "HTTP/2.0",
    }
}

/// A byte of a URL; encoded, if it is none that a URL has.
fn as_sent(byte: u8) -> Cow<'static, str> {
    match byte.is_ascii_graphic() && !b"\"<>".contains(&byte) {
        true => char::from(byte).to_string().into(),
        false => format!("%{byte:02X}").into(),
    }
}

fn bytes(text: Cow<'_, str>) -> Cow<'_, [u8]> {
    match text {
        Cow::Borrowed(text) => text.as_bytes().into(),
        Cow::Owned(text) => text.into_bytes().into(),
    }
}

impl Words<'_> {
    /// The value of a field; `None` if its words leave it empty.
    pub(crate) fn fill(&self, template: &FieldTemplate) -> Option<Vec<u8>> {
        let value = self.text_with(template, |_| &[]);
        let is_empty = value.trim_ascii().is_empty() && template.has_words();
        (!is_empty).then_some(value)
    }

    /// Returns the text of a template where the groups of an expression stand for this.
    pub(crate) fn text_with<'g>(
        &self,
        template: &FieldTemplate,
        group: impl Fn(&str) -> &'g [u8],
    ) -> Vec<u8> {
        filled(template, |part| match part {
            FieldPart::Text(own) => own.as_bytes().into(),
            FieldPart::Word(word) => bytes(self.word(*word)),
            FieldPart::Named(word, name) => self.named(*word, name),
            FieldPart::Group(name) => group(name).into(),
        })
    }

    /// Returns the text of a template, if that is no longer than a map's text may be.
    pub(crate) fn bounded_text_with<'g>(
        &self,
        template: &FieldTemplate,
        group: impl Fn(&str) -> &'g [u8],
    ) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        for part in template.parts() {
            let piece: Cow<'_, [u8]> = match part {
                FieldPart::Text(own) => own.as_bytes().into(),
                FieldPart::Word(word) => bytes(self.word(*word)),
                FieldPart::Named(word, name) => self.named(*word, name),
                FieldPart::Group(name) => group(name).into(),
            };
            if text.len() + piece.len() > MAP_BYTES_MAX {
                return None;
            }
            text.extend_from_slice(&piece);
        }
        Some(text)
    }

    /// Returns the text of a template as a query: what clients sent decoded, or not as a part of one, begins no other argument.
    pub(crate) fn query_with<'g>(
        &self,
        template: &FieldTemplate,
        group: impl Fn(&str) -> &'g [u8],
    ) -> Vec<u8> {
        filled(template, |part| match part {
            FieldPart::Word(RequestWord::Query) => self.query().as_bytes().into(),
            FieldPart::Named(word @ NamedWord::Query, name) => self.named(*word, name),
            FieldPart::Group(name) => percent_encode_path(group(name)).into_bytes().into(),
            _ => self.in_url(part).0.into_bytes().into(),
        })
    }

    /// The host that was asked for, without its port; empty if none was.
    pub(crate) fn host_name(&self) -> &str {
        self.host.as_deref().map_or("", |host| split_port(host).0)
    }

    /// A word as a URL has it: encoded, so that it can be no scheme and no host, but for what is the operator's own text. True if it is
    /// that.
    pub(crate) fn in_url(&self, part: &FieldPart) -> (String, bool) {
        match part {
            FieldPart::Text(text) => (text.clone(), true),
            FieldPart::Word(word @ (RequestWord::Scheme | RequestWord::Port)) => {
                (self.word(*word).into_owned(), true)
            }
            FieldPart::Word(word) => (percent_encode_path(self.word(*word).as_bytes()), false),
            FieldPart::Named(NamedWord::Map, name) => {
                if let Some(own) = self.own_text(name) {
                    return (own, true);
                }
                (percent_encode_path(self.map(name)), false)
            }
            FieldPart::Named(word, name) => (percent_encode_path(self.named(*word, name)), false),
            FieldPart::Group(_) => (String::new(), true),
        }
    }

    /// A word as it is; nothing where that is no text.
    pub(crate) fn said(&self, part: &FieldPart) -> String {
        let text = match part {
            FieldPart::Word(word) => return self.word(*word).into_owned(),
            FieldPart::Named(word, name) => self.named(*word, name),
            FieldPart::Text(_) | FieldPart::Group(_) => return String::new(),
        };
        String::from_utf8(text.into_owned()).unwrap_or_default()
    }

    /// A word in a redirect: what was sent or said as a part of a URL already stays as it is.
    pub(crate) fn in_location(&self, part: &FieldPart) -> (String, bool) {
        let text = match part {
            FieldPart::Word(word @ (RequestWord::Query | RequestWord::AskedUri)) => {
                bytes(self.word(*word))
            }
            FieldPart::Named(word @ NamedWord::Auth, name) => self.named(*word, name),
            _ => return self.in_url(part),
        };
        (text.iter().map(|byte| as_sent(*byte)).collect(), true)
    }

    /// Returns the text of a group of the expression by which the site has the host's name; nothing if it has it otherwise.
    fn of_site_name(&self, group: &str) -> String {
        let captures = self.source.names.as_ref().and_then(|it| it.captures(self.host_name()));
        captures.and_then(|it| it.get(group).map(str::to_owned)).unwrap_or_default()
    }

    /// Returns the value of a map, if nothing of it was filled in.
    pub(crate) fn own_text(&self, name: &str) -> Option<String> {
        let map = self.source.maps.find(name)?;
        map.find(&bounded(self.text_with(&map.of, |_| &[]))).text.plain().map(str::to_owned)
    }

    /// Returns the value of a map for the request. A valid configuration has no circle of maps, and bounds how many one asks.
    fn map(&self, name: &str) -> Vec<u8> {
        let Some(map) = self.source.maps.find(name) else { return Vec::new() };
        let of = bounded(self.text_with(&map.of, |_| &[]));
        let chosen = map.find(&of);
        bounded(self.text_with(chosen.text, |name| chosen.group(name)))
    }

    fn named(&self, word: NamedWord, name: &str) -> Cow<'_, [u8]> {
        match word {
            NamedWord::Header => self.head.map(|head| header(head, name)).unwrap_or_default(),
            NamedWord::Cookie => {
                self.head.and_then(|head| cookie(head, name)).unwrap_or_default().into()
            }
            NamedWord::Query => argument(self.query(), name).unwrap_or_default().into(),
            NamedWord::Map => self.map(name).into(),
            NamedWord::Name => self.of_site_name(name).into_bytes().into(),
            NamedWord::Answer => {
                let name = name.to_ascii_lowercase();
                self.answer.and_then(|it| it.fields.values(&name).next()).unwrap_or_default().into()
            }
            NamedWord::Auth => self.vouched.and_then(|it| it.said(name)).unwrap_or_default().into(),
        }
    }

    /// The query, which stands behind the `?`.
    fn query(&self) -> &str {
        self.reference.split_once('?').map_or("", |(_, query)| query)
    }

    /// The path as routes are found by it: decoded, but for slashes that were encoded.
    fn path(&self) -> Cow<'_, str> {
        if let Some(path) = self.path {
            return path.into();
        }
        let path = self.reference.split_once('?').map_or(&*self.reference, |(path, _)| path);
        if !path.contains('%') {
            return path.into();
        }
        let kept = path.replace("%2F", "%252F").replace("%2f", "%252f").replace('+', "%2B");
        let decoded = decode_query_value(&kept).and_then(|it| String::from_utf8(it).ok());
        decoded.unwrap_or_default().into()
    }

    /// The `Host` for a server; `None` if there is no host to ask for.
    pub(crate) fn host(&self, backend_host: Option<&BackendHost>) -> Option<Cow<'_, str>> {
        let host = self.host.as_deref();
        Some(match backend_host {
            Some(BackendHost::Fixed(host)) => Cow::Owned(host.clone()),
            Some(BackendHost::Asked) => Cow::Borrowed(split_port(host?).0),
            Some(BackendHost::AskedWithPort) => {
                let host = split_port(host?).0;
                Cow::Owned(format!("{host}:{}", self.word(RequestWord::Port)))
            }
            None => Cow::Borrowed(host?),
        })
    }

    /// The port that is asked for, or else the usual one.
    pub(crate) fn port(&self) -> Cow<'_, [u8]> {
        bytes(self.word(RequestWord::Port))
    }

    fn word(&self, word: RequestWord) -> Cow<'_, str> {
        let nothing = Cow::Borrowed("");
        let host = || self.host.as_deref().map(split_port);
        match word {
            RequestWord::ClientIp => self.client.map_or(nothing, |it| it.host().to_string().into()),
            RequestWord::ClientPort => {
                let port = self.client.and_then(Client::port);
                port.map_or(nothing, |port| port.to_string().into())
            }
            RequestWord::Scheme => self.scheme.as_str().into(),
            RequestWord::Host => host().map_or(nothing, |(host, _)| host.into()),
            RequestWord::Port => match host().and_then(|(_, port)| port) {
                Some(port) => port.into(),
                None => self.scheme.usual_port().into(),
            },
            RequestWord::Uri => (*self.reference).into(),
            // An object that is fetched for many is asked for by the URL that they share.
            RequestWord::AskedUri => self
                .head
                .and_then(|head| {
                    reference(head.target().ok()?, head.raw_target(), SlashRuns::AS_SENT)
                })
                .unwrap_or_else(|| (*self.reference).into()),
            RequestWord::Path => self.path(),
            RequestWord::AskedPath => {
                let asked = self.head.and_then(|head| head.target().ok());
                asked.map_or_else(|| self.path(), |target| target.path.into())
            }
            RequestWord::Query => self.query().into(),
            // An object that is kept for many is fetched by GET.
            RequestWord::Method => self
                .head
                .map_or(Cow::Borrowed("GET"), |head| head.method().as_str().to_owned().into()),
            RequestWord::Protocol => {
                self.head.map_or("HTTP/1.1", |it| protocol(it.version())).into()
            }
            RequestWord::RequestId => {
                self.client.map_or(nothing, |it| it.request_id.to_string().into())
            }
            RequestWord::ClientSubject => {
                self.certificate.map_or(nothing, |it| in_ascii(&it.subject).into())
            }
            RequestWord::ClientCert => {
                let chain = self.certificate.map_or(&[][..], |it| &it.chain);
                byte_sequences(chain.get(..1).unwrap_or_default()).into()
            }
            RequestWord::ClientCertChain => {
                let chain = self.certificate.map_or(&[][..], |it| &it.chain);
                byte_sequences(chain.get(1..).unwrap_or_default()).into()
            }
            RequestWord::Status => self.answer.map_or(nothing, |it| it.status.to_string().into()),
        }
    }
}

/// A text that is not too long for a map, or nothing.
fn bounded(text: Vec<u8>) -> Vec<u8> {
    if text.len() > MAP_BYTES_MAX { Vec::new() } else { text }
}

/// A host, and its port where it has one.
fn split_port(host: &str) -> (&str, Option<&str>) {
    match host.rsplit_once(':') {
        // Within brackets it is a part of an address.
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (host, None),
    }
}

/// A subject with each byte outside ASCII as `\XX` (RFC 4514 §2.4): what such bytes mean in a field is not agreed on.
fn in_ascii(subject: &str) -> String {
    let mut text = String::with_capacity(subject.len());
    for byte in subject.bytes() {
        match byte {
            b' '..=b'~' => text.push(char::from(byte)),
            // Writing to a string cannot fail.
            byte => _ = write!(text, "\\{byte:02x}"),
        }
    }
    // An escaped space at the end would be taken for one around the value.
    if text.ends_with("\\ ") {
        text.pop();
        text.push_str("20");
    }
    text
}

/// A list of byte sequences (RFC 9440 §2.1, RFC 9651 §3.3.5). Longer ones than servers take are not there: a server that asks
/// for a certificate then refuses the request, which is better than one that sees half of it.
fn byte_sequences(certificates: &[Box<[u8]>]) -> String {
    let bytes: usize = certificates.iter().map(|it| it.len()).sum();
    if bytes > CERTIFICATE_BYTES_MAX {
        return String::new();
    }
    let items: Vec<_> =
        certificates.iter().map(|it| format!(":{}:", STANDARD.encode(it))).collect();
    items.join(", ")
}

/// In DER, of one certificate or of a chain. Servers take heads of 8 to 64 KiB.
const CERTIFICATE_BYTES_MAX: usize = 32 * 1_024;

/// Longest text that a map is asked about, and that it may say.
const MAP_BYTES_MAX: usize = 64 * 1_024;

#[cfg(test)]
mod tests;

//! What the words in `request_headers` and `backend_host` stand for in one request.
//!
//! Each is made of parts that were parsed: none of it can end a line or begin a field.

use std::borrow::Cow;
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kettle_config::{BackendHost, FieldPart, FieldTemplate, RequestWord};
use kettle_http::forwarded::Scheme;
use kettle_tls::PeerIdentity;

use crate::request::Client;

/// One request, as words see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Words<'r> {
    /// The host that is asked for, with its port where that was said.
    pub(crate) host: Option<&'r str>,
    /// Path and query as servers get them.
    pub(crate) reference: &'r str,
    pub(crate) scheme: Scheme,
    /// None where the response is for many.
    pub(crate) client: Option<&'r Client>,
    /// The certificate that the client showed, if its site asks for one.
    pub(crate) certificate: Option<&'r PeerIdentity>,
}

impl Words<'_> {
    /// The value of a field; `None` if its words leave it empty.
    pub(crate) fn fill(&self, template: &FieldTemplate) -> Option<Vec<u8>> {
        let mut value = Vec::new();
        for part in template.parts() {
            match part {
                FieldPart::Text(text) => value.extend_from_slice(text.as_bytes()),
                FieldPart::Word(word) => value.extend_from_slice(self.word(*word).as_bytes()),
            }
        }
        let is_empty = value.trim_ascii().is_empty() && template.words().next().is_some();
        (!is_empty).then_some(value)
    }

    /// The `Host` for a server; `None` if there is no host to ask for.
    pub(crate) fn host(&self, backend_host: Option<&BackendHost>) -> Option<Cow<'_, str>> {
        Some(match backend_host {
            Some(BackendHost::Fixed(host)) => Cow::Owned(host.clone()),
            Some(BackendHost::Asked) => Cow::Borrowed(split_port(self.host?).0),
            Some(BackendHost::AskedWithPort) => {
                let host = split_port(self.host?).0;
                Cow::Owned(format!("{host}:{}", self.word(RequestWord::Port)))
            }
            None => Cow::Borrowed(self.host?),
        })
    }

    fn word(&self, word: RequestWord) -> Cow<'_, str> {
        let nothing = Cow::Borrowed("");
        match word {
            RequestWord::ClientIp => self.client.map_or(nothing, |it| it.host().to_string().into()),
            RequestWord::ClientPort => {
                let port = self.client.and_then(Client::port);
                port.map_or(nothing, |port| port.to_string().into())
            }
            RequestWord::Scheme => self.scheme.as_str().into(),
            RequestWord::Host => self.host.map_or(nothing, |host| split_port(host).0.into()),
            RequestWord::Port => match self.host.and_then(|host| split_port(host).1) {
                Some(port) => port.into(),
                None => self.scheme.usual_port().to_string().into(),
            },
            RequestWord::Uri => self.reference.into(),
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
        }
    }
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

#[cfg(test)]
mod tests;

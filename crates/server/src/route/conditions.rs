//! `when`: what a route asks of a request besides its path.

use std::borrow::Cow;

use kettle_config::{Condition, Scheme, Subject};
use kettle_http::forwarded;
use kettle_http::target::{SlashRuns, reference};

use crate::proxy::words::Words;
use crate::request::{Client, Head, Request};

/// A request, as conditions see it.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'r> {
    /// Its head.
    pub head: &'r Head,
    /// The client it is for; `None` where it was never answered, so that only its head is known.
    pub client: Option<&'r Client>,
}

/// True if all conditions hold.
#[must_use]
pub fn hold(conditions: &[Condition], asked: Asked<'_>) -> bool {
    conditions
        .iter()
        .all(|condition| condition.subjects().all(|it| asked.is(it, condition)) != condition.not)
}

impl<'r> Asked<'r> {
    /// A request that is to be answered.
    #[must_use]
    pub fn of(request: &'r Request<'_>) -> Self {
        Self { head: &request.head, client: Some(&request.client) }
    }

    fn is(self, subject: Subject<'_>, condition: &Condition) -> bool {
        match subject {
            Subject::Method(methods) => {
                let own = self.head.method();
                methods.iter().any(|method| method == own.as_str())
            }
            Subject::Scheme(scheme) => self.scheme() == Some(scheme),
            Subject::Host(hosts) => {
                let own = self.head.host().map(|host| host.strip_suffix('.').unwrap_or(host));
                own.is_some_and(|own| hosts.iter().any(|host| host.eq_ignore_ascii_case(own)))
            }
            Subject::Network(networks) => {
                let address = self.client.and_then(|client| client.host().ip());
                address.is_some_and(|it| networks.iter().any(|network| network.contains(it)))
            }
            Subject::Header(name) => fits(condition, &self.header(name)),
            Subject::Cookie(name) => fits(condition, self.cookie(name).unwrap_or_default()),
            Subject::Query(name) => fits(condition, self.argument(name).unwrap_or_default()),
            Subject::Of(template) => {
                let reference = self.reference().unwrap_or_default();
                let authority = self.head.authority();
                let host = authority.map(|it| match it.port {
                    Some(port) => format!("{}:{port}", it.host),
                    None => it.host.to_owned(),
                });
                let words = Words {
                    host: host.as_deref(),
                    reference: &reference,
                    scheme: self.client.map_or(forwarded::Scheme::Https, |client| client.scheme),
                    client: self.client,
                    certificate: None,
                };
                fits(condition, &words.fill(template).unwrap_or_default())
            }
        }
    }

    fn scheme(self) -> Option<Scheme> {
        Some(match self.client?.scheme {
            forwarded::Scheme::Http => Scheme::Http,
            forwarded::Scheme::Https => Scheme::Https,
        })
    }

    /// The value of a header; empty if there is none. Several of one name are one, with commas (RFC 9110 §5.3).
    fn header(self, name: &str) -> Cow<'r, [u8]> {
        let mut values = self.head.header_values(name);
        let first = values.next().unwrap_or_default();
        match values.next() {
            None => Cow::Borrowed(first),
            Some(_) => {
                let all: Vec<&[u8]> = self.head.header_values(name).collect();
                Cow::Owned(all.join(&b", "[..]))
            }
        }
    }

    /// The value of the first cookie of this name (RFC 6265 §4.2.1).
    fn cookie(self, name: &str) -> Option<&'r [u8]> {
        let lines = self.head.header_values("cookie");
        let mut pairs = lines.flat_map(|line| line.split(|byte| *byte == b';'));
        pairs.find_map(|pair| value_of(pair.trim_ascii_start(), name).map(<[u8]>::trim_ascii_end))
    }

    /// The value of the first query argument of this name, as it was sent.
    fn argument(self, name: &str) -> Option<&'r [u8]> {
        let query = self.head.target().ok()?.query?;
        query.as_bytes().split(|byte| *byte == b'&').find_map(|pair| value_of(pair, name))
    }

    /// Path and query as they were sent.
    fn reference(self) -> Option<String> {
        let target = self.head.target().ok()?;
        reference(target, self.head.raw_target(), SlashRuns::AS_SENT).map(Into::into)
    }
}

/// The value of a pair with this name.
fn value_of<'p>(pair: &'p [u8], name: &str) -> Option<&'p [u8]> {
    pair.strip_prefix(name.as_bytes())?.strip_prefix(b"=")
}

/// True if a text is what the condition asks for, or is there at all.
fn fits(condition: &Condition, text: &[u8]) -> bool {
    match (&condition.text, &condition.regex) {
        (Some(wanted), _) => wanted.as_bytes() == text,
        (None, Some(regex)) => regex.fits(text),
        (None, None) => !text.is_empty(),
    }
}

#[cfg(test)]
mod tests;

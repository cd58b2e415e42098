//! The request whose response many clients get: nothing in it is the matter of one of them alone.

use std::time::Duration;

use kettle_exchange::request::{Program, Request};
use kettle_http::forwarded::Scheme;
use kettle_http::target::{Target, reference};
use kettle_runtime::client_address::ClientHost;
use kettle_upstream::OutgoingRequest;

use super::ProxyRoute;
use crate::words::{Asked, Words};

/// The target of clients, as far as they can ask for the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedTarget {
    scheme: Scheme,
    uri: String,
    /// Where the path begins in it.
    path: usize,
    /// Path and query that servers are sent, if they are others.
    sent: Option<String>,
    /// The path as a program is told it, and the file that was found for it, where servers run programs.
    program: Option<Box<(String, Option<Program>)>>,
}

impl SharedTarget {
    /// The whole URI.
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// The scheme and the host, with its port where it was said.
    pub fn origin(&self) -> &str {
        self.uri.split_at(self.path).0
    }

    /// The host, with its port where it was said.
    pub fn host(&self) -> &str {
        self.origin().split_once("://").map_or("", |(_, host)| host)
    }

    /// Path and query, as clients ask for them.
    pub fn reference(&self) -> &str {
        self.uri.split_at(self.path).1
    }

    /// Path and query, as servers get them.
    fn sent(&self) -> &str {
        self.sent.as_deref().unwrap_or(self.reference())
    }
}

impl ProxyRoute {
    /// Returns the shared target of a request with this path; `None` if it says no host.
    pub(crate) fn shared_target(&self, path: &str, request: &Request<'_>) -> Option<SharedTarget> {
        let shared = self.kept_target(path, request)?;
        let target = request.head.target().ok()?;
        let raw = request.head.raw_target();
        let sent = match &self.prefix {
            Some(prefix) => {
                let there = prefix.there(path)?;
                let target = Target { path: &there, ..target };
                let reference = reference(target, raw, self.slash_runs)?;
                Some(self.unsigned(&reference).to_owned())
            }
            None => None,
        };
        let program = self
            .program
            .is_some()
            .then(|| Box::new((path.to_owned(), request.program.as_deref().cloned())));
        Some(SharedTarget { sent, program, ..shared })
    }

    /// The same as far as stores know it, also of a request that another route of the site answers.
    pub(crate) fn kept_target(&self, path: &str, request: &Request<'_>) -> Option<SharedTarget> {
        let head = &*request.head;
        let host = self.host_of(head, request.presented().server_name)?;
        let scheme = request.client.scheme;
        // With the port that all mean who say none, it is the same host.
        let host_alone = host.strip_suffix(scheme.usual_port()).and_then(|it| it.strip_suffix(':'));
        let host = host_alone.unwrap_or(&host);
        let target = Target { path, ..head.target().ok()? };
        let reference = reference(target, head.raw_target(), self.slash_runs)?;
        let path = self.unsigned(&reference);
        let uri = [scheme.as_str(), "://", host, path].concat();
        let path = uri.len() - path.len();
        Some(SharedTarget { scheme, path, uri, sent: None, program: None })
    }

    /// The request for it, with these fields and the operator's.
    pub(crate) fn shared_request(
        &self,
        target: &SharedTarget,
        client: ClientHost,
        fields: &[(String, Vec<u8>)],
    ) -> Option<OutgoingRequest> {
        let words = self.shared_words(target);
        if let (Some(route), Some(asked)) = (&self.program, &target.program) {
            let asked = (asked.0.as_str(), asked.1.as_ref());
            let mut outgoing = self.to_program_for_all(route, asked, client, fields, &words)?;
            outgoing.retries = self.retries;
            return Some(outgoing);
        }
        let host = words.host(self.host.as_ref())?;
        let mut outgoing = OutgoingRequest::new("GET", target.sent(), &host, client, self.timeout)?;
        let forwarded: [(&str, &[u8]); 2] = [
            ("x-forwarded-host", target.host().as_bytes()),
            ("x-forwarded-proto", words.scheme.as_str().as_bytes()),
        ];
        let fields = fields.iter().map(|(name, value)| (name.as_str(), value.as_slice()));
        for (name, value) in fields.chain(forwarded) {
            if !value.is_empty() && !self.is_own(name.as_bytes()) {
                outgoing.field(name, value);
            }
        }
        outgoing.key = self.key_of(&words);
        self.add_own(&mut outgoing, &words);
        if !self.upstream.keeps_connections() {
            outgoing.field("connection", "close");
        }
        outgoing.retries = self.retries;
        Some(outgoing.ended())
    }

    /// Returns the values of words in it: what the key has, and no more.
    pub(super) fn shared_words<'w>(&'w self, target: &'w SharedTarget) -> Words<'w> {
        Words {
            head: None,
            host: Some(target.host().into()),
            reference: target.sent().into(),
            path: None,
            scheme: target.scheme,
            client: None,
            certificate: None,
            answer: None,
            vouched: None,
            source: &self.words,
        }
    }

    /// Returns the value of a map for a request for this path; `None` if that has words. For what `is_shared` it says the same
    /// to all who ask for the same.
    pub(crate) fn text_of_map(
        &self,
        map: &str,
        path: &str,
        request: &Request<'_>,
        is_shared: bool,
    ) -> Option<String> {
        match is_shared.then(|| self.shared_target(path, request)).flatten() {
            Some(target) => {
                let reference = target.reference().into();
                Words { reference, ..self.shared_words(&target) }.own_text(map)
            }
            None => {
                Words { path: Some(path), ..Asked::of(request).words(&self.words) }.own_text(map)
            }
        }
    }

    /// A reference without its signature, if it has one that held: that is of one client and one time, and no part of what is asked for.
    fn unsigned<'r>(&self, reference: &'r str) -> &'r str {
        let signed = reference.split_once('?').filter(|_| self.is_signed);
        signed.map_or(reference, |(path, _)| path)
    }

    /// Returns the time for which servers may send nothing.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }
}

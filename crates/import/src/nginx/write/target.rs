//! The targets of connections and requests: an `upstream` or an address, and the name of the backend for one way to get there.

use kettle_config::{BackendProtocol, Origin};

use super::Writer;
use crate::nginx::scope::Scope;
use crate::nginx::syntax::Directive;
use crate::nginx::variables::field;

pub(super) struct Target<'t> {
    pub(super) name: String,
    pub(super) upstream: Option<&'t Directive>,
    /// An address, where there is no such `upstream`.
    pub(super) address: String,
    pub(super) is_tls: bool,
    /// The protocol in which programs are told.
    pub(super) protocol: Option<BackendProtocol>,
    pub(super) is_stream: bool,
    /// True if its `upstream` is another backend's, too.
    pub(super) is_shared: bool,
}

impl Writer<'_> {
    /// Of an `upstream` of this block, or of the address itself. One of both may be asked with TLS and without, and trusted in
    /// several ways: each is a backend.
    pub(super) fn target<'t>(
        &mut self,
        scope: &Scope<'_>,
        block: &'t [Directive],
        to: &str,
        kind: Kind,
    ) -> Target<'t> {
        let is_it = |it: &&Directive| it.name == "upstream" && it.word(0).eq_ignore_ascii_case(to);
        let upstream = block.iter().find(is_it);
        let is_tls = kind == Kind::Https || kind == Kind::Stream && scope.is_on("proxy_ssl");
        let address = with_port(to, if kind == Kind::Https { 443 } else { 80 });
        let is_announced = kind == Kind::Stream && scope.is_on("proxy_protocol");
        let protocol = match kind {
            Kind::Programs(protocol) => Some(protocol),
            _ => None,
        };
        let end = match (is_tls, is_announced) {
            (false, false) => &protocol.map_or_else(String::new, |it| format!("-{it}")),
            (true, false) => "-tls",
            (false, true) => "-proxy",
            (true, true) => "-tls-proxy",
        };
        let place = match upstream {
            Some(upstream) => format!("{:?}", upstream.origin),
            None => address.clone(),
        };
        let is_stream = kind == Kind::Stream;
        let said = SAID.iter().filter(|(_, is_of_tls)| is_tls || !is_of_tls);
        let said = said.filter_map(|(name, _)| scope.find(name));
        let said = said.map(|it| format!("{:?}", (&it.name, &it.words)));
        let words = said.collect::<Vec<_>>().join(";");
        let identity = format!("{is_stream} {end} {place} {words}");
        let is_other = |it: &String| *it != identity && it.contains(&place);
        let is_shared = upstream.is_some() && self.output.backend_names.keys().any(is_other);
        let name = self.output.backend_name(to, end, &identity);
        Target { name, upstream, address, is_tls, protocol, is_stream, is_shared }
    }

    /// Which of its servers is asked, and the text that decides, if one does.
    pub(super) fn balance(
        &mut self,
        upstream: &[Directive],
        is_stream: bool,
    ) -> (&'static str, Option<(String, Origin)>) {
        let mut balance = "round-robin";
        let mut hash = None;
        self.tell(upstream);
        for directive in upstream {
            balance = match directive.name.as_str() {
                "least_conn" => "least-connections",
                "random" => "random-two",
                "ip_hash" => "network-hash",
                "hash" if ["$remote_addr", "$binary_remote_addr"].contains(&directive.word(0)) => {
                    "source-hash"
                }
                "hash" => match field(directive.word(0)).filter(|it| !is_stream && !is_later(it)) {
                    Some(text) => {
                        hash = Some((text, directive.origin.clone()));
                        "hash"
                    }
                    None => {
                        let help = "the client's address decides";
                        self.tell_of_change(directive, help);
                        "source-hash"
                    }
                },
                _ => continue,
            };
        }
        (balance, hash.filter(|_| balance == "hash"))
    }
}

/// True for a text with what an answer says: a server is chosen before there is one.
fn is_later(text: &str) -> bool {
    ["{answer:", "{status}"].iter().any(|word| text.contains(word))
}

/// The kind of question.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Http,
    Https,
    Programs(BackendProtocol),
    Stream,
}

/// The servers of an `upstream` need not say their port.
pub(super) fn with_port(address: &str, port: u16) -> String {
    let has_port = address.starts_with("unix:")
        || address.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    if has_port { address.to_owned() } else { format!("{address}:{port}") }
}

/// The directives on how a backend is asked, how it is to be trusted and shown who asks; and whether that is about TLS.
const SAID: [(&str, bool); 10] = [
    ("proxy_connect_timeout", false),
    ("proxy_timeout", false),
    ("proxy_ssl_name", true),
    ("proxy_ssl_verify", true),
    ("proxy_ssl_trusted_certificate", true),
    ("proxy_ssl_crl", true),
    ("proxy_ssl_certificate", true),
    ("proxy_ssl_certificate_key", true),
    ("proxy_ssl_protocols", true),
    ("proxy_ssl_ciphers", true),
];

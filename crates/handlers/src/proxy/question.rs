//! The request that a service gets which says whether a client's request may go on. It is written from the same parts as one that is
//! passed on, and names no more of the client's fields than it is told to.

use kettle_exchange::request::Request;
use kettle_http::target::{SlashRuns, Target, reference};
use kettle_upstream::{CONNECTION_OPTIONS_MAX, OutgoingRequest};

use super::ProxyRoute;
use super::outgoing::is_ours;

impl ProxyRoute {
    /// A GET of this path and query about what the client asks for, with the client's fields of these names; none if there is no host to
    /// ask for, or `Connection` has too many members.
    pub(crate) fn question(
        &self,
        asked_for: &str,
        names: &[String],
        request: &Request<'_>,
    ) -> Option<OutgoingRequest> {
        let head = &*request.head;
        if head.connection_options() > CONNECTION_OPTIONS_MAX {
            return None;
        }
        let asked = self.host_of(head, request.presented().server_name);
        let target: Target<'_> = head.target_as_sent().ok()?;
        // As the route was found: who decides by the path must not see another one.
        let reference = reference(target, head.raw_target(), SlashRuns::Merged)?;
        let client = request.client;
        let words = self.words_for(request, asked.as_deref(), target.path, &reference);
        let host = words.host(self.host.as_ref())?;
        let client_host = client.host();
        let timeout = self.timeout;
        let mut outgoing = OutgoingRequest::new("GET", asked_for, &host, client_host, timeout)?;
        let has_all = names.iter().any(|name| name == "*");
        let hop_by_hop = head.hop_by_hop();
        for (name, value) in head.headers() {
            let is_named = || names.iter().any(|it| it.as_bytes().eq_ignore_ascii_case(name));
            let is_wanted = if has_all { !is_of_the_answer(name) } else { is_named() };
            let is_kept = is_ours(name) || client.is_named_by(name) || self.is_own(name);
            if is_wanted && !is_kept && !hop_by_hop.has(name) {
                outgoing.field(name, value);
            }
        }
        self.add_own(&mut outgoing, &words);
        self.add_forwarded(&mut outgoing, client, asked.as_deref());
        let own = [("x-forwarded-method", head.method().as_str()), ("x-forwarded-uri", &reference)];
        for (name, value) in own.into_iter().filter(|(name, _)| !self.is_own(name.as_bytes())) {
            outgoing.field(name, value);
        }
        if !self.upstream.keeps_connections() {
            outgoing.field("connection", "close");
        }
        Some(outgoing.ended())
    }
}

/// True if a field says which part of an answer is wanted, or in which form: the service's own is wanted whole.
fn is_of_the_answer(name: &[u8]) -> bool {
    let begins = name.get(..3).is_some_and(|it| it.eq_ignore_ascii_case(b"if-"));
    begins || name.eq_ignore_ascii_case(b"range")
}

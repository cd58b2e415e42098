//! The request that an application behind FastCGI gets for a client's: what a program is told (RFC 3875 §4.1), by the names that nginx
//! has for it. Nothing that a client says becomes a file to run, and no name is said twice.

use std::borrow::Cow;
use std::path::Path;

use kettle_config::{BackendProtocol, Expression, FastCgi, FieldTemplate, Route, Site};
use kettle_exchange::request::{Head, Program, Request};
use kettle_http::HttpVersion;
use kettle_http::field::are_one_to_gateways;
use kettle_http::h1::framing::BodyFraming;
use kettle_http::target::{Target, reference};
use kettle_runtime::client_address::ClientHost;
use kettle_upstream::{CONNECTION_OPTIONS_MAX, OutgoingRequest};

use super::ProxyRoute;
use super::outgoing::{REQUEST_ID, add_host, is_ours};
use crate::words::{Words, header, protocol};

/// The parameters of a route's programs that are the same for all requests.
#[derive(Debug)]
pub(super) struct ProgramRoute {
    kind: Kind,
    /// The folder of the route's files, as the application sees it.
    root: Option<String>,
    takes_path_info: bool,
    /// The part of a path that `root` replaces, and what it is behind where there is no `root`.
    replaced: String,
    prefix: String,
    /// None if the site has no exact name.
    server_name: Option<String>,
    params: Vec<(String, Vec<FieldTemplate>)>,
    /// The expression whose groups stand in these.
    regex: Option<Expression>,
}

/// The kind of rule that decides which program runs.
#[derive(Debug)]
enum Kind {
    /// The file that was found below the route's root, or else this program.
    File(Option<String>),
    /// This one.
    Script(String),
    /// The application itself, which is told of no file.
    Application,
}

/// A program and its path, as they follow from a request.
struct Asked<'r> {
    /// In two parts.
    script_file: Option<[&'r str; 2]>,
    script_name: Cow<'r, str>,
    path_info: Cow<'r, str>,
}

impl ProgramRoute {
    pub(super) fn of(site: &Site, route: &Route, protocol: BackendProtocol) -> Self {
        let default = FastCgi::default();
        let settings = route.fastcgi.as_ref().unwrap_or(&default);
        let root = route.root.as_ref().map(|root| text_of(&root.value));
        let script = settings.script.clone();
        let kind = match (&root, script) {
            (Some(_), script) => Kind::File(script),
            (None, Some(script)) => Kind::Script(script),
            (None, None) => Kind::Application,
        };
        // An application that knows its paths finds them in `PATH_INFO` (PEP 3333), whole if nothing else is said.
        let is_told_whole =
            matches!(kind, Kind::Application) && protocol != BackendProtocol::FastCgi;
        let place = route.place().filter(|_| route.regex.is_none() && settings.path_info);
        let prefix = place.map_or("", |place| place.text().trim_end_matches('/'));
        Self {
            kind,
            root: settings.root.clone().or(root),
            takes_path_info: settings.path_info || is_told_whole,
            replaced: route.replaced().to_owned(),
            prefix: prefix.to_owned(),
            server_name: exact_name(site).map(str::to_owned),
            params: settings.params.clone(),
            regex: route.regex.clone(),
        }
    }

    /// True if a parameter of this name is the operator's.
    fn has(&self, name: &[u8]) -> bool {
        self.params.iter().any(|(own, _)| own.as_bytes() == name)
    }

    /// True if the parameter for a field of this name is.
    fn has_field(&self, name: &[u8]) -> bool {
        let fields = self.params.iter().filter_map(|(own, _)| own.strip_prefix("HTTP_"));
        fields.into_iter().any(|own| are_one_to_gateways(own.as_bytes(), name))
    }

    /// The program for a path; `None` if that needs a file that nobody has found.
    fn asked<'r>(&'r self, path: &'r str, program: Option<&'r Program>) -> Option<Asked<'r>> {
        let whole = || (Cow::Borrowed(path), Cow::Borrowed(""));
        let (script_file, (script_name, path_info)) = match (&self.kind, program) {
            (Kind::File(_), Some(program)) => {
                let file = [self.root.as_deref()?.trim_end_matches('/'), program.path.as_str()];
                let name = match self.replaced.is_empty() {
                    true => Cow::Borrowed(program.path.as_str()),
                    false => Cow::Owned(format!("{}{}", self.replaced, program.path)),
                };
                (Some(file), (name, Cow::Borrowed(program.path_info.as_str())))
            }
            (Kind::File(None), None) => return None,
            (Kind::File(Some(script)) | Kind::Script(script), _) => {
                (Some([script.as_str(), ""]), self.parts(path).unwrap_or_else(whole))
            }
            (Kind::Application, _) => (None, self.parts(path).unwrap_or_else(whole)),
        };
        Some(Asked { script_file, script_name, path_info })
    }

    /// The place of the route, and what of a path follows it.
    fn parts<'r>(&self, path: &'r str) -> Option<(Cow<'r, str>, Cow<'r, str>)> {
        let rest = path.strip_prefix(&*self.prefix).filter(|_| self.takes_path_info)?;
        let name = path.get(..self.prefix.len())?;
        Some((name.into(), rest.into()))
    }
}

impl ProxyRoute {
    /// The request for a program, with this path if not the one asked for; none if there is no host to ask for, no program, or what it is
    /// to be told could not be told whole. A body that `is_stored` is announced once it is.
    pub(super) fn to_program(
        &self,
        route: &ProgramRoute,
        path: Option<&str>,
        request: &Request<'_>,
        is_stored: bool,
    ) -> Option<OutgoingRequest> {
        let head = &*request.head;
        if head.connection_options() > CONNECTION_OPTIONS_MAX {
            return None;
        }
        let asked = self.host_of(head, request.presented().server_name);
        let target = head.target().ok()?;
        let path = path.unwrap_or(target.path);
        let raw = head.raw_target();
        // A rewrite may have put another query there; this is what clients asked for.
        let sent = Target { query: raw.split_once('?').map(|(_, query)| query), ..target };
        let sent = (sent.query != target.query).then(|| reference(sent, raw, self.slash_runs));
        let reference = reference(target, raw, self.slash_runs)?;
        let sent = match &sent {
            Some(sent) => sent.as_deref()?,
            None => &reference,
        };
        let client = request.client;
        let words = self.words_for(request, asked.as_deref(), path, &reference);
        let method = self.method_of(head);
        let mut outgoing = self.begun(route, method, client.host(), &words)?;
        let mut told = Told::new(route, &mut outgoing);
        told.say("SERVER_PROTOCOL", protocol(head.version()));
        let asked = route.asked(path, request.program.as_deref())?;
        told.say_asked(asked, target.query.unwrap_or_default(), sent);
        told.say_with("REMOTE_ADDR", |value| add_host(value, client.host()));
        if let Some(port) = client.port() {
            told.say("REMOTE_PORT", itoa::Buffer::new().format(port));
        }
        // As nginx does, where nobody was asked for a name; and it is never what a client merely says.
        told.say("REMOTE_USER", request.user.as_deref().unwrap_or_default());
        if request.user.is_some() {
            told.say("AUTH_TYPE", "Basic");
        }
        told.say("CONTENT_TYPE", header(head, "content-type"));
        let hop_by_hop = head.hop_by_hop();
        for (name, value) in first_lines(head).filter(|_| self.replaced.passes_headers) {
            let is_kept = is_ours(name) || client.is_named_by(name);
            if !is_kept && !hop_by_hop.has(name) && !self.is_own(name) {
                told.say_field(name, &value);
            }
        }
        // Its body comes whole, with a length; programs that care are told as nginx tells them.
        if head.header(CODING).is_some() && !self.is_own(CODING.as_bytes()) {
            told.say_field(CODING.as_bytes(), b"chunked");
        }
        let is_named = head.header(REQUEST_ID).is_some() && !hop_by_hop.has(REQUEST_ID.as_bytes());
        if !is_named && !self.is_own(REQUEST_ID.as_bytes()) {
            told.say_field_with(REQUEST_ID, |value| client.request_id.write(value));
        }
        self.vouched(request).for_each(|(name, value)| told.say_field(name.as_bytes(), value));
        self.say_own(&mut told, &words, path);
        if is_stored {
            // Its body is announced once it is there.
            return outgoing.if_sound();
        }
        outgoing.announce_body(request.body.framing());
        outgoing.ended().if_sound()
    }

    /// The request for what many clients get, with these fields: nothing in it is the matter of one of them alone.
    pub(super) fn to_program_for_all(
        &self,
        route: &ProgramRoute,
        (path, program): (&str, Option<&Program>),
        client: ClientHost,
        fields: &[(String, Vec<u8>)],
        words: &Words<'_>,
    ) -> Option<OutgoingRequest> {
        let mut outgoing = self.begun(route, "GET", client, words)?;
        let mut told = Told::new(route, &mut outgoing);
        told.say("SERVER_PROTOCOL", protocol(HttpVersion::Http11));
        let asked = route.asked(path, program)?;
        let query = words.reference.split_once('?').map_or("", |(_, query)| query);
        told.say_asked(asked, query, &words.reference);
        // No client asks alone. Programs expect that it is there.
        told.say("REMOTE_ADDR", "");
        told.say("REMOTE_USER", "");
        for (name, value) in fields {
            if !value.is_empty() && !self.is_own(name.as_bytes()) {
                told.say_field(name.as_bytes(), value);
            }
        }
        self.say_own(&mut told, words, path);
        outgoing.announce_body(BodyFraming::None);
        outgoing.if_sound()
    }

    /// Returns the parameters that follow from the host, the scheme and the configuration alone.
    fn begun(
        &self,
        route: &ProgramRoute,
        method: &str,
        client: ClientHost,
        words: &Words<'_>,
    ) -> Option<OutgoingRequest> {
        let host = words.host(self.host.as_ref())?;
        let is_http_host = !route.has_field(b"host") && !self.is_own(b"host");
        let protocol = self.upstream.backend.settings.protocol;
        let form = (protocol, self.upstream.keeps_connections());
        let host = Some(&*host).filter(|_| is_http_host);
        let mut outgoing = OutgoingRequest::to_program(form, method, host, client, self.timeout)?;
        outgoing.key = self.key_of(words);
        let mut told = Told::new(route, &mut outgoing);
        told.say("GATEWAY_INTERFACE", "CGI/1.1");
        told.say("SERVER_SOFTWARE", "kettle");
        told.say("REDIRECT_STATUS", "200");
        told.say("REQUEST_SCHEME", words.scheme.as_str());
        if words.scheme.as_str() == "https" {
            told.say("HTTPS", "on");
        }
        told.say("SERVER_NAME", route.server_name.as_deref().unwrap_or(words.host_name()));
        told.say("SERVER_PORT", words.port());
        Some(outgoing)
    }

    /// Writes the operator's own parameters.
    fn say_own(&self, told: &mut Told<'_>, words: &Words<'_>, path: &str) {
        for (name, values) in &self.request_headers {
            let values: Vec<_> = values.iter().filter_map(|value| words.fill(value)).collect();
            if !values.is_empty() {
                told.say_field(name.as_bytes(), &values.join(&b", "[..]));
            }
        }
        let regex = told.route.regex.as_ref();
        let groups = regex.map(|it| it.groups_in(path.as_bytes())).unwrap_or_default();
        let group = |name: &str| regex.map_or(&b""[..], |it| it.group_of(&groups, name));
        for (name, values) in &told.route.params {
            let is_query = name == "QUERY_STRING";
            let values = values.iter().map(|value| match is_query {
                true => words.query_with(value, group),
                false => words.text_with(value, group),
            });
            let values: Vec<_> = values.collect();
            if !values.is_empty() {
                told.outgoing.parameter(name, values.join(&b", "[..]));
            }
        }
    }
}

/// Tells a program what the operator does not tell it.
struct Told<'o> {
    route: &'o ProgramRoute,
    outgoing: &'o mut OutgoingRequest,
    /// Memory for values that are made of parts.
    scratch: Vec<u8>,
}

impl<'o> Told<'o> {
    fn new(route: &'o ProgramRoute, outgoing: &'o mut OutgoingRequest) -> Self {
        Self { route, outgoing, scratch: Vec::new() }
    }

    fn say(&mut self, name: &str, value: impl AsRef<[u8]>) {
        if !self.route.has(name.as_bytes()) {
            self.outgoing.parameter(name, value);
        }
    }

    /// The same for a value that is written piece by piece.
    fn say_with(&mut self, name: &str, write: impl FnOnce(&mut Vec<u8>)) {
        if !self.route.has(name.as_bytes()) {
            self.compose(write);
            self.outgoing.parameter(name, &self.scratch);
        }
    }

    fn compose(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        self.scratch.clear();
        self.scratch.reserve(VALUE_BYTES_USUAL);
        write(&mut self.scratch);
    }

    fn say_field(&mut self, name: &[u8], value: &[u8]) {
        if !self.route.has_field(name) {
            self.outgoing.field(name, value);
        }
    }

    fn say_field_with(&mut self, name: &str, write: impl FnOnce(&mut Vec<u8>)) {
        if !self.route.has_field(name.as_bytes()) {
            self.compose(write);
            self.outgoing.field(name, &self.scratch);
        }
    }

    fn say_asked(&mut self, asked: Asked<'_>, query: &str, reference: &str) {
        let Asked { script_file, script_name, path_info } = asked;
        self.say("REQUEST_URI", reference);
        self.say("QUERY_STRING", query);
        self.say_with("DOCUMENT_URI", |uri| add(uri, &[&script_name, &path_info]));
        self.say("SCRIPT_NAME", script_name.as_bytes());
        if self.route.takes_path_info {
            self.say("PATH_INFO", path_info.as_bytes());
        }
        // An application that is told of no file must not find one by what a client asks for.
        let Some(script_file) = script_file else { return };
        self.compose(|file| add(file, &script_file));
        self.outgoing.parameter("SCRIPT_FILENAME", &self.scratch);
        if let Some(root) = &self.route.root {
            self.say("DOCUMENT_ROOT", root);
            if !path_info.is_empty() {
                self.outgoing.parameter("PATH_TRANSLATED", format!("{root}{path_info}"));
            }
        }
    }
}

fn add(value: &mut Vec<u8>, parts: &[&str]) {
    parts.iter().for_each(|part| value.extend_from_slice(part.as_bytes()));
}

/// Each field of a client once, with all of its values: a program finds one of each name.
fn first_lines(head: &Head) -> impl Iterator<Item = (&[u8], Cow<'_, [u8]>)> {
    head.headers().filter_map(|(name, value)| {
        let text = std::str::from_utf8(name).ok()?;
        let mut values = head.header_values(text);
        let is_first = values.next().is_some_and(|first| std::ptr::eq(first, value));
        if !is_first {
            return None;
        }
        if values.next().is_none() {
            return Some((name, Cow::Borrowed(value)));
        }
        let between = if text.eq_ignore_ascii_case("cookie") { &b"; "[..] } else { &b", "[..] };
        let all: Vec<&[u8]> = head.header_values(text).collect();
        Some((name, Cow::Owned(all.join(between))))
    })
}

fn text_of(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// The first name of a site that is one host's: no program knows what the others mean.
fn exact_name(site: &Site) -> Option<&str> {
    let names = site.names.iter().map(|name| name.value.as_str());
    names.into_iter().find(|name| *name != "_" && !name.starts_with('~') && !name.contains('*'))
}

const CODING: &str = "transfer-encoding";

/// Room that most values find enough.
const VALUE_BYTES_USUAL: usize = 256;

#[cfg(test)]
mod tests {
    use kettle_config::Located;

    use super::*;

    #[test]
    fn programs_are_told_a_name_that_is_one_host_s() {
        for (names, expected) in [
            (&["a.example", "b.example"][..], Some("a.example")),
            (&["_", "*.a.example", "a.*", "~^b", "b.example"], Some("b.example")),
            (&["*.a.example"], None),
            (&[], None),
        ] {
            let names = names.iter().map(|it| Located::not_written((*it).to_owned())).collect();
            assert_eq!(exact_name(&Site { names, ..Site::default() }), expected);
        }
    }
}

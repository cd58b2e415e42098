//! `stream`: servers that carry connections become listeners with backends.

use kettle_config::{ListenAddress, Origin, quoted};

use super::Writer;
use super::route::spoken;
use super::site::names_below;
use super::target::{Kind, Target, with_port};
use super::tls::{laxer_backend, laxer_client_auth};
use crate::nginx::listen::{self, Listen};
use crate::nginx::location::{denied, guarded};
use crate::nginx::measure;
use crate::nginx::scope::Scope;
use crate::nginx::syntax::Directive;
use crate::offer::list;
use crate::output::NAME_LETTERS_MAX;

/// A name, where its connections go, and where that stands.
type Entry<'t> = (String, Target<'t>, &'t Origin);

impl Writer<'_> {
    /// Writes the servers of `streams`. A socket that several servers share has what guards its default server before any name
    /// is looked at, and a listener of kettle has one backend for names that no site has: all of it is left out.
    pub(super) fn streams(&mut self, main: &Scope<'_>, streams: &[&Directive]) {
        let mut sockets: Vec<(ListenAddress, &Origin)> = Vec::new();
        let mut listening = Vec::new();
        for stream in streams {
            self.tell(stream.inner());
            for server in stream.inner().iter().filter(|directive| directive.name == "server") {
                let inner = server.inner();
                let origin = &server.origin;
                let listens = listen::all(inner, origin, 0, self.surroundings, &mut self.output);
                sockets.extend(listens.iter().map(|listen| (listen.address.clone(), origin)));
                listening.push((*stream, server, listens));
            }
        }
        let mut has_names = false;
        for (stream, server, listens) in listening {
            self.output.places.all += 1;
            let is_shared = |listen: &Listen| {
                sockets
                    .iter()
                    .any(|(address, origin)| *origin != &server.origin && listen.collides(address))
            };
            let scope = main.with(stream.inner()).with(server.inner());
            let is_written = match listens.iter().find(|listen| is_shared(listen)) {
                Some(shared) => {
                    let message = "the server is left out: another one listens on its socket";
                    self.output.lose(&shared.origin, message, SHARED);
                    false
                }
                None => self.stream(&scope, stream, server, &listens, &mut has_names),
            };
            self.output.places.closed += usize::from(!is_written);
        }
    }

    /// Writes a server of a stream that alone has its sockets; whether it is carried over.
    fn stream(
        &mut self,
        scope: &Scope<'_>,
        stream: &Directive,
        server: &Directive,
        listens: &[Listen],
        has_names: &mut bool,
    ) -> bool {
        self.tell(server.inner());
        for limit in scope.all("limit_conn") {
            self.tell_of_limit(limit);
        }
        let is_tls = scope.is_on("proxy_ssl");
        let shut = guarded(scope)
            .or_else(|| denied(scope))
            .or_else(|| laxer_client_auth(scope))
            .or_else(|| laxer_backend(scope).filter(|_| is_tls));
        if let Some(shut) = shut {
            self.leave_server_out(&shut);
            return false;
        }
        if let Some(refused) = scope.find("ssl_reject_handshake").filter(|it| it.word(0) == "on") {
            let message = "this server refuses handshakes, and is left out";
            self.output.lose(&refused.origin, message, "nobody is served there");
            return false;
        }
        let Some(pass) = scope.own().iter().find(|it| it.name == "proxy_pass") else {
            let message = "the server is left out: it passes connections on to nobody";
            self.output.lose(&server.origin, message, "write proxy_pass");
            return false;
        };
        if listens.is_empty() {
            return false;
        }
        match pass.word(0).strip_prefix('$') {
            Some(variable) if scope.is_on("ssl_preread") && !*has_names => {
                *has_names = self.by_name(scope, stream, variable, listens, pass);
                *has_names
            }
            Some(_) => {
                let help = "one `map $ssl_preread_server_name` decides by name";
                self.lose_by(pass, "the server is left out", help);
                false
            }
            None => {
                let target = self.carried(scope, stream, pass.word(0));
                for listen in listens {
                    self.tunnel(scope, listen, &target, server);
                }
                self.backend(scope, target, &pass.origin);
                true
            }
        }
    }

    fn listener(&mut self, listen: &Listen, kind: &str, scope: &Scope<'_>) {
        let origin = Some(&listen.origin);
        self.output.text.table("[[listener]]", origin);
        self.output.text.set("address", quoted(&listen.address.to_string()), origin);
        self.output.text.set("kind", quoted(kind), origin);
        self.listener_settings(listen);
        if listen.takes_proxy {
            self.accept_proxy(&[scope], listen);
        }
    }

    fn tunnel(
        &mut self,
        scope: &Scope<'_>,
        listen: &Listen,
        target: &Target<'_>,
        server: &Directive,
    ) {
        self.listener(listen, if listen.is_tls { "tls" } else { "tcp" }, scope);
        self.output.text.set("backend", quoted(&target.name), Some(&listen.origin));
        if !listen.is_tls {
            return;
        }
        self.offer(scope).write(&mut self.output.text);
        if let Some(alpn) = scope.find("ssl_alpn") {
            let names = list(alpn.words.iter().map(String::as_str));
            self.output.text.set("alpn", names, Some(&alpn.origin));
        }
        for (chain, key, ocsp, origin) in self.pairs(scope, &server.origin).unwrap_or_default() {
            self.output.certificate(
                "[[listener.certificate]]",
                &chain,
                &key,
                ocsp.as_ref(),
                &origin,
            );
            self.client_auth("[listener.certificate.client_auth]", scope);
        }
    }

    /// `map $ssl_preread_server_name $variable`: who is asked for decides.
    fn by_name(
        &mut self,
        scope: &Scope<'_>,
        stream: &Directive,
        variable: &str,
        listens: &[Listen],
        pass: &Directive,
    ) -> bool {
        let is_it = |it: &&Directive| {
            it.name == "map"
                && it.word(0) == "$ssl_preread_server_name"
                && it.word(1).strip_prefix('$') == Some(variable)
        };
        let Some(map) = stream.inner().iter().find(is_it) else {
            self.lose_by(
                pass,
                "the server is left out",
                "no map tells what that stands for by name",
            );
            return false;
        };
        let (sites, default) = self.entries(scope, stream, map);
        if sites.is_empty() && default.is_none() {
            let message = "the server is left out: no name is left that it passes on";
            self.output.lose(&pass.origin, message, "write each name");
            return false;
        }
        for listen in listens {
            self.listener(listen, "passthrough", scope);
            if let Some(default) = &default {
                self.output.text.set("backend", quoted(&default.name), Some(&listen.origin));
            }
        }
        for (name, target, origin) in &sites {
            let names = names_below(name);
            self.output.text.table("[[site]]", Some(origin));
            self.output.text.set("names", list(names.iter().map(String::as_str)), Some(origin));
            self.output.text.set("backend", quoted(&target.name), Some(origin));
        }
        let targets = sites.into_iter().map(|(_, target, _)| target).chain(default);
        for target in targets {
            self.backend(scope, target, &pass.origin);
        }
        true
    }

    /// The names of a map, and its default, where that gets no name that is another's.
    fn entries<'t>(
        &mut self,
        scope: &Scope<'_>,
        stream: &'t Directive,
        map: &'t Directive,
    ) -> (Vec<Entry<'t>>, Option<Target<'t>>) {
        let mut default = None;
        let mut place = &map.origin;
        let mut sites: Vec<Entry<'_>> = Vec::new();
        // The directive for names that the default must not get.
        let mut unwritten: Option<&Directive> = None;
        let has_hostnames = map.inner().iter().any(|it| it.name == "hostnames");
        for entry in map.inner() {
            let to = entry.word(0);
            let help = match entry.name.as_str() {
                "hostnames" | "volatile" => continue,
                "default" if to.is_empty() => continue,
                _ if to.is_empty() || to.contains('$') => "such clients are refused",
                "default" => {
                    (default, place) = (Some(self.carried(scope, stream, to)), &entry.origin);
                    continue;
                }
                name if name.starts_with('~') || name.is_empty() => "write each name",
                name if !has_hostnames
                    && (name.starts_with(['*', '.']) || name.ends_with(".*")) =>
                {
                    "without `hostnames` it stands for no name: write each name"
                }
                name if names_below(name).iter().any(|it| self.known_names.contains(it)) => {
                    "a site of `http` has that name: write `backend` there"
                }
                name => {
                    let target = self.carried(scope, stream, to);
                    sites.push((name.to_owned(), target, &entry.origin));
                    continue;
                }
            };
            self.tell_of(entry, help);
            unwritten = unwritten.or(Some(entry));
        }
        if let Some(entry) = unwritten.filter(|_| default.take().is_some()) {
            let message =
                format!("names that no entry has are refused because of `{}`", spoken(entry));
            self.output.warn(place, message, "the default would get its names, or some of them");
        }
        (sites, default)
    }

    fn carried<'t>(&mut self, scope: &Scope<'_>, stream: &'t Directive, to: &str) -> Target<'t> {
        self.target(scope, stream.inner(), to, Kind::Stream)
    }

    /// Writes a backend, once.
    pub(super) fn backend(&mut self, scope: &Scope<'_>, target: Target<'_>, origin: &Origin) {
        if !self.backend_names.insert(target.name.clone()) {
            return;
        }
        let place = target.upstream.map_or(origin, |upstream| &upstream.origin);
        self.output.text.table("[[backend]]", Some(place));
        self.output.text.set("name", quoted(&target.name), Some(place));
        if let Some(protocol) = target.protocol {
            self.output.text.set("protocol", quoted(protocol.as_str()), Some(place));
        }
        let upstream = target.upstream.map(Directive::inner).unwrap_or_default();
        let (balance, hash) = match (self.balance(upstream, target.is_stream), sticky(upstream)) {
            (_, Some(_)) => ("cookie", None),
            (balance, None) => balance,
        };
        self.output.text.set("balance", quoted(balance), Some(place));
        if let Some((hash, origin)) = hash {
            self.output.text.set("hash", quoted(&hash), Some(&origin));
        }
        if scope.is_on("proxy_protocol") {
            self.output.text.set("send_proxy", quoted("v1"), Some(place));
        }
        match scope.find("proxy_connect_timeout") {
            Some(timeout) => self.time("connect_timeout", timeout, 1, 300),
            None => self.output.text.set("connect_timeout", quoted("60s"), None),
        }
        let next = scope.find("proxy_next_upstream").filter(|it| it.word(0) == "off");
        if let Some(off) = next.filter(|_| target.upstream.is_some()) {
            let help = "a server that takes no connection is followed by the next, each once";
            self.tell_of_change(off, help);
        }
        match scope.find("proxy_timeout") {
            Some(timeout) => self.time("idle_timeout", timeout, 1, 10 * 24 * 3600),
            None => self.output.text.set("idle_timeout", quoted("10m"), None),
        }
        let servers: Vec<&Directive> = upstream.iter().filter(|it| it.name == "server").collect();
        self.fails(&servers);
        self.cookie(upstream);
        if target.is_tls {
            self.backend_tls(scope, &target, origin);
        }
        if target.upstream.is_none() {
            self.output.text.table("[[backend.server]]", Some(origin));
            self.output.text.set("address", quoted(&target.address), Some(origin));
        }
        let comes_back = sticky(upstream).is_some();
        for (number, server) in servers.into_iter().enumerate() {
            let limit =
                server.words.iter().find(|it| it.starts_with("max_conns=") && *it != "max_conns=0");
            if let Some(limit) = limit.filter(|_| target.is_shared) {
                let message = format!("`{limit}` holds for each of several backends");
                let help = "this upstream is asked in several ways, and each has connections of its own: lower `connections` of all";
                self.output.warn(&server.origin, message, help);
            }
            self.backend_server(server, comes_back.then_some(number));
        }
    }

    /// The cookie by which clients come back to their server.
    fn cookie(&mut self, upstream: &[Directive]) {
        for other in upstream.iter().filter(|it| it.name == "sticky" && !names_cookie(it)) {
            let help = "`balance = \"cookie\"` of a backend keeps a client with its server by a cookie of kettle's";
            self.tell_of(other, help);
        }
        let Some(sticky) = sticky(upstream) else { return };
        let origin = Some(&sticky.origin);
        self.output.text.table("[backend.cookie]", origin);
        self.output.text.set("name", quoted(sticky.word(1)), origin);
        for option in sticky.words.iter().skip(2) {
            let lower = option.to_ascii_lowercase();
            let (key, value) = option.split_once('=').unwrap_or((option, ""));
            let seconds = if value == "max" { Some(A_YEAR) } else { measure::seconds(value) };
            let seconds = seconds.map(|it| it.clamp(1, A_YEAR));
            let text = &mut self.output.text;
            match (key, seconds) {
                // It is said in any case.
                ("httponly", _) => {}
                ("secure", _) => text.set("secure", "true", origin),
                ("path", _) if value.starts_with('/') => text.set("path", quoted(value), origin),
                ("expires", Some(seconds)) => {
                    text.set("max_age", quoted(&format!("{seconds}s")), origin);
                }
                _ if lower.starts_with("samesite=") && !value.contains('$') => {
                    text.set("same_site", quoted(&value.to_ascii_lowercase()), origin);
                }
                _ => {
                    let message = format!("`{option}` is not carried over");
                    let help = "the cookie is for the host that the client asked for";
                    self.output.warn(&sticky.origin, message, help);
                }
            }
        }
    }

    /// nginx counts them for each server, kettle alike for all of a backend.
    fn fails(&mut self, servers: &[&Directive]) {
        let of = |server: &Directive, key: &str| {
            server.words.iter().find_map(|word| word.strip_prefix(key)).map(str::to_owned)
        };
        let Some(first) = servers.first() else { return };
        let fails = of(first, "max_fails=").and_then(|it| it.parse::<u32>().ok()).unwrap_or(1);
        let time = of(first, "fail_timeout=").and_then(|it| measure::seconds(&it)).unwrap_or(10);
        self.output.text.set("fails", fails.min(1000), Some(&first.origin));
        self.output.text.set(
            "fail_time",
            quoted(&format!("{}s", time.clamp(1, 3600))),
            Some(&first.origin),
        );
        for other in servers {
            let is_same = |key| of(other, key) == of(first, key);
            if !is_same("max_fails=") || !is_same("fail_timeout=") {
                let message = "max_fails and fail_timeout are those of the first server";
                self.output.warn(
                    &other.origin,
                    message,
                    "`fails` and `fail_time` hold for a whole backend",
                );
            }
        }
    }

    /// Writes a server, with a name if it is the one of this number among those that cookies name.
    fn backend_server(&mut self, server: &Directive, named: Option<usize>) {
        let origin = &server.origin;
        let options: Vec<&str> = server.words.iter().skip(1).map(String::as_str).collect();
        if options.contains(&"down") {
            let message = format!("`{}` is left out", spoken(server));
            self.output.warn(origin, message, "write it again when it is to be used");
            return;
        }
        self.output.text.table("[[backend.server]]", Some(origin));
        let address = with_port(server.word(0), 80);
        self.output.text.set("address", quoted(&address), Some(origin));
        if let Some(number) = named {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
            let is_name = address.len() <= NAME_LETTERS_MAX && address.bytes().all(is_plain);
            let name = if is_name { address } else { format!("server-{}", number + 1) };
            self.output.text.set("name", quoted(&name), Some(origin));
        }
        for option in options {
            let (key, value) = option.split_once('=').unwrap_or((option, ""));
            match (key, value.parse::<u64>()) {
                ("weight", Ok(weight)) => {
                    self.output.text.set("weight", weight.clamp(1, 1000), Some(origin));
                }
                ("max_conns", Ok(0)) => {}
                ("max_conns", Ok(limit)) => {
                    self.output.text.set("connections", limit.min(1_000_000), Some(origin));
                }
                ("backup", _) => self.output.text.set("backup", "true", Some(origin)),
                ("max_fails" | "fail_timeout" | "resolve", _) => {}
                _ => {
                    let message = format!("`{option}` is not carried over");
                    self.output.warn(
                        origin,
                        message,
                        "kettle knows weight, connections and backup",
                    );
                }
            }
        }
    }

    fn backend_tls(&mut self, scope: &Scope<'_>, target: &Target<'_>, origin: &Origin) {
        let place = scope.find("proxy_ssl").map_or(origin, |it| &it.origin);
        self.output.text.table("[backend.tls]", Some(place));
        let named = scope.find("proxy_ssl_name").filter(|it| it.word(0) != "$proxy_host");
        if let Some(named) = named.filter(|it| it.word(0).contains('$')) {
            let help = "a backend shows a certificate for one name, that of `proxy_pass` where no other is written";
            self.tell_of(named, help);
        }
        let named = named.filter(|it| !it.word(0).contains('$'));
        let host = match (named, target.upstream) {
            (Some(named), _) => without_port(named.word(0)),
            (None, Some(upstream)) => upstream.word(0),
            (None, None) => without_port(&target.address),
        };
        let bare = host.trim_matches(['[', ']']);
        if bare.parse::<std::net::IpAddr>().is_err() && !host.starts_with("unix:") {
            let origin = named.map_or(place, |it| &it.origin);
            self.output.text.set("name", quoted(host), Some(origin));
        }
        if !scope.is_on("proxy_ssl_verify") {
            let message = "the certificate of the server is verified here";
            let help = "nginx does not without proxy_ssl_verify; `roots` or `pins` below [backend.tls] say whom to trust";
            self.output.warn(place, message, help);
        }
        let path = |writer: &Self, name: &str| {
            let file = scope.find(name)?;
            let path = writer.folder.join(file.word(0)).display().to_string();
            Some((quoted(&path), file.origin.clone()))
        };
        if let Some((roots, origin)) = path(self, "proxy_ssl_trusted_certificate") {
            self.output.text.set("roots", roots, Some(&origin));
        }
        let chain = path(self, "proxy_ssl_certificate");
        let key = path(self, "proxy_ssl_certificate_key");
        self.offer_to_servers(scope).write(&mut self.output.text);
        if let (Some((chain, origin)), Some((key, _))) = (chain, key) {
            let pair = format!("{{ chain = {chain}, key = {key} }}");
            self.output.text.set("certificate", pair, Some(&origin));
        }
    }
}

const SHARED: &str = "what guards a socket guards all of it, and a listener of kettle has one backend for names that no site has: give each server \
                      an address of its own";

fn without_port(address: &str) -> &str {
    match address.rsplit_once(':') {
        Some((host, _)) if !address.starts_with("unix:") => host,
        _ => address,
    }
}

/// Returns the directive that says by which cookie clients come back to their server.
fn sticky(upstream: &[Directive]) -> Option<&Directive> {
    upstream.iter().find(|it| it.name == "sticky" && names_cookie(it))
}

fn names_cookie(sticky: &Directive) -> bool {
    sticky.word(0) == "cookie" && !sticky.word(1).contains('$')
}

const A_YEAR: u32 = 365 * 24 * 3600;

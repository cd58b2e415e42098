//! The servers of `http`: on which sockets each of them is, under which names it answers there, and the listeners.

use std::collections::BTreeSet;

use kettle_config::{ANY_NAME, ListenAddress, Origin, quoted};

use super::answer::redirect_of;
use super::site::{Face, ServerBlock};
use super::{Writer, trust_alike};
use crate::nginx::listen::Listen;
use crate::nginx::location::is_whole;
use crate::nginx::scope::Scope;
use crate::nginx::syntax::Directive;
use crate::nginx::vocabulary::{Fate, Term};
use crate::offer::list;

/// A socket and the servers on it, in the order of the file.
struct Socket {
    listen: Listen,
    servers: Vec<usize>,
    default: usize,
    /// True if its default site is not that of the file.
    names_default: bool,
    /// True if another one is for all addresses of its port, or for one of them.
    is_beside: bool,
}

impl Socket {
    /// Returns the directive that keeps slashes in a row there: nginx reads the path of a request as the default server says,
    /// or the one of the name in TLS, before it knows which server is asked.
    fn unmerged<'t>(&self, servers: &[ServerBlock<'t>]) -> Option<&'t Directive> {
        let counts = |number: &&usize| self.listen.is_tls || **number == self.default;
        let mut here = self.servers.iter().filter(counts).filter_map(|it| servers.get(*it));
        here.find_map(|it| it.scope.find("merge_slashes").filter(|it| it.word(0) == "off"))
    }
}

impl Writer<'_> {
    pub(super) fn servers(&mut self, servers: &[ServerBlock<'_>]) {
        self.output.places.all += servers.iter().map(ServerBlock::places).sum::<usize>();
        let mut sockets = self.sockets(servers);
        let defaults = self.defaults(servers, &mut sockets);
        let mut faces: Vec<Face> = Vec::new();
        let mut shown: Vec<Vec<usize>> = Vec::new();
        for socket in &sockets {
            shown.push(match lead_of(servers, socket) {
                Some(_) => Vec::new(),
                None => self.faces(servers, socket, &defaults, &mut faces),
            });
        }
        let mut sites: Vec<(Vec<String>, Option<String>)> = Vec::new();
        let plain = || sockets.iter().zip(&shown).filter(|(it, _)| !it.listen.is_tls);
        for (socket, here) in plain() {
            let all: Vec<&Vec<usize>> = plain().map(|(_, shown)| shown).collect();
            name_default(socket, here, &all, &mut faces);
        }
        for (socket, shown) in sockets.iter().zip(&shown) {
            let names = names_of(shown, &mut faces, socket.listen.is_tls);
            sites.push((names, default_of(socket, shown, &mut faces)));
        }
        for ((socket, sites), shown) in sockets.iter().zip(&sites).zip(&shown) {
            self.http_listener(servers, socket, sites, !shown.is_empty());
        }
        self.known_names.extend(faces.iter().flat_map(|face| face.names.clone()));
        let unmerged: Vec<_> =
            sockets.iter().filter_map(|it| Some((it, it.unmerged(servers)?))).collect();
        for (number, server) in servers.iter().enumerate() {
            let kept = unmerged.iter().find(|(it, _)| it.servers.contains(&number));
            let kept = kept.map(|(_, directive)| *directive);
            let mut own = faces.iter().filter(|face| face.server == number);
            if let Some(first) = own.next() {
                let closed = self.site(server, first, kept);
                self.output.places.closed += closed;
            }
            for face in own {
                self.site(server, face, kept);
            }
        }
    }

    /// The sockets that can be listened on.
    fn sockets(&mut self, servers: &[ServerBlock<'_>]) -> Vec<Socket> {
        let mut sockets: Vec<Socket> = Vec::new();
        for (number, server) in servers.iter().enumerate() {
            for listen in &server.listens {
                let known = sockets.iter_mut().find(|it| it.listen.address == listen.address);
                let Some(known) = known else {
                    let listen = listen.clone();
                    let servers = vec![number];
                    let names_default = false;
                    let is_beside = false;
                    let socket =
                        Socket { listen, servers, default: number, names_default, is_beside };
                    sockets.push(socket);
                    continue;
                };
                known.servers.push(number);
                if listen.is_default && !known.listen.is_default {
                    known.default = number;
                }
                known.listen.takes(listen);
            }
        }
        // nginx listens on the wider address alone, and looks where a connection came in: an address that is not there hurts nobody.
        let addresses: Vec<ListenAddress> =
            sockets.iter().map(|it| it.listen.address.clone()).collect();
        for socket in &mut sockets {
            let own = &socket.listen;
            socket.is_beside = addresses.iter().any(|it| *it != own.address && own.collides(it));
        }
        let is_there = |it: &Socket| {
            let ip = it.listen.address.socket().map(|it| it.ip());
            !it.is_beside || ip.is_none_or(|it| it.is_unspecified() || self.surroundings.is_own(it))
        };
        let (kept, gone): (Vec<Socket>, Vec<Socket>) = sockets.into_iter().partition(is_there);
        for Socket { listen, .. } in gone {
            let message = format!("nobody listens on {}", listen.address);
            self.output.lose(&listen.origin, message, NOT_OWN);
        }
        kept
    }

    /// The servers whose sites answer for names that no site has wherever they are asked, one for TLS and one for plain HTTP. Other
    /// sockets name theirs.
    fn defaults(&mut self, servers: &[ServerBlock<'_>], sockets: &mut [Socket]) -> BTreeSet<usize> {
        let mut chosen: BTreeSet<usize> = BTreeSet::new();
        let may: Vec<bool> = sockets.iter().map(|it| self.may_be_default(servers, it)).collect();
        for at in 0..sockets.len() {
            let Some(socket) = sockets.get(at).filter(|it| lead_of(servers, it).is_none()) else {
                continue;
            };
            if chosen.contains(&socket.default) {
                continue;
            }
            let default = socket.default;
            let own = || sockets.iter().zip(&may).filter(|(it, _)| it.servers.contains(&default));
            let is_taken = |kind: bool| {
                let mut others = sockets.iter().filter(|it| it.listen.is_tls == kind);
                others.any(|it| chosen.contains(&it.default))
            };
            let is_everywhere = own().all(|(it, _)| it.default == default);
            if is_everywhere && !own().any(|(it, _)| is_taken(it.listen.is_tls)) {
                if own().all(|(_, may)| *may) {
                    chosen.insert(default);
                }
            } else if may.get(at) == Some(&true) {
                sockets.get_mut(at).into_iter().for_each(|it| it.names_default = true);
            }
        }
        chosen
    }

    /// True if the default server of a socket may answer for all names that no site has: some may be another server's, which asks for
    /// more.
    fn may_be_default(&mut self, servers: &[ServerBlock<'_>], socket: &Socket) -> bool {
        if lead_of(servers, socket).is_some() {
            return false;
        }
        let others = socket.servers.iter().filter(|it| **it != socket.default);
        for server in others.filter_map(|it| servers.get(*it)) {
            let is_guarded = is_guarded(server.scope.own());
            if let Some(place) = server.unwritten.as_ref().filter(|_| is_guarded) {
                let message = "no site answers for names that no site has";
                self.output.lose(place, message, NO_DEFAULT);
                return false;
            }
        }
        true
    }

    /// The sites of a socket, each with the names that no server before it has there.
    fn faces(
        &mut self,
        servers: &[ServerBlock<'_>],
        socket: &Socket,
        defaults: &BTreeSet<usize>,
        faces: &mut Vec<Face>,
    ) -> Vec<usize> {
        let in_tls = socket.listen.is_tls;
        let mut known: BTreeSet<&String> = BTreeSet::new();
        let mut shown = Vec::new();
        for number in &socket.servers {
            let Some(server) = servers.get(*number) else { continue };
            let (names, taken): (Vec<_>, Vec<_>) =
                server.names.iter().partition(|name| known.insert(name));
            for name in taken {
                let message = format!(
                    "another server has the name {name} on {} already",
                    socket.listen.address
                );
                self.output.warn(server.origin, message, "the first of both answers, as in nginx");
            }
            let is_default = socket.default == *number && defaults.contains(number);
            let refuses = in_tls && server.scope.is_on("ssl_reject_handshake");
            if refuses && names.is_empty() {
                continue;
            }
            let is_named = is_default || socket.default == *number && socket.names_default;
            // Without a listener, who connects there would meet the sites of the wider address.
            let is_needed =
                socket.is_beside && socket.default == *number && lead_of(servers, socket).is_none();
            if names.is_empty() && !is_named && !is_needed {
                let message = "nobody asks for this server by a name";
                self.output.warn(server.origin, message, "write server_name");
                continue;
            }
            let names = names.into_iter().cloned().collect();
            let sheds_client_auth = !in_tls && server.asks_for_certificates();
            let face = Face {
                server: *number,
                names,
                is_default: is_default && !refuses,
                refuses,
                sheds_client_auth,
                in_tls: false,
                in_plain: false,
            };
            let is_same = |it: &Face| Face { in_tls: false, in_plain: false, ..it.clone() } == face;
            let at = faces.iter().position(is_same).unwrap_or_else(|| {
                faces.push(face);
                faces.len() - 1
            });
            for face in faces.iter_mut().skip(at).take(1) {
                face.in_tls |= in_tls;
                face.in_plain |= !in_tls;
            }
            shown.push(at);
        }
        shown
    }

    fn http_listener(
        &mut self,
        servers: &[ServerBlock<'_>],
        socket: &Socket,
        (sites, default): &(Vec<String>, Option<String>),
        is_asked: bool,
    ) {
        let listen = &socket.listen;
        let origin = Some(&listen.origin);
        let lead = lead_of(servers, socket);
        let has_sites = lead.is_some() || !sites.is_empty();
        // Without a list a listener takes all of TLS.
        if !(has_sites || listen.is_tls && is_asked) {
            let message = format!("nobody listens on {}", listen.address);
            return self.output.warn(&listen.origin, message, "no server there has a name");
        }
        self.output.text.table("[[listener]]", origin);
        self.output.text.set("address", quoted(&listen.address.to_string()), origin);
        if listen.address.unix().is_some() {
            self.output.text.set("mode", quoted("0666"), origin);
        }
        match (lead, listen.is_tls) {
            (Some((status, port)), _) => {
                self.output.text.set("kind", quoted("redirect"), origin);
                self.output.text.set("redirect_status", status, origin);
                if port != HTTPS_PORT {
                    self.output.text.set("redirect_port", port, origin);
                }
            }
            (None, true) => {}
            (None, false) => self.output.text.set("kind", quoted("http"), origin),
        }
        if !sites.is_empty() {
            self.output.text.set("sites", list(sites.iter().map(String::as_str)), origin);
        }
        if let Some(name) = default {
            self.output.text.set("default_site", quoted(name), origin);
        }
        let default_server = servers.get(socket.default);
        let refuses = default_server.and_then(|it| it.scope.find("ssl_reject_handshake"));
        if let Some(refuses) = refuses.filter(|it| listen.is_tls && it.word(0) == "on") {
            self.output.text.set("unknown_names", quoted("refuse"), Some(&refuses.origin));
        }
        self.listener_settings(listen);
        let here = || socket.servers.iter().filter_map(|number| servers.get(*number));
        if lead.is_none() {
            self.http2(here().collect(), listen);
        }
        let scopes: Vec<&Scope<'_>> = here().map(|server| &server.scope).collect();
        if listen.takes_proxy {
            self.takes_any_header |= !trust_alike(&scopes);
            self.accept_proxy(&scopes, listen);
        }
        self.trusted_proxies(&scopes);
        let commands =
            scopes.first().filter(|_| listen.is_tls).map(|it| it.all("ssl_conf_command"));
        if let Some(origin) = commands.and_then(|commands| ktls_option(&commands)) {
            self.output.text.set("path", quoted("user"), Some(&origin));
        }
    }

    /// `listen … http2` is for all servers on an address, `http2` for each of them.
    fn http2(&mut self, servers: Vec<&ServerBlock<'_>>, listen: &Listen) {
        let is_on = |server: &&ServerBlock<'_>| server.scope.is_on("http2");
        let on = servers.iter().copied().find(is_on).and_then(|server| server.scope.find("http2"));
        if on.is_none() && !listen.has_http2 {
            // It is off in nginx, and on in kettle where TLS is spoken.
            if listen.is_tls {
                self.output.text.set("http2", "false", Some(&listen.origin));
            }
            return;
        }
        let origin = on.map_or(&listen.origin, |directive| &directive.origin);
        self.output.text.set("http2", "true", Some(origin));
        if !listen.has_http2 {
            for server in servers.into_iter().filter(|server| !is_on(server)) {
                let message = format!("this server speaks HTTP/2 on {} as well", listen.address);
                self.output.warn(server.origin, message, "it is a matter of the whole listener");
            }
        }
    }
}

/// The names by which a listener takes these sites; none where it takes all that there are.
fn names_of(shown: &[usize], faces: &mut [Face], is_tls: bool) -> Vec<String> {
    let in_tls = faces.iter().filter(|face| face.in_tls).count();
    if is_tls && in_tls == shown.len() {
        return Vec::new();
    }
    let mut names = Vec::new();
    for number in shown {
        let Some(face) = faces.get(*number) else { continue };
        let is_default = face.is_default;
        if !is_default || !face.names.is_empty() {
            names.push(own_name(*number, faces, is_tls));
        }
        names.extend(is_default.then(|| ANY_NAME.to_owned()));
    }
    names
}

/// Gives the default site of a socket without TLS the names of sites that are not on it, as nginx does: to these, kettle would
/// lead by HTTPS. Of those that are beside it on another socket it would take their names there.
fn name_default(socket: &Socket, shown: &[usize], all: &[&Vec<usize>], faces: &mut [Face]) {
    let is_default = |it: &Face| it.server == socket.default && !it.in_tls;
    let own = shown.iter().find(|it| faces.get(**it).is_some_and(is_default));
    let beside: Vec<usize> = all
        .iter()
        .copied()
        .filter(|it| own.is_some_and(|own| it.contains(own)))
        .flatten()
        .copied()
        .collect();
    let is_here = |number: &usize| beside.contains(number);
    let others = faces.iter().enumerate().filter(|(number, it)| it.in_tls && !is_here(number));
    let mut names: Vec<String> = others.flat_map(|(_, it)| it.names.clone()).collect();
    names.retain(|name| {
        shown.iter().all(|it| faces.get(*it).is_some_and(|it| !it.names.contains(name)))
    });
    names.dedup();
    let mut own = shown.iter().filter(|it| faces.get(**it).is_some_and(is_default));
    if let Some(face) = own.next().and_then(|it| faces.get_mut(*it)) {
        let is_new = |name: &String| !face.names.contains(name);
        let new: Vec<String> = names.into_iter().filter(is_new).collect();
        face.names.extend(new);
    }
}

/// The site that a socket makes its default one, where that is not the one of the file.
fn default_of(socket: &Socket, shown: &[usize], faces: &mut [Face]) -> Option<String> {
    let mut own = shown.iter().copied().filter(|_| socket.names_default);
    let default = own.find(|it| faces.get(*it).is_some_and(|it| it.server == socket.default))?;
    faces.get(default).filter(|it| !it.refuses)?;
    Some(own_name(default, faces, socket.listen.is_tls))
}

/// A name that no other site has where this one is asked.
fn own_name(number: usize, faces: &mut [Face], is_tls: bool) -> String {
    let names = faces.get(number).into_iter().flat_map(|face| &face.names);
    let own = names.into_iter().find(|name| taken(faces, name, is_tls) == [number]).cloned();
    own.unwrap_or_else(|| {
        let name = format!("server-{number}.invalid");
        faces.get_mut(number).into_iter().for_each(|face| face.names.push(name.clone()));
        name
    })
}

/// The sites that a listener would take by a name, as kettle finds them.
fn taken(faces: &[Face], name: &str, is_tls: bool) -> Vec<usize> {
    let named = |in_tls: bool| {
        let of = move |(_, face): &(usize, &Face)| {
            face.in_tls == in_tls && face.names.iter().any(|it| it == name)
        };
        faces.iter().enumerate().filter(of).map(|(number, _)| number).collect::<Vec<_>>()
    };
    let plain = named(false);
    if is_tls || plain.is_empty() { named(true) } else { plain }
}

/// The status and the port of a socket that leads everybody to HTTPS, and does nothing else.
fn lead_of(servers: &[ServerBlock<'_>], socket: &Socket) -> Option<(u16, u16)> {
    let mut leads = socket.servers.iter().filter_map(|it| servers.get(*it)).map(lead);
    let first = leads.next()?.filter(|_| !socket.listen.is_tls)?;
    leads.all(|other| other == Some(first)).then_some(first)
}

/// The same of a server: `return 301 https://$host$request_uri` and nothing before it.
fn lead(server: &ServerBlock<'_>) -> Option<(u16, u16)> {
    let decides = |it: &&Directive| ["break", "if", "return", "rewrite"].contains(&&*it.name);
    let own = server.scope.own();
    let mut scope = server.scope.clone();
    let first = own.iter().find(decides).or_else(|| {
        let mut locations = own.iter().filter(|it| it.name == "location");
        let whole = locations.next().filter(|it| is_whole(&it.words))?;
        scope = server.scope.with_location(whole);
        locations.next().is_none().then(|| whole.inner().iter().find(decides)).flatten()
    });
    // A listener that redirects adds nothing.
    if ["add_header", "expires"].iter().any(|it| scope.find(it).is_some()) {
        return None;
    }
    let (to, status) = first.and_then(redirect_of)?;
    let port = to.strip_prefix("https://{host}")?.strip_suffix("{path}")?;
    let port =
        if port.is_empty() { Some(HTTPS_PORT) } else { port.strip_prefix(':')?.parse().ok() };
    Some((status, port?)).filter(|_| [301, 302, 307, 308].contains(&status))
}

/// True if something in a block decides who is served.
fn is_guarded(block: &[Directive]) -> bool {
    let guards = |it: &Directive| match (it.name.as_str(), Term::fate_of(&it.name)) {
        ("deny" | "limit_except", _) => true,
        ("auth_basic" | "auth_request" | "ssl_verify_client", _) | (_, Fate::Guards(_)) => {
            it.word(0) != "off"
        }
        ("if" | "return", _) => true,
        _ => false,
    };
    block.iter().any(|it| guards(it) || is_guarded(it.inner()))
}

/// Returns the place where kernel TLS was turned off by name.
fn ktls_option(commands: &[&Directive]) -> Option<Origin> {
    let options = commands.iter().find(|command| command.word(0) == "Options")?;
    let is_off = options.word(1).split(',').any(|option| option.trim() == "-KTLS");
    is_off.then(|| options.origin.clone())
}

const HTTPS_PORT: u16 = 443;
const NOT_OWN: &str = "this machine has no such address; who connects to it later would meet the sites of all its addresses";
const NO_DEFAULT: &str = "this name is for some that no site can have, and the default server asks for less than this one";

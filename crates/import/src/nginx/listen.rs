//! `listen`: an address with what is said of it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use kettle_config::{ListenAddress, Origin, collide};

use super::syntax::Directive;
use crate::Surroundings;
use crate::output::Output;

#[derive(Clone, Debug)]
pub(super) struct Listen {
    pub(super) address: ListenAddress,
    pub(super) is_tls: bool,
    pub(super) is_default: bool,
    pub(super) takes_proxy: bool,
    pub(super) has_http2: bool,
    pub(super) backlog: Option<u32>,
    pub(super) keepalive_seconds: Option<u32>,
    pub(super) origin: Origin,
}

/// The addresses of a server. `port` is where it listens that does not say.
pub(super) fn all(
    server: &[Directive],
    origin: &Origin,
    port: u16,
    surroundings: &dyn Surroundings,
    output: &mut Output,
) -> Vec<Listen> {
    let is_tls = server.iter().any(|it| it.name == "ssl" && it.word(0) == "on");
    let mut all: Vec<Listen> = Vec::new();
    let written: Vec<&Directive> = server.iter().filter(|it| it.name == "listen").collect();
    for directive in &written {
        for listen in of(directive, port, surroundings, output) {
            let same = all.iter_mut().find(|other| other.address == listen.address);
            match same {
                // `listen … quic` beside `listen … ssl`.
                Some(same) => same.takes(&listen),
                None => all.push(listen),
            }
        }
    }
    if written.is_empty() {
        let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
        all.push(Listen::at(any.into(), origin));
    }
    all.iter_mut().for_each(|listen| listen.is_tls |= is_tls);
    all
}

impl Listen {
    /// True if connections to one of both may be for the other.
    pub(super) fn collides(&self, other: &ListenAddress) -> bool {
        self.address == *other
            || matches!((self.address.socket(), other.socket()), (Some(one), Some(other)) if collide(one, other))
    }

    /// Adds what another server says of the same address.
    pub(super) fn takes(&mut self, other: &Self) {
        self.is_tls |= other.is_tls;
        self.is_default |= other.is_default;
        self.takes_proxy |= other.takes_proxy;
        self.has_http2 |= other.has_http2;
        self.backlog = self.backlog.or(other.backlog);
        self.keepalive_seconds = self.keepalive_seconds.or(other.keepalive_seconds);
    }

    fn at(address: ListenAddress, origin: &Origin) -> Self {
        Self {
            address,
            is_tls: false,
            is_default: false,
            takes_proxy: false,
            has_http2: false,
            backlog: None,
            keepalive_seconds: None,
            origin: origin.clone(),
        }
    }
}

fn of(
    directive: &Directive,
    port: u16,
    surroundings: &dyn Surroundings,
    output: &mut Output,
) -> Vec<Listen> {
    let origin = &directive.origin;
    let written = directive.word(0);
    let found = match written.strip_prefix("unix:") {
        Some(path) => return with_words(directive, vec![ListenAddress::Unix(path.into())], output),
        None => addresses(written, port, surroundings),
    };
    let mut addresses = match found {
        Ok(addresses) => addresses,
        Err(why) => {
            output.find(origin, format!("cannot listen on {written}: {why}"), "write ADDRESS:PORT");
            return Vec::new();
        }
    };
    if directive.words.iter().any(|word| word == "ipv6only=off") {
        let unspecified: Vec<u16> =
            addresses.iter().filter(|it| it.ip().is_unspecified()).map(SocketAddr::port).collect();
        addresses.extend(
            unspecified.into_iter().map(|port| SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))),
        );
    }
    with_words(directive, addresses.into_iter().map(ListenAddress::from).collect(), output)
}

/// The addresses with what is said of them.
fn with_words(
    directive: &Directive,
    addresses: Vec<ListenAddress>,
    output: &mut Output,
) -> Vec<Listen> {
    let origin = &directive.origin;
    let written = directive.word(0);
    let Some(first) = addresses.first() else { return Vec::new() };
    let mut listen = Listen::at(first.clone(), origin);
    for word in directive.words.iter().skip(1) {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        match (key, value) {
            ("ssl", _) => listen.is_tls = true,
            ("default_server" | "default", _) => listen.is_default = true,
            ("proxy_protocol", _) => listen.takes_proxy = true,
            ("backlog", number) => match number.parse::<i64>() {
                Ok(number @ 1..) => {
                    let number = number.min(BACKLOG_MAX.into());
                    listen.backlog = u32::try_from(number).ok();
                }
                Ok(_) => {}
                Err(_) => {
                    output.find(origin, format!("`{word}` is no number"), "write backlog=511")
                }
            },
            ("so_keepalive", value) => listen.keepalive_seconds = keepalive(value),
            // Each worker has a listener of its own, and addresses are bound one by one.
            ("reuseport" | "bind" | "ipv6only" | "deferred", _) => {}
            ("udp" | "quic", _) => {
                let help = "kettle speaks TCP";
                output.warn(origin, format!("{written} {key} is not listened on"), help);
                return Vec::new();
            }
            ("http2", _) => listen.has_http2 = true,
            ("spdy" | "http3", _) => {
                let help = "HTTP/1.1 is spoken, which every client takes";
                output.warn(origin, format!("`{key}` is not carried over"), help);
            }
            _ => output.warn(origin, format!("`{word}` is not carried over"), "the kernel decides"),
        }
    }
    addresses.into_iter().map(|address| Listen { address, ..listen.clone() }).collect()
}

/// Addresses for `PORT`, `HOST`, `HOST:PORT`, `*:PORT` and `[V6]:PORT`.
pub(super) fn addresses(
    written: &str,
    default_port: u16,
    surroundings: &dyn Surroundings,
) -> Result<Vec<SocketAddr>, String> {
    if let Ok(port) = written.parse::<u16>() {
        let any = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
        return if port == 0 { Err("0 is no port".to_owned()) } else { Ok(vec![any]) };
    }
    let (host, port) = match written.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => match port.parse() {
            Ok(port @ 1..) => (host, port),
            _ => return Err(format!("`{port}` is no port")),
        },
        _ => (written, default_port),
    };
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if bare == "*" {
        return Ok(vec![(Ipv4Addr::UNSPECIFIED, port).into()]);
    }
    if let Ok(ip) = bare.parse::<IpAddr>() {
        return Ok(vec![(ip, port).into()]);
    }
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
    if bare.is_empty() || !bare.chars().all(is_name) {
        return Err("it is no host".to_owned());
    }
    surroundings.addresses(bare, port).map_err(|error| error.to_string())
}

/// `on`, `off`, or `IDLE:INTERVAL:COUNT`.
fn keepalive(value: &str) -> Option<u32> {
    let idle = value.split(':').next().unwrap_or_default();
    match value {
        "off" | "" => None,
        // The default of Linux.
        "on" => Some(7200),
        _ => super::measure::seconds(idle).map(|seconds| seconds.clamp(1, KEEPALIVE_SECONDS_MAX)),
    }
}

const BACKLOG_MAX: u32 = 65_535;
const KEEPALIVE_SECONDS_MAX: u32 = 9 * 3600;

//! Socket addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::quote::quoted;
use super::{Fallback, Form, Kind};
use crate::finding::Instead;
use crate::located::Located;
use crate::read::{Item, Reader};

/// An IP address and a port; `example` is shown where none was understood.
pub(crate) fn address(example: &'static str) -> Address {
    Address { example }
}

pub(crate) struct Address {
    example: &'static str,
}

impl Kind for Address {
    type Value = SocketAddr;

    fn fallback(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))
    }

    fn form(&self) -> Form {
        Form::Address { example: self.example }
    }

    fn fallback_text(&self) -> Fallback {
        Fallback::Required
    }

    fn read(&self, item: &Item<'_>, reader: &mut Reader<'_>) -> Option<SocketAddr> {
        let takes = "an IP address and a port";
        let Some(text) = item.as_str() else {
            let wrong = match item.value().as_integer() {
                Some(number) => Misread::of(number.as_str()),
                None => Misread::Other,
            };
            reader.wrong_type(item, takes, wrong.instead(self.example));
            return None;
        };
        match text.parse::<SocketAddr>() {
            Ok(address) if address.port() > 0 => Some(address),
            Ok(mut address) => {
                let message = format!("`{}` takes {takes} from 1 to 65535", item.name());
                address.set_port(443);
                reader.find(item, message, Instead::write(quoted(&address.to_string())));
                None
            }
            Err(_) => {
                let wrong = Misread::of(text);
                let port = if matches!(wrong, Misread::Port) { " from 1 to 65535" } else { "" };
                let message = format!("`{}` takes {takes}{port}", item.name());
                reader.find(item, message, wrong.instead(self.example));
                None
            }
        }
    }
}

/// Why a text is no address.
enum Misread {
    /// It is one in another server's notation.
    Notation(SocketAddr),
    /// The port is too large.
    Port,
    /// The same, and there is no address.
    LonePort,
    /// A link's name stands behind an IPv6 address (RFC 4007 §11); only its number can be bound.
    Zone { address: Ipv6Addr, zone: String, port: u16 },
    /// Nothing is known.
    Other,
}

impl Misread {
    fn of(text: &str) -> Self {
        if let Some(address) = meant(text) {
            return Self::Notation(address);
        }
        match text.trim().rsplit_once(':') {
            Some((_, port)) if is_number(port) && port.parse::<u16>().is_err() => Self::Port,
            None if is_number(text.trim()) => Self::LonePort,
            Some((host, port)) => Self::zone(host, port).unwrap_or(Self::Other),
            None => Self::Other,
        }
    }

    fn zone(host: &str, port: &str) -> Option<Self> {
        let (address, zone) = host.strip_prefix('[')?.strip_suffix(']')?.split_once('%')?;
        Some(Self::Zone {
            address: address.parse().ok()?,
            zone: zone.to_owned(),
            port: port.parse().ok()?,
        })
    }

    fn instead(&self, example: &str) -> Instead {
        match self {
            Self::Notation(address) => Instead::write(quoted(&address.to_string())),
            Self::Port => Instead::act("write a port that exists behind the last colon"),
            Self::LonePort => Instead::act(format!(
                "write the address too, and a port from 1 to 65535: {}",
                quoted(example)
            )),
            Self::Zone { address, zone, port } => Instead::act(format!(
                "write the number that `ip link` shows for {zone}: \"[{address}%2]:{port}\" for 2"
            )),
            Self::Other => Instead::write(quoted(example)),
        }
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The address a text in another server's notation stands for.
fn meant(text: &str) -> Option<SocketAddr> {
    let text = text.trim();
    if let Ok(port) = text.parse::<u16>() {
        return Some(on_all(port));
    }
    if let Ok(address) = text.trim_matches(['[', ']']).parse::<IpAddr>() {
        return Some(SocketAddr::new(address, 443));
    }
    let (host, port) = text.rsplit_once(':')?;
    let port: u16 = port.parse().ok()?;
    match host {
        "" | "*" => Some(on_all(port)),
        "localhost" => Some(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
        _ => host.parse::<Ipv6Addr>().ok().map(|address| SocketAddr::from((address, port))),
    }
}

fn on_all(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))
}

/// An address that keeps its place.
pub(crate) fn located_address(example: &'static str) -> LocatedAddress {
    LocatedAddress { address: Address { example } }
}

pub(crate) struct LocatedAddress {
    address: Address,
}

impl Kind for LocatedAddress {
    type Value = Located<SocketAddr>;

    fn fallback(&self) -> Located<SocketAddr> {
        Located::not_written(self.address.fallback())
    }

    fn form(&self) -> Form {
        self.address.form()
    }

    fn fallback_text(&self) -> Fallback {
        Fallback::Required
    }

    fn read(&self, item: &Item<'_>, reader: &mut Reader<'_>) -> Option<Located<SocketAddr>> {
        let address = self.address.read(item, reader)?;
        Some(Located::new(address, reader.source().position(item.span().start)))
    }
}

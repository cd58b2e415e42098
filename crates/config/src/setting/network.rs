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
            let port = item.value().as_integer().and_then(|port| port.as_str().parse().ok());
            let instead = port.map(|port| on_all(port).to_string());
            let instead = instead.unwrap_or_else(|| self.example.to_owned());
            reader.wrong_type(item, takes, Instead::write(quoted(&instead)));
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
                let instead = meant(text).map(|address| address.to_string());
                let instead = instead.unwrap_or_else(|| self.example.to_owned());
                let message = format!("`{}` takes {takes}", item.name());
                reader.find(item, message, Instead::write(quoted(&instead)));
                None
            }
        }
    }
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

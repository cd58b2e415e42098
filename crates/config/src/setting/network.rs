//! Socket addresses and networks.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::quote::quoted;
use super::rules::{Guess, TextRule, Wrong};
use super::section::meaning;
use super::text::texts;
use super::{DefaultText, ValueShape, ValueType};
use crate::diagnostic::Help;
use crate::read::{Item, Reader};

/// An IP address and a port; `example` is shown where none was understood.
pub(crate) fn address(example: &'static str) -> Address {
    Address { example }
}

pub(crate) struct Address {
    example: &'static str,
}

impl ValueType for Address {
    type Value = SocketAddr;

    fn default_value(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0))
    }

    fn shape(&self) -> ValueShape {
        ValueShape::Address { example: self.example }
    }

    fn default_text(&self) -> DefaultText {
        DefaultText::Required
    }

    fn read(&self, item: &Item<'_>, reader: &mut Reader<'_>) -> Option<SocketAddr> {
        let takes = "an IP address and a port";
        let Some(text) = item.as_str() else {
            let wrong = match item.value().as_integer() {
                Some(number) => Misread::of(number.as_str()),
                None => Misread::Other,
            };
            reader.wrong_type(item, takes, wrong.help(self.example));
            return None;
        };
        match text.parse::<SocketAddr>() {
            Ok(address) if address.port() > 0 => Some(address),
            Ok(mut address) => {
                let message = format!("`{}` takes {takes} from 1 to 65535", item.name());
                address.set_port(443);
                reader.report(item, message, Help::write(quoted(&address.to_string())));
                None
            }
            Err(_) => {
                let wrong = Misread::of(text);
                let port = if matches!(wrong, Misread::Port) { " from 1 to 65535" } else { "" };
                let message = format!("`{}` takes {takes}{port}", item.name());
                reader.report(item, message, wrong.help(self.example));
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
        if let Some(address) = suggestion(text) {
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

    fn help(&self, example: &str) -> Help {
        match self {
            Self::Notation(address) => Help::write(quoted(&address.to_string())),
            Self::Port => Help::act("write a port that exists behind the last colon"),
            Self::LonePort => Help::act(format!(
                "write the address too, and a port from 1 to 65535: {}",
                quoted(example)
            )),
            Self::Zone { address, zone, port } => Help::act(format!(
                "write the number that `ip link` shows for {zone}: \"[{address}%2]:{port}\" for 2"
            )),
            Self::Other => Help::write(quoted(example)),
        }
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// The address a text in another server's notation stands for.
fn suggestion(text: &str) -> Option<SocketAddr> {
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

/// A network: all addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    first: IpAddr,
    prefix_bits: u8,
}

impl Network {
    /// The network of an address; none for more bits than it has, or one that no client is in.
    pub fn around(address: IpAddr, prefix_bits: u8) -> Option<Self> {
        let is_v4 = address.is_ipv4();
        let is_right = prefix_bits <= if is_v4 { 32 } else { 128 }
            && address.to_canonical().is_ipv4() == is_v4;
        is_right.then(|| Self { first: first_of(address, prefix_bits), prefix_bits })
    }

    /// True if all addresses of another network belong to it.
    pub fn holds(&self, other: &Self) -> bool {
        self.prefix_bits <= other.prefix_bits && self.contains(other.first)
    }

    /// True if an address belongs to it. An IPv4 address that is written as IPv6 counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.first.is_ipv4()
            && first_of(address, self.prefix_bits) == self.first
    }

    /// Its first address.
    pub fn first(&self) -> IpAddr {
        self.first
    }

    /// The number of bits its addresses begin with alike.
    pub fn prefix_bits(&self) -> u8 {
        self.prefix_bits
    }

    /// Reads `10.0.0.0/8`, or an address alone.
    pub(super) fn parse(text: &str) -> Result<Self, Wrong> {
        let wrong = |why: &str, help| Wrong { why: why.to_owned(), help };
        let (address, bits) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
        let Ok(address) = address.trim_matches(['[', ']']).parse::<IpAddr>() else {
            return Err(wrong("it begins with an IP address", Guess::None));
        };
        let bits_max = if address.is_ipv4() { 32 } else { 128 };
        let prefix_bits = match bits {
            None => bits_max,
            Some(bits) => match bits.parse::<u8>() {
                Ok(bits) if bits <= bits_max => bits,
                _ => {
                    let why = format!("behind the slash stands a number from 0 to {bits_max}");
                    return Err(wrong(&why, Guess::None));
                }
            },
        };
        // Clients are looked at in their own form, so that it would be nobody's network.
        if let (IpAddr::V6(_), IpAddr::V4(suggestion), Some(bits)) =
            (address, address.to_canonical(), prefix_bits.checked_sub(96))
        {
            let suggestion = Guess::Text(format!("{}/{bits}", first_of(suggestion.into(), bits)));
            return Err(wrong("it is an IPv4 address in the form of IPv6", suggestion));
        }
        let network = Self { first: first_of(address, prefix_bits), prefix_bits };
        if network.first != address {
            let why = "bits behind the prefix are set";
            return Err(wrong(why, Guess::Text(network.to_string())));
        }
        Ok(network)
    }
}

impl fmt::Display for Network {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.first, self.prefix_bits)
    }
}

fn first_of(address: IpAddr, prefix_bits: u8) -> IpAddr {
    let prefix_bits = u32::from(prefix_bits);
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - prefix_bits).unwrap_or(0);
            Ipv4Addr::from_bits(address.to_bits() & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - prefix_bits).unwrap_or(0);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}

/// A list of networks, possibly empty.
pub(crate) fn networks() -> impl ValueType<Value = Vec<Network>> {
    meaning(texts(&NETWORK, &[]), |texts| networks_of(&texts))
}

/// Reads those of these texts that are networks.
pub(super) fn networks_of(texts: &[String]) -> Vec<Network> {
    texts.iter().filter_map(|text| Network::parse(text).ok()).collect()
}

/// A network, or one address.
const NETWORK: TextRule = TextRule { what: "a network", example: "10.0.0.0/8", read: network_text };

/// Reads a network, for a rule.
pub(super) fn network_text(text: &str) -> Result<String, Wrong> {
    Network::parse(text).map(|network| network.to_string())
}

//! The address of a listener, and who is believed there.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Component, Path, PathBuf};

use super::network::{Address, Network, network_text, networks_of};
use super::quote::quoted;
use super::rules::{Guess, TextRule, Wrong};
use super::section::meaning;
use super::server_address::{UNIX, unix_path};
use super::text::texts;
use super::{DefaultText, ValueShape, ValueType, address};
use crate::located::Located;
use crate::read::{Item, Reader};

/// The address of a listener.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ListenAddress {
    /// An IP address and a port.
    Socket(SocketAddr),
    /// The path of a Unix stream socket.
    Unix(PathBuf),
}

impl ListenAddress {
    /// The IP address and the port, if it has these.
    pub fn socket(&self) -> Option<SocketAddr> {
        match self {
            Self::Socket(address) => Some(*address),
            Self::Unix(_) => None,
        }
    }

    /// The port, if it has one.
    pub fn port(&self) -> Option<u16> {
        self.socket().map(|address| address.port())
    }

    /// The path, if it is a Unix socket.
    pub fn unix(&self) -> Option<&Path> {
        match self {
            Self::Socket(_) => None,
            Self::Unix(path) => Some(path),
        }
    }
}

impl From<SocketAddr> for ListenAddress {
    fn from(address: SocketAddr) -> Self {
        Self::Socket(address)
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(address) => write!(formatter, "{address}"),
            Self::Unix(path) => write!(formatter, "{UNIX}{}", path.display()),
        }
    }
}

/// The address of a listener, with its place in the file; `example` is shown where no address was understood.
pub(crate) fn listen_address(example: &'static str) -> LocatedListenAddress {
    LocatedListenAddress { address: address(example) }
}

pub(crate) struct LocatedListenAddress {
    address: Address,
}

impl LocatedListenAddress {
    /// Reads what stands for a Unix socket, or is meant for one.
    fn read_unix(
        text: &str,
        item: &Item<'_>,
        reader: &mut Reader<'_>,
    ) -> Option<Option<ListenAddress>> {
        let is_meant = text.starts_with(['/', '@', '.']) || text.starts_with(UNIX);
        if !is_meant {
            return None;
        }
        let path = text.strip_prefix(UNIX).ok_or_else(|| {
            let path = text.trim_start_matches(['@', '.']).trim_start_matches('/');
            Wrong::suggesting("a path stands behind `unix:`", suggestion(path))
        });
        let read = path.and_then(listened_path).map(ListenAddress::Unix);
        Some(read.map_err(|wrong| report(wrong, item, reader)).ok())
    }
}

fn report(wrong: Wrong, item: &Item<'_>, reader: &mut Reader<'_>) {
    let message = format!("`{}` takes {}: {}", item.name(), UNIX_SOCKET.what, wrong.why);
    reader.report(item, message, wrong.help.advice(&UNIX_SOCKET, quoted));
}

/// A path that a socket can be made at, and that has one spelling only.
fn listened_path(path: &str) -> Result<PathBuf, Wrong> {
    if let Some(name) = path.strip_prefix('@') {
        let why = "an abstract name has no rights, so that everybody could connect";
        return Err(Wrong::suggesting(why, suggestion(name)));
    }
    if !path.is_empty() && !path.starts_with('/') {
        let why = "a Unix socket has a path from the root on";
        return Err(Wrong::suggesting(why, suggestion(path.trim_start_matches("./"))));
    }
    let plain = unix_path(path)?;
    if path.ends_with('/') || path.ends_with("/.") {
        return Err(Wrong::new("this path is a folder's"));
    }
    if plain.components().any(|step| step == Component::ParentDir) {
        return Err(Wrong::new("`..` makes two paths of one"));
    }
    Ok(plain.components().collect())
}

fn suggestion(path: &str) -> String {
    let whole = if path.contains('/') { "/" } else { "/run/kettle/" };
    format!("{UNIX}{whole}{path}")
}

static UNIX_SOCKET: TextRule = TextRule {
    what: "an IP address and a port, or `unix:` and a path",
    example: "unix:/run/kettle/app.sock",
    read: |text| Ok(text.to_owned()),
};

impl ValueType for LocatedListenAddress {
    type Value = Located<ListenAddress>;

    fn default_value(&self) -> Self::Value {
        Located::not_written(self.address.default_value().into())
    }

    fn shape(&self) -> ValueShape {
        let unix = ValueShape::Text(&UNIX_SOCKET);
        ValueShape::Either(Box::new(self.address.shape()), Box::new(unix))
    }

    fn default_text(&self) -> DefaultText {
        DefaultText::Required
    }

    fn read(&self, item: &Item<'_>, reader: &mut Reader<'_>) -> Option<Self::Value> {
        let unix = item.as_str().and_then(|text| Self::read_unix(text, item, reader));
        let address = match unix {
            Some(read) => read?,
            None => self.address.read(item, reader)?.into(),
        };
        Some(Located::new(address, reader.source().position(item.span().start)))
    }
}

/// Those who are believed: by their network, or because they came over a Unix socket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Believed {
    /// The networks.
    pub networks: Vec<Network>,
    /// True if clients of Unix sockets are.
    pub unix: bool,
}

impl Believed {
    /// True if nobody is.
    pub fn is_empty(&self) -> bool {
        self.networks.is_empty() && !self.unix
    }

    /// True if one with this address is; one without came over a Unix socket.
    pub fn has(&self, address: Option<IpAddr>) -> bool {
        match address {
            Some(address) => self.networks.iter().any(|network| network.contains(address)),
            None => self.unix,
        }
    }
}

/// A list of those who are believed, possibly empty.
pub(crate) fn believed() -> impl ValueType<Value = Believed> {
    meaning(texts(&BELIEVED, &[]), |texts| Believed {
        networks: networks_of(&texts),
        unix: texts.iter().any(|text| text == UNIX),
    })
}

/// A network, or `unix:`.
static BELIEVED: TextRule = TextRule {
    what: "a network",
    example: "10.0.0.0/8",
    read: |text| match text.strip_prefix(UNIX) {
        None => network_text(text),
        Some("") => Ok(UNIX.to_owned()),
        // All who may connect to a socket are alike: its rights say who that is.
        Some(_) => Err(Wrong {
            why: "it is for the listener's own socket, without a path".to_owned(),
            help: Guess::Text(UNIX.to_owned()),
        }),
    },
};

/// The rights of a socket's file, as chmod(1) takes them.
pub(crate) static SOCKET_MODE: TextRule = TextRule {
    what: "three octal digits, with or without a zero before them",
    example: "0660",
    read: |text| {
        let digits = text.strip_prefix('0').filter(|rest| rest.len() == 3).unwrap_or(text);
        let mode = Some(digits).filter(|digits| digits.len() == 3);
        match mode.and_then(|digits| u32::from_str_radix(digits, 8).ok()) {
            None => Err(Wrong::new("these are no rights")),
            // To connect takes the right to write (unix(7)).
            Some(mode) if mode & 0o222 == 0 => Err(Wrong::new("nobody could connect")),
            Some(_) => Ok(format!("0{digits}")),
        }
    },
};

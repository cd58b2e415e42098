//! The address of a server of a backend, and whose certificates are trusted there.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::quote::quoted;
use super::rules::{Guess, TextRule, Wrong, host_name};
use super::section::{WithPlace, located};
use super::text::Read;
use super::{DefaultText, ValueShape, ValueType, located_path};
use crate::located::Located;
use crate::read::{Item, Reader};

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum ServerAddress {
    /// An IP address and a port.
    Socket(SocketAddr),
    /// A name to look up, and a port.
    Name(String, u16),
    /// A Unix stream socket.
    Unix(PathBuf),
}

impl ServerAddress {
    /// Reads `10.0.0.5:80`, `[::1]:80`, `db.example:5432` or `unix:/run/db.sock`.
    ///
    /// # Errors
    /// The fault of the text, for a person.
    pub fn parse(text: &str) -> Result<Self, String> {
        parse(text).map_err(|wrong| match wrong.help {
            Guess::Text(suggestion) => format!("{}; write {suggestion}", wrong.why),
            Guess::Advice(advice) => format!("{}; {advice}", wrong.why),
            Guess::None => wrong.why,
        })
    }

    /// The name that a server is looked up by.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Name(name, _) => Some(name),
            Self::Socket(_) | Self::Unix(_) => None,
        }
    }
}

impl Default for ServerAddress {
    fn default() -> Self {
        Self::Socket(SocketAddr::from(([0, 0, 0, 0], 0)))
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(address) => write!(formatter, "{address}"),
            Self::Name(name, port) => write!(formatter, "{name}:{port}"),
            Self::Unix(path) => write!(formatter, "{UNIX}{}", path.display()),
        }
    }
}

fn parse(text: &str) -> Result<ServerAddress, Wrong> {
    let wrong = |why: &str, help| Err(Wrong { why: why.to_owned(), help });
    if let Some(path) = text.strip_prefix(UNIX) {
        return unix_path(path).map(ServerAddress::Unix);
    }
    if text.starts_with('/') {
        return wrong("a path stands behind `unix:`", Guess::Text(format!("unix:{text}")));
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        return match address.port() {
            0 => wrong("a port is a number from 1 to 65535", Guess::None),
            _ => Ok(ServerAddress::Socket(address)),
        };
    }
    if let Some((_, rest)) = text.split_once("://") {
        let authority = rest.split('/').next().unwrap_or_default();
        return wrong("it is an address, not a URL", Guess::Text(authority.to_owned()));
    }
    let Some((host, port)) = text.rsplit_once(':').filter(|(host, _)| !host.is_empty()) else {
        let advice = "write host and port: \"127.0.0.1:80\"";
        return wrong("it has no host or no port", Guess::Advice(advice.to_owned()));
    };
    let Some(port) = port.parse::<u16>().ok().filter(|port| *port > 0) else {
        return wrong("behind the last colon stands a port from 1 to 65535", Guess::None);
    };
    if host.contains(':') {
        let suggestion = format!("[{}]:{port}", host.trim_matches(['[', ']']));
        let is_address = suggestion.parse::<SocketAddr>().is_ok();
        let help = if is_address { Guess::Text(suggestion) } else { Guess::None };
        return wrong("an IPv6 address stands in brackets", help);
    }
    // A text that looks like an IPv4 address and is none is no name either (RFC 1123 §2.1).
    if host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return wrong("that is no IP address", Guess::None);
    }
    host_name(host).map(|name| ServerAddress::Name(name, port))
}

/// Reads the path of a Unix socket.
pub(super) fn unix_path(path: &str) -> Result<PathBuf, Wrong> {
    let why = match path {
        _ if !path.starts_with('/') => "a Unix socket has a path from the root on",
        _ if path.len() > UNIX_PATH_BYTES_MAX => "the path of a Unix socket has 107 bytes at most",
        _ if path.contains('\0') => "no path holds a NUL character",
        _ => return Ok(PathBuf::from(path)),
    };
    Err(Wrong::new(why))
}

/// The text before the path of a Unix socket.
pub(super) const UNIX: &str = "unix:";

/// `sun_path` of `sockaddr_un`, with its NUL (unix(7)).
const UNIX_PATH_BYTES_MAX: usize = 107;

static SERVER_ADDRESS: TextRule = TextRule {
    what: "an address with a port, a name with a port, or a Unix socket",
    example: "127.0.0.1:8080",
    read: |text| parse(text).map(|address| address.to_string()),
};

pub(crate) fn located_server_address() -> WithPlace<Read<ServerAddress>> {
    let read = |text: &str| parse(text).ok();
    located(Read { rule: &SERVER_ADDRESS, read, none: ServerAddress::default })
}

/// The authorities that are trusted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Roots {
    /// Those of the system.
    System,
    /// Those of a file in PEM.
    File(Located<PathBuf>),
}

/// The authorities that are trusted: a file, or `"system"`.
pub(crate) fn roots() -> RootsKind {
    RootsKind
}

pub(crate) struct RootsKind;

impl ValueType for RootsKind {
    type Value = Roots;

    fn default_value(&self) -> Roots {
        Roots::System
    }

    fn shape(&self) -> ValueShape {
        let system = vec![("system", "Those that the system trusts.")];
        ValueShape::Either(Box::new(ValueShape::Word(system)), Box::new(ValueShape::Path))
    }

    fn default_text(&self) -> DefaultText {
        DefaultText::Value(quoted("system"))
    }

    fn read(&self, item: &Item<'_>, reader: &mut Reader<'_>) -> Option<Roots> {
        match item.as_str() {
            Some("system") => Some(Roots::System),
            _ => located_path().read(item, reader).map(Roots::File),
        }
    }
}

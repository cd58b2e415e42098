//! Which server is meant: `https://HOST[:PORT]`, `HOST:PORT` or `HOST`.

use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

/// A server by its name or address, and its port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// A name, or an IP address without brackets.
    pub host: String,
    /// The TCP port.
    pub port: u16,
    /// The name for which it is asked for in place of `host`, so that one machine behind a name can be looked at.
    pub name: Option<String>,
}

impl Target {
    /// The name or address that its certificate should have.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.host)
    }
}

/// The text names no server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadTarget {
    /// It is a URL of another scheme than `https`.
    Scheme(String),
    /// It is no host, or no port.
    Form(String),
}

impl FromStr for Target {
    type Err = BadTarget;

    fn from_str(text: &str) -> Result<Self, BadTarget> {
        let bad = || BadTarget::Form(text.to_owned());
        let rest = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => rest,
            Some((scheme, _)) => return Err(BadTarget::Scheme(scheme.to_owned())),
            None => text,
        };
        // A path changes nothing: nothing is asked for.
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if let Ok(address) = authority.parse::<Ipv6Addr>() {
            return Ok(Self { host: address.to_string(), port: HTTPS, name: None });
        }
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => {
                let port = port.parse().ok().filter(|port| *port != 0).ok_or_else(bad)?;
                (host, port)
            }
            _ => (authority, HTTPS),
        };
        if let Some(address) = host.strip_prefix('[') {
            let address = address.strip_suffix(']').ok_or_else(bad)?;
            let address = address.parse::<Ipv6Addr>().map_err(|_| bad())?;
            return Ok(Self { host: address.to_string(), port, name: None });
        }
        let is_host = (1..=HOST_BYTES_MAX).contains(&host.len())
            && host.bytes().all(|byte| byte.is_ascii_graphic() && !b":@[]%".contains(&byte));
        let host = host.to_owned();
        if is_host { Ok(Self { host, port, name: None }) } else { Err(bad()) }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

impl fmt::Display for BadTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scheme(scheme) => {
                write!(
                    f,
                    "{scheme}:// is not looked at, only TLS is; write https://HOST or HOST:PORT"
                )
            }
            Self::Form(text) => write!(
                f,
                "{text:?} names no server; write https://HOST[:PORT], HOST:PORT or [IPv6]:PORT, names outside ASCII \
                 as xn--…"
            ),
        }
    }
}

impl std::error::Error for BadTarget {}

const HTTPS: u16 = 443;
/// As long as a DNS name may be, with its last dot.
const HOST_BYTES_MAX: usize = 254;

#[cfg(test)]
mod tests;

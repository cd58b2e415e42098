//! The URL a load asks for, taken apart.

use std::net::{SocketAddr, ToSocketAddrs};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Url {
    pub(crate) is_secure: bool,
    /// A name or an address, without brackets.
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Path and query.
    pub(crate) path: String,
}

impl Url {
    /// Reads `https://host:8443/path?query`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| format!("{text}: {why}; write https://HOST[:PORT]/PATH");
        let (scheme, rest) = text.split_once("://").ok_or_else(|| wrong("no scheme"))?;
        let (is_secure, usual_port) = match scheme {
            "https" => (true, 443),
            "http" => (false, 80),
            _ => return Err(wrong("neither https nor http")),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        let path = rest.split('#').next().unwrap_or_default();
        if authority.contains('@') {
            return Err(wrong("user names are not supported"));
        }
        let (host, port) = match authority.strip_prefix('[') {
            Some(literal) => {
                let (host, port) = literal.split_once(']').ok_or_else(|| wrong("no ]"))?;
                (host, port.strip_prefix(':').or(port.is_empty().then_some("")))
            }
            None => match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, Some("")),
            },
        };
        let port = match port {
            Some("") => usual_port,
            Some(port) => port.parse().map_err(|_| wrong("not a port"))?,
            None => return Err(wrong("not a port")),
        };
        let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if host.is_empty() || !is_plain(host) || !is_plain(path) {
            return Err(wrong("not a host and a path that may stand in a request"));
        }
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self { is_secure, host: host.to_owned(), port, path })
    }

    pub(crate) fn resolve(&self) -> Result<SocketAddr, String> {
        let Self { host, port, .. } = self;
        let found = (host.as_str(), *port).to_socket_addrs();
        let found = found.map_err(|error| format!("cannot find {host}: {error}"))?;
        let mut found: Vec<_> = found.collect();
        // A program that listens on one of both is mostly reached over IPv4.
        found.sort_by_key(SocketAddr::is_ipv6);
        found.first().copied().ok_or_else(|| format!("{host} has no address"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> (bool, String, u16, String) {
        let Url { is_secure, host, port, path } = Url::parse(text).unwrap();
        (is_secure, host, port, path)
    }

    #[test]
    fn urls_come_apart() {
        for (text, is_secure, host, port, path) in [
            ("https://localhost:8443/", true, "localhost", 8443, "/"),
            ("https://example.org", true, "example.org", 443, "/"),
            ("http://example.org/a/b?c=d#e", false, "example.org", 80, "/a/b?c=d"),
            ("https://[::1]:8443/x", true, "::1", 8443, "/x"),
            ("https://[::1]", true, "::1", 443, "/"),
            ("https://h?q", true, "h", 443, "/?q"),
        ] {
            assert_eq!(parts(text), (is_secure, host.to_owned(), port, path.to_owned()), "{text}");
        }
    }

    #[test]
    fn what_is_no_url_is_refused_with_an_example() {
        for text in [
            "",
            "localhost",
            "localhost:8443/",
            "ftp://h/",
            "https://",
            "https://:8443/",
            "https://h:port/",
            "https://h:65536/",
            "https://[::1/",
            "https://[::1]8443/",
            "https://user@h/",
            "https://h/a b",
            "https://h/a\r\nb",
        ] {
            let refused = Url::parse(text).unwrap_err();
            assert!(refused.contains("https://HOST"), "{refused}");
        }
    }
}

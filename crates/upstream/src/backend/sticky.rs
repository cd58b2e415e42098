//! Servers that clients come back to by a cookie.

use std::fmt::Write as _;

use kettle_config::{Balance, SameSite, ServerCookie};
use tokio::time::Instant;

use super::slot::Choice;
use super::{Backend, Server};

impl Backend {
    /// The cookie that names servers, if one does.
    #[must_use]
    pub fn cookie_name(&self) -> Option<&str> {
        let own = || self.settings.cookie.as_ref().map_or(DEFAULT_NAME, |it| &it.name);
        (self.settings.balance == Balance::Cookie).then(own)
    }

    /// Tells the client of a server by a cookie, unless it `asked` for that one.
    pub(crate) fn cookie_for(
        &self,
        server: &Server,
        asked: Option<u64>,
        is_secure: bool,
    ) -> Option<String> {
        let key = server.cookie_key;
        let name = self.cookie_name().filter(|_| asked != Some(key))?;
        let default = ServerCookie::default();
        let settings = self.settings.cookie.as_ref().unwrap_or(&default);
        let mut cookie = format!("{name}={key:016x}; Path={}", settings.path);
        // Writing to memory cannot fail.
        if let Some(age) = settings.max_age {
            _ = write!(cookie, "; Max-Age={}", age.as_secs());
        }
        if settings.http_only {
            cookie.push_str("; HttpOnly");
        }
        if settings.secure.unwrap_or(is_secure) {
            cookie.push_str("; Secure");
        }
        cookie.push_str(match settings.same_site {
            SameSite::Lax => "; SameSite=Lax",
            SameSite::Strict => "; SameSite=Strict",
            SameSite::None => "; SameSite=None",
        });
        Some(cookie)
    }

    /// A slot on the server that a cookie names, if it is well, and was not tried yet.
    pub(super) fn take_named(&self, asked: u64, tried: &[usize], now: Instant) -> Option<Choice> {
        let servers = self.servers.iter().enumerate();
        let (index, server) = servers
            .filter(|(index, _)| !tried.contains(index))
            .find(|(_, server)| server.cookie_key == asked)?;
        if !server.state.is_well(now) {
            return None;
        }
        Some(self.take_of(index, server).map_or(Choice::Full, Choice::Taken))
    }
}

/// Returns the key for which a cookie asks; none if it is none of ours.
pub fn asked_by(value: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(value).ok().filter(|it| it.len() == 16)?;
    u64::from_str_radix(text, 16).ok()
}

const DEFAULT_NAME: &str = "kettle_server";

//! A service as it holds: with what the head of the file says for all, and why it may not be carried over.

use super::file::{Section, StunnelOption};
use super::vocabulary::Fate;

/// A service with what holds for all.
#[derive(Clone, Copy)]
pub(super) struct Both<'s> {
    pub(super) own: &'s Section,
    pub(super) global: &'s Section,
}

impl<'s> Both<'s> {
    pub(super) fn all(&self, name: &str) -> Vec<&'s StunnelOption> {
        let of = |section: &'s Section| -> Vec<&'s StunnelOption> {
            section.options.iter().filter(|option| option.term.name == name).collect()
        };
        let own = of(self.own);
        if own.is_empty() { of(self.global) } else { own }
    }

    /// The last one counts.
    pub(super) fn find(&self, name: &str) -> Option<&'s StunnelOption> {
        self.all(name).last().copied()
    }

    pub(super) fn is_on(&self, name: &str) -> bool {
        self.find(name).is_some_and(|option| option.value == "yes")
    }

    /// Those of OpenSSL, which add up.
    pub(super) fn options(&self) -> Vec<&'s StunnelOption> {
        let both = self.global.options.iter().chain(&self.own.options);
        both.filter(|option| option.term.name == "options").collect()
    }

    /// The option because of which it would be laxer here, or another service, and why.
    pub(super) fn why_left_out(&self) -> Option<(&'s StunnelOption, &'static str)> {
        let is_client = self.is_on("client");
        let verifies = self.verifies();
        let mut options = self.own.options.iter().chain(&self.global.options);
        options.find_map(|option| {
            let value = option.value.as_str();
            let why = match (option.term.name, option.term.fate) {
                (_, Fate::Needed(why)) if !["no", "none"].contains(&value) => why,
                ("checkHost" | "checkIP", _) if !is_client => VOUCHED,
                ("requireCert", _)
                    if !is_client && self.is_on("requireCert") && verifies == Verifies::Nothing =>
                {
                    UNVERIFIED
                }
                ("verifyPeer" | "verify", _) if !is_client && verifies == Verifies::Both => BOTH,
                ("CRLfile", _) if !is_client && verifies == Verifies::Peer => UNASKED,
                ("CApath", _) if verifies != Verifies::Nothing => {
                    let is_system = is_client && verifies == Verifies::Chain && is_system(value);
                    (!is_system && self.find("CAfile").is_none()).then_some(NO_FOLDER)?
                }
                ("socket", _) if binds_to_device(value) => {
                    "a listener has an address: write that of the interface"
                }
                ("CRLfile", _) if is_client => "`pins` of the backend say whom to trust",
                _ => return None,
            };
            Some((option, why))
        })
    }

    /// Returns the certificates that clients, or servers, must show: `verify` is the older word for it.
    pub(super) fn verifies(&self) -> Verifies {
        let level = self.find("verify").and_then(|it| it.value.parse::<u8>().ok()).unwrap_or(0);
        let chain = self.is_on("verifyChain") || [2, 3].contains(&level);
        match (chain, self.is_on("verifyPeer") || level >= 3) {
            (true, true) => Verifies::Both,
            (false, true) => Verifies::Peer,
            (true, false) => Verifies::Chain,
            (false, false) => Verifies::Nothing,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Verifies {
    Nothing,
    Chain,
    /// The certificate is one of those that are known.
    Peer,
    Both,
}

/// True if only what comes by one interface is accepted.
fn binds_to_device(socket: &str) -> bool {
    let socket = socket.to_ascii_lowercase();
    socket.strip_prefix("a:").is_some_and(|it| it.trim_start().starts_with("so_bindtodevice"))
}

/// True if a folder is that of the system's authorities, as OpenSSL has it.
pub(super) fn is_system(folder: &str) -> bool {
    folder.trim_end_matches('/') == "/etc/ssl/certs"
}

const VOUCHED: &str = "every client whom `roots` vouches for is let in: write an authority of its own into CAfile, and verifyChain = yes";
const BOTH: &str = "a certificate is one that an authority signed, or one that is known: write verifyPeer = yes (or verify = 4) alone";
const UNASKED: &str = "no authority is asked about certificates that are known one by one: write no CRLfile, and take those that are revoked out of CAfile";
const UNVERIFIED: &str = "nobody is asked for a certificate that nobody verifies, and who has none would be let in: write verifyChain = yes and CAfile";
pub(super) const NO_FOLDER: &str = "`roots` is a file, or the system's authorities: write CAfile";

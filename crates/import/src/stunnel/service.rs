//! A service as it holds: with what the head of the file says for all.

use super::file::{Section, StunnelOption};

/// What says that a service takes clients over from another, by the name that they ask for. A client's `sni` is a host.
pub(super) fn takes_names<'s>(service: &Both<'s>, from: &Both<'_>) -> Option<&'s StunnelOption> {
    let sni = service.find("sni")?;
    let (name, _) = sni.value.split_once(':')?;
    (name.trim() == from.own.name).then_some(sni)
}

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

    /// What clients, or servers, must show: `verify` is the older word for it.
    pub(super) fn verifies(&self) -> Verifies {
        let level = self.find("verify").and_then(|it| it.value.parse::<u8>().ok()).unwrap_or(0);
        match (self.is_on("verifyChain") || level == 2, self.is_on("verifyPeer") || level >= 3) {
            (_, true) => Verifies::Peer,
            (true, false) => Verifies::Chain,
            (false, false) => Verifies::Nothing,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Verifies {
    Nothing,
    Chain,
    Peer,
}

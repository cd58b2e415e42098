//! Versions, ciphers and key exchanges: OpenSSL's words become ours, or are refused. The offer is never more than was written.

use kettle_config::{Group, Origin, Suite, quoted};

use crate::openssl::{self, Ciphers, Key};
use crate::output::Output;
use crate::toml_text::TomlText;

/// A value and where it was written.
#[derive(Clone, Copy)]
pub(crate) struct Written<'s> {
    pub(crate) text: &'s str,
    pub(crate) origin: &'s Origin,
}

/// OpenSSL's names for versions, and where they were written.
pub(crate) type Versions<'s> = (Vec<&'s str>, &'s Origin);

#[derive(Default)]
pub(crate) struct TlsOffer<'s> {
    pub(crate) versions: Option<Versions<'s>>,
    /// For TLS 1.2.
    pub(crate) ciphers: Option<Written<'s>>,
    pub(crate) tls13_suites: Option<Written<'s>>,
    /// True if the order of `ciphers` decides.
    pub(crate) is_ordered: bool,
}

/// The way a program writes what kettle has: for help.
pub(crate) struct Examples {
    pub(crate) versions: &'static str,
    pub(crate) ciphers: &'static str,
    pub(crate) tls13_suites: &'static str,
    pub(crate) groups: &'static str,
}

/// The offer; nothing where nobody said.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct Offer {
    pub(crate) versions: Option<(Vec<&'static str>, Origin)>,
    pub(crate) suites: Option<(Vec<Suite>, Origin)>,
}

impl Offer {
    /// Writes `versions` and `suites`.
    pub(crate) fn write(&self, text: &mut TomlText) {
        if let Some((versions, origin)) = &self.versions {
            text.set("versions", list(versions.iter().copied()), Some(origin));
        }
        if let Some((suites, origin)) = &self.suites {
            let words = suites.iter().map(|suite| suite.as_str());
            text.set("suites", list(words), Some(origin));
        }
    }

    /// Offers no more than another does.
    pub(crate) fn narrow(&mut self, other: &Self) {
        narrow(&mut self.versions, other.versions.as_ref());
        narrow(&mut self.suites, other.suites.as_ref());
    }

    pub(crate) fn has_nothing_left(&self) -> bool {
        let versions = self.versions.as_ref().is_some_and(|(list, _)| list.is_empty());
        versions || self.suites.as_ref().is_some_and(|(list, _)| list.is_empty())
    }
}

fn narrow<T: PartialEq + Clone>(
    own: &mut Option<(Vec<T>, Origin)>,
    other: Option<&(Vec<T>, Origin)>,
) {
    match (own.as_mut(), other) {
        (Some((own, _)), Some((other, _))) => own.retain(|one| other.contains(one)),
        (None, other) => *own = other.cloned(),
        (Some(_), None) => {}
    }
}

impl Output {
    /// Turns words into an offer.
    pub(crate) fn offer(&mut self, told: &TlsOffer<'_>, examples: &Examples) -> Offer {
        let versions = told.versions.as_ref();
        let versions =
            versions.and_then(|(words, origin)| self.versions(words, origin, examples.versions));
        let offers = |version| versions.as_ref().is_none_or(|(list, _)| list.contains(&version));
        let ciphers = told.ciphers.filter(|_| offers(TLS12));
        let ciphers = ciphers.and_then(|list| Some((self.ciphers(list, examples.ciphers)?, list)));
        let tls13 = told.tls13_suites.filter(|_| offers(TLS13));
        let tls13 =
            tls13.and_then(|list| Some((self.tls13_suites(list, examples.tls13_suites)?, list)));
        let suites = match (ciphers, tls13) {
            (None, None) => None,
            (Some((suites, list)), None) | (None, Some((suites, list))) => Some((suites, list)),
            (Some((mut suites, list)), Some((tls13, _))) => {
                suites.retain(|suite| tls13.contains(suite));
                if suites.is_empty() {
                    let message = "the ciphers of TLS 1.2 and of TLS 1.3 have none in common, and kettle offers the same \
                                   in both";
                    self.find(list.origin, message, "name one cipher in both");
                }
                Some((suites, list))
            }
        };
        let suites = suites.map(|(mut suites, list)| {
            if !told.is_ordered {
                suites.sort_by_key(|suite| ORDER.iter().position(|known| known == suite));
            }
            (suites, list.origin.clone())
        });
        Offer { versions, suites }
    }

    fn versions(
        &mut self,
        words: &[&str],
        origin: &Origin,
        example: &str,
    ) -> Option<(Vec<&'static str>, Origin)> {
        let mut versions = Vec::new();
        let mut old = Vec::new();
        for word in words {
            match *word {
                "TLSv1.2" => versions.push(TLS12),
                "TLSv1.3" => versions.push(TLS13),
                other => old.push(other),
            }
        }
        versions.sort_unstable();
        versions.dedup();
        if versions.is_empty() {
            let message = "kettle has TLS 1.2 and TLS 1.3 only, and neither is asked for";
            self.find(origin, message, &format!("write {example}"));
            return None;
        }
        if !old.is_empty() {
            let message =
                format!("{} are not offered: nobody should speak them any more", old.join(", "));
            self.warn(origin, message, "TLS 1.2 and TLS 1.3 are, where asked for");
        }
        Some((versions, origin.clone()))
    }

    fn ciphers(&mut self, list: Written<'_>, example: &str) -> Option<Vec<Suite>> {
        let ciphers = openssl::ciphers(list.text);
        if let Some(command) = &ciphers.unknown {
            let message = format!("`{command}` is not a command of OpenSSL's lists of ciphers");
            self.find(list.origin, message, "it has @STRENGTH and @SECLEVEL=0 to @SECLEVEL=5");
            return None;
        }
        if ciphers.suites.is_empty() {
            let message = format!("kettle has none of the ciphers `{}`", list.text);
            let help =
                format!("it has ECDHE with AES-GCM and with ChaCha20-Poly1305: write {example}");
            self.find(list.origin, message, &help);
            return None;
        }
        if ciphers.has_others {
            let words: Vec<&str> = ciphers.suites.iter().map(|suite| suite.as_str()).collect();
            let message = format!("of these ciphers kettle has {}, with ECDHE", words.join(", "));
            self.warn(list.origin, message, "others, and DH parameters, are not used");
        }
        self.warn_of_wider(&ciphers, list.origin);
        Some(ciphers.suites)
    }

    /// Warns of an offer beyond the list, because kettle.toml has no words for less.
    fn warn_of_wider(&mut self, ciphers: &Ciphers, origin: &Origin) {
        for key in [Key::Rsa, Key::Ecdsa] {
            let named = ciphers.of_one_key.iter().filter(|(_, of)| *of == key);
            let words: Vec<&str> = named.map(|(suite, _)| suite.as_str()).collect();
            if !words.is_empty() {
                let words = words.join(", ");
                let other = key.other().name();
                let key = key.name();
                let message = format!(
                    "this list has {words} for {key} keys only; kettle offers it for {other} keys, too"
                );
                let help = format!("in TLS 1.2, where a certificate has an {other} key");
                self.warn(origin, message, &help);
            }
        }
        if let Some(level @ 3..) = ciphers.security_level {
            let message = format!(
                "`@SECLEVEL={level}` holds for ciphers only; kettle takes RSA keys from 2,048 bits on and gives \
                 session tickets, as level 2 does"
            );
            self.warn(origin, message, "choose keys of that strength, and key exchanges");
        }
    }

    fn tls13_suites(&mut self, list: Written<'_>, example: &str) -> Option<Vec<Suite>> {
        let (suites, unknown) = openssl::tls13_suites(list.text);
        if suites.is_empty() {
            let message = format!("kettle has none of the suites `{}`", list.text);
            self.find(list.origin, message, &format!("write {example}"));
            return None;
        }
        if !unknown.is_empty() {
            let message = format!("kettle has no {}", unknown.join(" and no "));
            self.warn(list.origin, message, "the other suites are offered");
        }
        Some(suites)
    }

    pub(crate) fn groups(&mut self, curves: Written<'_>, examples: &Examples) {
        let (groups, unknown) = openssl::groups(curves.text);
        if groups.is_empty() {
            let message = format!("kettle has none of the key exchanges `{}`", curves.text);
            self.find(curves.origin, message, &format!("write {}", examples.groups));
            return;
        }
        if !unknown.is_empty() {
            let message = format!("kettle has no {}", unknown.join(" and no "));
            self.warn(curves.origin, message, "the other key exchanges are offered");
        }
        let names = list(groups.iter().map(|group: &Group| group.as_str()));
        self.text.set("groups", names, Some(curves.origin));
    }
}

/// A list of words, as TOML has it.
pub(crate) fn list<'w>(words: impl Iterator<Item = &'w str>) -> String {
    let words: Vec<String> = words.map(quoted).collect();
    format!("[{}]", words.join(", "))
}

/// The value of a field, or those of its lines.
pub(crate) fn values(all: &[String]) -> String {
    match all {
        [one] => quoted(one),
        all => list(all.iter().map(String::as_str)),
    }
}

pub(crate) fn table<'e>(entries: impl Iterator<Item = (&'e str, String)>) -> String {
    let entries: Vec<String> =
        entries.map(|(key, value)| format!("{} = {value}", quoted(key))).collect();
    format!("{{ {} }}", entries.join(", "))
}

const TLS12: &str = "tls1.2";
const TLS13: &str = "tls1.3";

/// kettle's own order: the cheapest first.
const ORDER: [Suite; 3] = [Suite::Aes128Gcm, Suite::Aes256Gcm, Suite::Chacha20Poly1305];

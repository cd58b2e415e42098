//! Versions, ciphers and key exchanges: OpenSSL's words become ours, or are refused. What is offered is never more than was
//! written.

use kettle_config::{Group, Origin, Suite, quoted};

use super::Writer;
use crate::hitch::model::{Model, Setting, Settings};
use crate::openssl::{self, Ciphers, Key};

/// What a frontend offers, or all of them; nothing where nobody said.
#[derive(Default)]
pub(super) struct Offer {
    versions: Option<(Vec<&'static str>, Origin)>,
    suites: Option<(Vec<Suite>, Origin)>,
}

impl Writer<'_> {
    /// Reads what settings say, or else those of `all`.
    pub(super) fn offer(&mut self, own: &Settings, all: Option<&Model>) -> Offer {
        let all = all.map(|model| &model.settings);
        let of = |key: &str| own.text(key).or_else(|| all?.text(key));
        let protocols = own.protocols().or_else(|| all?.protocols());
        let versions = protocols.and_then(|(words, origin)| self.versions(&words, origin));
        let offers = |version| versions.as_ref().is_none_or(|(list, _)| list.contains(&version));
        let ciphers = of("ciphers").filter(|_| offers(TLS12));
        let ciphers = ciphers.and_then(|list| Some((self.ciphers(list)?, list)));
        let tls13 = of("ciphersuites").filter(|_| offers(TLS13));
        let tls13 = tls13.and_then(|list| Some((self.tls13_suites(list)?, list)));
        let key = "prefer-server-ciphers";
        let is_ordered = own.flag(key).or_else(|| all?.flag(key)) == Some(true);
        let suites = match (ciphers, tls13) {
            (None, None) => None,
            (Some((suites, list)), None) | (None, Some((suites, list))) => Some((suites, list)),
            (Some((mut suites, list)), Some((tls13, _))) => {
                suites.retain(|suite| tls13.contains(suite));
                if suites.is_empty() {
                    let message = "`ciphers` and `ciphersuites` have no cipher in common, and kettle offers the same in \
                                   all versions";
                    let instead = "name one cipher in both";
                    self.findings.push(list.origin.finding(message, Some(instead.to_owned())));
                }
                Some((suites, list))
            }
        };
        let suites = suites.map(|(mut suites, list)| {
            if !is_ordered {
                suites.sort_by_key(|suite| ORDER.iter().position(|known| known == suite));
            }
            (suites, list.origin.clone())
        });
        Offer { versions, suites }
    }

    /// Writes `versions` and `suites`.
    pub(super) fn offered(&mut self, offer: &Offer) {
        if let Some((versions, origin)) = &offer.versions {
            self.text.set("versions", list(versions.iter().copied()), Some(origin));
        }
        if let Some((suites, origin)) = &offer.suites {
            let words = suites.iter().map(|suite| suite.as_str());
            self.text.set("suites", list(words), Some(origin));
        }
    }

    fn versions(&mut self, words: &[&str], origin: &Origin) -> Option<(Vec<&'static str>, Origin)> {
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
            let instead = Some("write tls-protos = TLSv1.2 TLSv1.3".to_owned());
            self.findings.push(origin.finding(message, instead));
            return None;
        }
        if !old.is_empty() {
            let message =
                format!("{} are not offered: nobody should speak them any more", old.join(", "));
            self.warn(origin, message, "TLS 1.2 and TLS 1.3 are, where asked for");
        }
        Some((versions, origin.clone()))
    }

    fn ciphers(&mut self, list: &Setting) -> Option<Vec<Suite>> {
        let ciphers = openssl::ciphers(&list.text);
        if let Some(command) = &ciphers.unknown {
            let message = format!("`{command}` is not a command of OpenSSL's lists of ciphers");
            let instead = Some("it has @STRENGTH and @SECLEVEL=0 to @SECLEVEL=5".to_owned());
            self.findings.push(list.origin.finding(message, instead));
            return None;
        }
        if ciphers.suites.is_empty() {
            let message = format!("kettle has none of the ciphers `{}`", list.text);
            let instead = "it has ECDHE with AES-GCM and with ChaCha20-Poly1305: write ciphers = \"EECDH+AESGCM\"";
            self.findings.push(list.origin.finding(message, Some(instead.to_owned())));
            return None;
        }
        if ciphers.has_others {
            let words: Vec<&str> = ciphers.suites.iter().map(|suite| suite.as_str()).collect();
            let message = format!("of these ciphers kettle has {}, with ECDHE", words.join(", "));
            self.warn(&list.origin, message, "others, and DH parameters, are not used");
        }
        self.warn_of_wider(&ciphers, &list.origin);
        Some(ciphers.suites)
    }

    /// What is offered beyond the list, because kettle.toml has no words for less.
    fn warn_of_wider(&mut self, ciphers: &Ciphers, origin: &Origin) {
        for key in [Key::Rsa, Key::Ecdsa] {
            let named = ciphers.of_one_key.iter().filter(|(_, of)| *of == key);
            let words: Vec<&str> = named.map(|(suite, _)| suite.as_str()).collect();
            if !words.is_empty() {
                let (words, key, other) = (words.join(", "), key.name(), key.other().name());
                let message = format!(
                    "this list has {words} for {key} keys only; kettle offers it for {other} keys, too"
                );
                let instead = format!("in TLS 1.2, where a certificate has an {other} key");
                self.warn(origin, message, &instead);
            }
        }
        if let Some(level @ 3..) = ciphers.security_level {
            let message = format!(
                "`@SECLEVEL={level}` holds for ciphers only; kettle takes RSA keys from 2,048 bits on and gives \
                 session tickets, as level 2 does"
            );
            self.warn(
                origin,
                message,
                "choose keys of that strength; ecdh-curve says which key exchanges",
            );
        }
    }

    fn tls13_suites(&mut self, list: &Setting) -> Option<Vec<Suite>> {
        let (suites, unknown) = openssl::tls13_suites(&list.text);
        if suites.is_empty() {
            let message = format!("kettle has none of the suites `{}`", list.text);
            let instead = Some("write ciphersuites = \"TLS_AES_128_GCM_SHA256\"".to_owned());
            self.findings.push(list.origin.finding(message, instead));
            return None;
        }
        if !unknown.is_empty() {
            let message = format!("kettle has no {}", unknown.join(" and no "));
            self.warn(&list.origin, message, "the other suites are offered");
        }
        Some(suites)
    }

    /// Writes `groups`.
    pub(super) fn groups(&mut self, curves: &Setting) {
        let (groups, unknown) = openssl::groups(&curves.text);
        if groups.is_empty() {
            let message = format!("kettle has none of the key exchanges `{}`", curves.text);
            let instead = Some("write ecdh-curve = \"X25519:prime256v1\"".to_owned());
            self.findings.push(curves.origin.finding(message, instead));
            return;
        }
        if !unknown.is_empty() {
            let message = format!("kettle has no {}", unknown.join(" and no "));
            self.warn(&curves.origin, message, "the other key exchanges are offered");
        }
        self.text.set(
            "groups",
            list(groups.iter().map(|group: &Group| group.as_str())),
            Some(&curves.origin),
        );
    }
}

fn list<'w>(words: impl Iterator<Item = &'w str>) -> String {
    let words: Vec<String> = words.map(quoted).collect();
    format!("[{}]", words.join(", "))
}

const TLS12: &str = "tls1.2";
const TLS13: &str = "tls1.3";

/// kettle's own order: the cheapest first.
const ORDER: [Suite; 3] = [Suite::Aes128Gcm, Suite::Aes256Gcm, Suite::Chacha20Poly1305];

//! OpenSSL's words for ciphers, curves and versions, as far as kettle has them.

use kettle_config::{Group, Suite};
use md5::{Digest, Md5};

/// The result of a list of ciphers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ciphers {
    /// Those that kettle has, in the list's order.
    pub(crate) suites: Vec<Suite>,
    /// True if the list may hold others, which kettle has not.
    pub(crate) has_others: bool,
    /// Those that the list has for one kind of key only. kettle has them for both.
    pub(crate) of_one_key: Vec<(Suite, Key)>,
    /// The value of `@SECLEVEL=`.
    pub(crate) security_level: Option<u8>,
    /// A command (`@…`) that is none.
    pub(crate) unknown: Option<String>,
}

/// Evaluates a list for TLS 1.2 as `ciphers(1)` describes it, over the suites that kettle has: ECDHE with an AEAD, for
/// RSA and ECDSA keys alike.
pub(crate) fn ciphers(list: &str) -> Ciphers {
    let mut chosen: Vec<Choice> = Vec::new();
    let mut killed: Vec<Choice> = Vec::new();
    let mut read = Ciphers::default();
    // A command may stand right behind a rule, too: `DEFAULT@SECLEVEL=1`.
    let rules = list.split([':', ' ', ',', ';']).flat_map(|rule| {
        let (words, command) = rule.split_at(rule.find('@').unwrap_or(rule.len()));
        [words, command]
    });
    for rule in rules.filter(|rule| !rule.is_empty()) {
        if let Some(command) = rule.strip_prefix('@') {
            match (command, command.strip_prefix("SECLEVEL=").map(str::as_bytes)) {
                ("STRENGTH", _) => chosen.sort_by_key(|(suite, _)| *suite == Suite::Aes128Gcm),
                (_, Some([digit @ b'0'..=b'5'])) => read.security_level = Some(digit - b'0'),
                _ => read.unknown = Some(rule.to_owned()),
            }
            continue;
        }
        let (operator, words) = match rule.split_at_checked(1) {
            Some((operator @ ("!" | "-" | "+"), words)) => (operator, words),
            _ => ("", rule),
        };
        let named = |choice: &Choice| words.split('+').all(|word| is_of(*choice, word));
        match operator {
            "!" => {
                killed.extend(all().filter(named));
                chosen.retain(|choice| !named(choice));
            }
            "-" => chosen.retain(|choice| !named(choice)),
            "+" => chosen.sort_by_key(named),
            _ => {
                let is_new = |choice: &Choice| !killed.contains(choice) && !chosen.contains(choice);
                let new: Vec<_> = all().filter(named).filter(is_new).collect();
                chosen.extend(new);
                read.has_others |= !is_aead_alone(words);
            }
        }
    }
    // Level 4 wants keys of 192 bits.
    chosen.retain(|(suite, _)| read.security_level < Some(4) || *suite != Suite::Aes128Gcm);
    for choice @ (suite, key) in &chosen {
        if !read.suites.contains(suite) {
            read.suites.push(*suite);
        }
        if !chosen.contains(&(*suite, key.other())) {
            read.of_one_key.push(*choice);
        }
    }
    read
}

/// A cipher with the key that the server's certificate has.
type Choice = (Suite, Key);

/// A kind of key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Ecdsa,
    Rsa,
}

impl Key {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Ecdsa => "ECDSA",
            Self::Rsa => "RSA",
        }
    }

    /// The other kind.
    pub(crate) fn other(self) -> Self {
        match self {
            Self::Ecdsa => Self::Rsa,
            Self::Rsa => Self::Ecdsa,
        }
    }
}

fn all() -> impl Iterator<Item = Choice> {
    STRENGTH.into_iter().flat_map(|suite| [(suite, Key::Ecdsa), (suite, Key::Rsa)])
}

/// The names of TLS 1.3's suites, and those that kettle has not.
pub(crate) fn tls13_suites(list: &str) -> (Vec<Suite>, Vec<&str>) {
    let mut suites = Vec::new();
    let mut unknown = Vec::new();
    for name in list.split(':').map(str::trim).filter(|name| !name.is_empty()) {
        let suite = match name {
            "TLS_AES_128_GCM_SHA256" => Suite::Aes128Gcm,
            "TLS_AES_256_GCM_SHA384" => Suite::Aes256Gcm,
            "TLS_CHACHA20_POLY1305_SHA256" => Suite::Chacha20Poly1305,
            other => {
                unknown.push(other);
                continue;
            }
        };
        if !suites.contains(&suite) {
            suites.push(suite);
        }
    }
    (suites, unknown)
}

/// Key exchanges by their names, and those that kettle has not.
pub(crate) fn groups(list: &str) -> (Vec<Group>, Vec<&str>) {
    let mut groups = Vec::new();
    let mut unknown = Vec::new();
    for name in list.split(':').map(str::trim).filter(|name| !name.is_empty()) {
        let group = match name.to_ascii_lowercase().trim_start_matches('?') {
            "x25519mlkem768" => Group::X25519MlKem768,
            "x25519" => Group::X25519,
            "prime256v1" | "secp256r1" | "p-256" => Group::P256,
            "secp384r1" | "p-384" => Group::P384,
            _ => {
                unknown.push(name);
                continue;
            }
        };
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    (groups, unknown)
}

/// The MD5 of a text in hexadecimal digits, by which hitch names files.
pub(crate) fn name_hash(text: &str) -> String {
    Md5::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Versions, the oldest first.
pub(crate) const VERSIONS: [&str; 5] = ["SSLv3", "TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"];

/// OpenSSL's own order.
const STRENGTH: [Suite; 3] = [Suite::Aes256Gcm, Suite::Chacha20Poly1305, Suite::Aes128Gcm];

/// True if a word of `ciphers(1)` stands for a suite, or for a group that it is in. A word that nobody knows stands for none.
fn is_of((suite, key): Choice, word: &str) -> bool {
    let is_chacha = suite == Suite::Chacha20Poly1305;
    match word {
        // Fedora's and its kin's name for the system's own list.
        "PROFILE=SYSTEM" => true,
        "ALL" | "DEFAULT" | "HIGH" | "TLSv1.2" | "AEAD" => true,
        "kEECDH" | "kECDHE" | "EECDH" | "ECDHE" | "ECDH" => true,
        "aRSA" => key == Key::Rsa,
        "aECDSA" | "ECDSA" => key == Key::Ecdsa,
        "AES" | "AESGCM" | "FIPS" => !is_chacha,
        "AES128" => suite == Suite::Aes128Gcm,
        "AES256" => suite == Suite::Aes256Gcm,
        "CHACHA20" => is_chacha,
        name => {
            let (of_key, registered) = match key {
                Key::Ecdsa => ("ECDHE-ECDSA-", "TLS_ECDHE_ECDSA_WITH_"),
                Key::Rsa => ("ECDHE-RSA-", "TLS_ECDHE_RSA_WITH_"),
            };
            let (cipher, in_full) = match suite {
                Suite::Aes128Gcm => ("AES128-GCM-SHA256", "AES_128_GCM_SHA256"),
                Suite::Aes256Gcm => ("AES256-GCM-SHA384", "AES_256_GCM_SHA384"),
                Suite::Chacha20Poly1305 => ("CHACHA20-POLY1305", "CHACHA20_POLY1305_SHA256"),
            };
            // OpenSSL 3.2 takes the names that IANA registered, too.
            name.strip_prefix(of_key) == Some(cipher)
                || name.strip_prefix(registered) == Some(in_full)
        }
    }
}

/// True if a rule that adds names nothing but suites that kettle has.
fn is_aead_alone(words: &str) -> bool {
    let names = |word: &str| all().any(|choice| is_of(choice, word));
    let is_ephemeral =
        |word: &str| matches!(word, "kEECDH" | "kECDHE" | "EECDH" | "ECDHE" | "ECDH");
    let is_aead = |word: &str| matches!(word, "AESGCM" | "CHACHA20" | "AEAD");
    let parts: Vec<&str> = words.split('+').collect();
    let is_one = matches!(parts.as_slice(), [one] if one.starts_with("ECDHE-") && names(one));
    is_one
        || (parts.iter().any(|word| is_ephemeral(word)) && parts.iter().any(|word| is_aead(word)))
}

#[cfg(test)]
mod tests;

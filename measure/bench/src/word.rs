//! The words for choices, the same on the command line, on the axes of samples and in rules.

use kettle_loadgen::offer::ResumeBy;
use kettle_tls::policy::Group;
use kettle_tls::{Cipher, Version};

/// A choice that is written as one word.
pub trait Word: Copy + PartialEq + 'static {
    /// Every choice with its word.
    const ALL: &'static [(Self, &'static str)];

    fn word(self) -> &'static str {
        Self::ALL.iter().find(|(value, _)| *value == self).map_or("?", |(_, word)| word)
    }

    /// The choice with this word, however it is hyphenated (`P-256`, `rsa-2048`); if there is none, a sentence with all words.
    fn from_word(text: &str) -> Result<Self, String> {
        let plain = |word: &str| word.replace('-', "").to_ascii_lowercase();
        let found = Self::ALL.iter().find(|(_, word)| plain(word) == plain(text));
        found.map(|(value, _)| *value).ok_or_else(|| {
            let words: Vec<_> = Self::ALL.iter().map(|(_, word)| *word).collect();
            format!("write one of {}", words.join(", "))
        })
    }
}

/// Declares a choice with the word of each value behind it.
macro_rules! words {
    ($(#[$about:meta])* $vis:vis enum $name:ident {
        $($(#[$of_value:meta])* $value:ident = $word:literal,)*
    }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $name {
            $($(#[$of_value])* $value,)*
        }

        impl $crate::word::Word for $name {
            const ALL: &'static [(Self, &'static str)] = &[$(($name::$value, $word)),*];
        }
    };
}
pub(crate) use words;

impl Word for Cipher {
    const ALL: &'static [(Self, &'static str)] = &[
        (Cipher::Aes128Gcm, "aes-128-gcm"),
        (Cipher::Aes256Gcm, "aes-256-gcm"),
        (Cipher::Chacha20Poly1305, "chacha20-poly1305"),
    ];
}

impl Word for Group {
    const ALL: &'static [(Self, &'static str)] = &[
        (Group::X25519, "x25519"),
        (Group::P256, "p256"),
        (Group::P384, "p384"),
        (Group::X25519MlKem768, "x25519mlkem768"),
    ];
}

impl Word for Version {
    const ALL: &'static [(Self, &'static str)] =
        &[(Version::Tls12, "1.2"), (Version::Tls13, "1.3")];
}

impl Word for ResumeBy {
    const ALL: &'static [(Self, &'static str)] = &[
        (ResumeBy::Nothing, "none"),
        (ResumeBy::SessionId, "session-id"),
        (ResumeBy::Ticket, "ticket"),
        (ResumeBy::EarlyData, "early-data"),
    ];
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::subject::{CertificateKey, Program, Role, SubjectPath};

    fn all_come_back<W: Word + std::fmt::Debug>() {
        for (value, word) in W::ALL {
            assert_eq!(value.word(), *word);
            assert_eq!(W::from_word(word), Ok(*value));
            assert_eq!(W::from_word(&word.to_uppercase()), Ok(*value));
        }
    }

    #[test]
    fn words_come_back_as_what_they_were() {
        all_come_back::<Cipher>();
        all_come_back::<Group>();
        all_come_back::<Version>();
        all_come_back::<ResumeBy>();
        all_come_back::<CertificateKey>();
        all_come_back::<Program>();
        all_come_back::<SubjectPath>();
        all_come_back::<Role>();
    }

    #[test]
    fn words_may_be_hyphenated_as_standards_do() {
        assert_eq!(Group::from_word("P-256"), Ok(Group::P256));
        assert_eq!(CertificateKey::from_word("RSA-2048"), Ok(CertificateKey::Rsa2048));
        assert_eq!(Cipher::from_word("aes128gcm"), Ok(Cipher::Aes128Gcm));
        assert!(CertificateKey::from_word("-").is_err());
    }

    #[test]
    fn an_unknown_word_is_answered_with_the_known_ones() {
        let refused = Version::from_word("1.1").unwrap_err();
        assert_eq!(refused, "write one of 1.2, 1.3");
    }
}

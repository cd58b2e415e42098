//! The offer of hitch, said by a frontend or for all.

use super::Writer;
use crate::hitch::model::{Model, Setting, Settings};
use crate::offer::{Examples, Offer, TlsOffer, Written};

impl Writer<'_> {
    /// Reads what settings say, or else those of `all`.
    pub(super) fn offer(&mut self, own: &Settings, all: Option<&Model>) -> Offer {
        let all = all.map(|model| &model.settings);
        let of = |key: &str| own.text(key).or_else(|| all?.text(key)).map(written);
        let key = "prefer-server-ciphers";
        let wanted = TlsOffer {
            versions: own.protocols().or_else(|| all?.protocols()),
            ciphers: of("ciphers"),
            tls13_suites: of("ciphersuites"),
            is_ordered: own.flag(key).or_else(|| all?.flag(key)) == Some(true),
        };
        self.output.offer(&wanted, &EXAMPLES)
    }

    pub(super) fn groups(&mut self, curves: &Setting) {
        self.output.groups(written(curves), &EXAMPLES);
    }
}

fn written(setting: &Setting) -> Written<'_> {
    Written { text: &setting.text, origin: &setting.origin }
}

const EXAMPLES: Examples = Examples {
    versions: "tls-protos = TLSv1.2 TLSv1.3",
    ciphers: "ciphers = \"EECDH+AESGCM\"",
    tls13_suites: "ciphersuites = \"TLS_AES_128_GCM_SHA256\"",
    groups: "ecdh-curve = \"X25519:prime256v1\"",
};

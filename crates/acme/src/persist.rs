//! Records of `dns-persist-01` (draft-ietf-acme-dns-persist-01): each says, for as long as it is in the DNS, which account may have
//! certificates for its name. kettle answers such a challenge by nothing, and the operator writes the record once.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The offer of an authority in an authorization, which instant-acme does not hand on.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Offer {
    r#type: String,
    /// The domains by which records may name the authority.
    #[serde(rename = "issuer-domain-names", default)]
    issuers: Vec<String>,
    /// The account as records name it; else by its URL.
    #[serde(rename = "accounturi")]
    account: Option<String>,
}

#[derive(Deserialize)]
struct Authorization {
    challenges: Vec<serde_json::Value>,
}

/// The name of an account in the DNS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    issuer: String,
    account: String,
}

impl Offer {
    /// Reads the offer in an answer of an authority, if it is such an authorization.
    pub(crate) fn read(body: &[u8]) -> Option<Self> {
        let kind = KIND.as_bytes();
        if !body.windows(kind.len()).any(|at| at == kind) {
            return None;
        }
        let Authorization { challenges } = serde_json::from_slice(body).ok()?;
        let mut offers = challenges.into_iter().filter_map(|it| serde_json::from_value(it).ok());
        offers.find(|offer: &Self| offer.r#type == KIND)
    }

    /// Returns the record that names the account of this URL, unless the authority says otherwise.
    ///
    /// # Errors
    /// If no record could hold that.
    pub(crate) fn record(self, url: &str) -> Result<Record, &'static str> {
        if !(1..=ISSUERS_MAX).contains(&self.issuers.len()) {
            return Err("its `issuer-domain-names` are not there, or too many");
        }
        let issuer = self.issuers.into_iter().next().filter(|issuer| is_domain(issuer));
        let issuer = issuer.ok_or("the first of its `issuer-domain-names` is no domain")?;
        let account = self.account.unwrap_or_else(|| url.to_owned());
        // `value` of RFC 8659 §4.2, without what ends a text in a zone file.
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !b";\"\\".contains(&byte);
        if account.is_empty() || account.len() > ACCOUNT_BYTES_MAX || !account.bytes().all(is_plain)
        {
            return Err("no record can hold the URL of the account");
        }
        Ok(Record { issuer, account })
    }
}

impl Record {
    /// The lines of a zone file for these names: one for a name, with a star or without or both. Addresses have none.
    pub(crate) fn lines(&self, names: &[String]) -> impl Iterator<Item = String> {
        let mut bases = BTreeMap::new();
        for name in names.iter().filter(|name| name.parse::<std::net::IpAddr>().is_err()) {
            let base = name.strip_prefix("*.");
            *bases.entry(base.unwrap_or(name)).or_default() |= base.is_some();
        }
        bases.into_iter().map(|(name, has_star)| self.line(name, has_star))
    }

    fn line(&self, name: &str, has_star: bool) -> String {
        let policy = if has_star { "; policy=wildcard" } else { "" };
        let value = format!("{}; accounturi={}{policy}", self.issuer, self.account);
        let mut line = format!("_validation-persist.{name}. IN TXT");
        let mut left = value.as_str();
        // All of it is ASCII.
        while let (part, rest) = left.split_at(left.len().min(STRING_BYTES_MAX))
            && !part.is_empty()
        {
            line += &format!(" \"{part}\"");
            left = rest;
        }
        line
    }
}

/// True for a domain as the draft has it: in lower case, and without a dot at its end.
fn is_domain(name: &str) -> bool {
    let is_part = |part: &str| {
        let is_its = |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-';
        !part.is_empty() && part.bytes().all(is_its)
    };
    name.len() <= DOMAIN_BYTES_MAX && name.split('.').all(is_part)
}

const KIND: &str = "dns-persist-01";

/// An authority that goes by more domains is to be refused.
const ISSUERS_MAX: usize = 10;

/// The longest domain, without the dot at its end (RFC 1035 §2.3.4),
const DOMAIN_BYTES_MAX: usize = 253;
/// and the longest string of a record (RFC 1035 §3.3).
const STRING_BYTES_MAX: usize = 255;

/// The longest URL of an account.
const ACCOUNT_BYTES_MAX: usize = 1_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(issuers: &str, account: &str) -> Option<Offer> {
        let body = format!(
            r#"{{"status": "pending", "challenges": [{{"type": "http-01", "token": "t"}}, 7,
            {{"type": "dns-persist-01", "url": "u", "issuer-domain-names": {issuers}{account}}}]}}"#
        );
        Offer::read(body.as_bytes())
    }

    #[test]
    fn an_offer_is_a_record_or_refused() {
        let record = |issuers: &str, account: &str| {
            offer(issuers, account).unwrap().record("https://ca.example/acct/1")
        };
        let own = record(r#"["ca.example", "other.example"]"#, "").unwrap();
        assert_eq!(own.issuer, "ca.example");
        assert_eq!(own.account, "https://ca.example/acct/1");
        let other = record(r#"["ca.example"]"#, r#", "accounturi": "urn:x""#).unwrap();
        assert_eq!(other.account, "urn:x");
        for (issuers, account) in [
            ("[]", ""),
            (r#"["a", "a", "a", "a", "a", "a", "a", "a", "a", "a", "a"]"#, ""),
            (r#"["ca.example\" \"x"]"#, ""),
            (r#"["ca.example."]"#, ""),
            (r#"["CA.example"]"#, ""),
            (r#"["ca.example"]"#, r#", "accounturi": "u; policy=wildcard""#),
            (r#"["ca.example"]"#, r#", "accounturi": "u\"\n@ IN NS evil.""#),
            (r#"["ca.example"]"#, r#", "accounturi": """#),
        ] {
            assert!(record(issuers, account).is_err(), "{issuers}{account}");
        }
        assert!(offer("7", "").is_none());
        assert!(Offer::read(b"{\"detail\": \"no dns-persist-01\"}").is_none());
        assert!(Offer::read(b"dns-persist-01").is_none());
    }

    #[test]
    fn a_name_has_one_line_with_a_star_or_without() {
        let account = "https://ca.example/acct/1".to_owned();
        let record = Record { issuer: "ca.example".to_owned(), account };
        let names = ["*.a.org", "a.org", "192.0.2.1", "b.org"].map(str::to_owned);
        assert_eq!(
            record.lines(&names).collect::<Vec<_>>(),
            [
                "_validation-persist.a.org. IN TXT \"ca.example; accounturi=https://ca.example/acct/1; policy=wildcard\"",
                "_validation-persist.b.org. IN TXT \"ca.example; accounturi=https://ca.example/acct/1\"",
            ]
        );
        let long = Record { account: "u".repeat(300), ..record };
        let line = long.lines(&names[1..2]).next().unwrap();
        let strings: Vec<&str> = line.split('"').filter(|it| it.len() > 1).skip(1).collect();
        assert_eq!(strings.iter().map(|it| it.len()).collect::<Vec<_>>(), [255, 68]);
    }
}

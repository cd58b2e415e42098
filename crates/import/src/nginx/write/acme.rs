//! Certificates that nginx fetches itself (nginx-acme 0.4): issuers as `[[acme]]`, `acme_certificate` as `[site.acme]`.

use std::path::Path;

use kettle_config::{ANY_NAME, quoted};

use super::Writer;
use crate::nginx::scope::Scope;
use crate::nginx::syntax::Directive;
use crate::offer::list;

impl Writer<'_> {
    /// Writes each `acme_issuer` as an authority.
    pub(super) fn issuers(&mut self, https: &[&Directive]) {
        let all = https.iter().flat_map(|http| http.inner());
        for issuer in all.filter(|it| it.name == "acme_issuer") {
            self.issuer(issuer);
        }
    }

    fn issuer(&mut self, issuer: &Directive) {
        let find = |name: &str| issuer.inner().iter().find(|it| it.name == name);
        for directive in issuer.inner().iter().filter(|it| it.name != TRUSTED) {
            self.tell(std::slice::from_ref(directive));
        }
        let Some(uri) = find("uri") else {
            let message = "this issuer has no address";
            return self.output.find(&issuer.origin, message, "write uri URL; of its directory");
        };
        let Some(terms) = find("accept_terms_of_service") else {
            let message = "nobody has agreed to the terms of this issuer";
            let help = "read them, and write accept_terms_of_service;";
            return self.output.find(&issuer.origin, message, help);
        };
        let origin = Some(&issuer.origin);
        self.output.text.table("[[acme]]", origin);
        self.output.text.set("name", quoted(issuer.word(0)), origin);
        self.output.text.set("directory", quoted(uri.word(0)), Some(&uri.origin));
        self.output.text.set("accept_terms", "true", Some(&terms.origin));
        let contacts: Vec<&Directive> =
            issuer.inner().iter().filter(|it| it.name == "contact").collect();
        if let Some(first) = contacts.first() {
            let urls: Vec<String> =
                contacts.iter().flat_map(|it| &it.words).map(|it| contact(it)).collect();
            let urls = list(urls.iter().map(String::as_str));
            self.output.text.set("contact", urls, Some(&first.origin));
        }
        if let Some(profile) = find("profile") {
            self.output.text.set("profile", quoted(profile.word(0)), Some(&profile.origin));
        }
        if let Some(trusted) = find(TRUSTED) {
            let path = quoted(&self.folder.join(trusted.word(0)).display().to_string());
            self.output.text.set("roots", path, Some(&trusted.origin));
        }
        if let Some(verify) = find("ssl_verify").filter(|it| it.word(0) == "off") {
            let message = "the certificate of this issuer is verified";
            let help = "write ssl_trusted_certificate FILE; with what signed it";
            self.output.warn(&verify.origin, message, help);
        }
        if let Some(key) = find("external_account_key") {
            self.external_account(key);
        }
    }

    fn external_account(&mut self, key: &Directive) {
        if key.words.len() != 2 || key.word(1).starts_with("data:") {
            let message = "the key of an account is in a file";
            let help = "write the key into a file that others cannot read, and external_account_key ID FILE;";
            return self.output.find(&key.origin, message, help);
        }
        let file = quoted(&self.folder.join(key.word(1)).display().to_string());
        let account = format!("{{ id = {}, key_file = {file} }}", quoted(key.word(0)));
        self.output.text.set("external_account", account, Some(&key.origin));
    }

    /// The certificate that a server shows and nginx fetches, where kettle can fetch it for a site of these names.
    pub(super) fn fetched<'t>(
        &mut self,
        scope: &Scope<'t>,
        names: &[String],
    ) -> Option<&'t Directive> {
        let wanted = shown(scope).filter(|_| !scope.is_on("ssl_reject_handshake"))?;
        if let Some(name) = names.iter().find(|it| !is_full(it)) {
            let message = format!("no certificate is fetched for {}", names.join(", "));
            let help = match name.strip_prefix("**.").or(name.strip_prefix("*.")) {
                Some(below) => format!(
                    "names with a star need a record in the DNS: write [site.acme] with names = [\"*.{below}\", …], challenges = [\"dns-01\"] \
                     and a program as `hook` that writes it (docs/acme.md); or a server of its own for the names in full"
                ),
                None => format!(
                    "no authority signs for `{name}`: write a server of its own for the names in full"
                ),
            };
            self.output.lose(&wanted.origin, message, &help);
            return None;
        }
        Some(wanted)
    }

    /// Writes `[site.acme]` for a site of these names.
    pub(super) fn fetch(&mut self, scope: &Scope<'_>, wanted: &Directive, names: &[String]) {
        let origin = Some(&wanted.origin);
        self.output.text.table("[site.acme]", origin);
        self.output.text.set("authorities", list([wanted.word(0)].into_iter()), origin);
        let issuers = scope.all("acme_issuer");
        let issuer = issuers.iter().find(|it| it.word(0) == wanted.word(0));
        let challenge = issuer.into_iter().flat_map(|it| it.inner());
        for challenge in challenge.filter(|it| it.name == "challenge") {
            let kind = match challenge.word(0) {
                "http" | "http-01" => "http-01",
                "tls-alpn" | "tls-alpn-01" => "tls-alpn-01",
                _ => return self.unreadable(challenge, "http-01"),
            };
            self.output.text.set("challenges", list([kind].into_iter()), Some(&challenge.origin));
        }
        let (keys, identifiers): (Vec<&str>, Vec<&str>) =
            wanted.words.iter().skip(1).map(String::as_str).partition(|it| it.starts_with("key="));
        if let Some(key) = keys.first().and_then(|it| it.strip_prefix("key=")) {
            self.key_type(key, wanted);
        }
        let differs = !identifiers.is_empty()
            && (identifiers.len() != names.len()
                || identifiers
                    .iter()
                    .any(|it| !names.iter().any(|own| own.eq_ignore_ascii_case(it))));
        if differs {
            let help =
                format!("the certificate is for the names of the site: {}", names.join(", "));
            self.tell_of_change(wanted, &help);
        }
    }

    fn key_type(&mut self, key: &str, wanted: &Directive) {
        let (kind, instead) = match key {
            "ecdsa" | "ecdsa:256" => return,
            "ecdsa:384" => ("ecdsa-p384", false),
            "ecdsa:521" => ("ecdsa-p384", true),
            "rsa" | "rsa:2048" => ("rsa-2048", false),
            "rsa:3072" => ("rsa-3072", false),
            "rsa:4096" => ("rsa-3072", true),
            _ => return self.unreadable(wanted, "NAME key=ecdsa:256"),
        };
        if instead {
            let message = format!("the key is no {key}");
            let help = format!("`key_type` is \"{kind}\", the strongest of its kind");
            self.output.warn(&wanted.origin, message, &help);
        }
        self.output.text.set("key_type", quoted(kind), Some(&wanted.origin));
    }

    /// Says once of the files that certbot keeps who renews them now.
    pub(super) fn tell_of_certbot(&mut self, chain: &Path, at: &Directive) {
        let is_told = self.output.warnings.iter().any(|it| it.message == CERTBOT);
        if chain.starts_with(CERTBOT_FOLDER) && !is_told {
            self.output.warn(&at.origin, CERTBOT, CHANGE_FROM_CERTBOT);
        }
    }
}

/// The `acme_certificate` of a server that shows it.
pub(super) fn shown<'t>(scope: &Scope<'t>) -> Option<&'t Directive> {
    let is_shown = scope.all("ssl_certificate").iter().any(|it| is_fetched(it));
    scope.find("acme_certificate").filter(|_| is_shown)
}

/// True if an `ssl_certificate` or its key is the one that is fetched.
pub(super) fn is_fetched(file: &Directive) -> bool {
    ["$acme_certificate", "$acme_certificate_key"].contains(&file.word(0))
}

/// True if a name of a site stands for itself alone.
fn is_full(name: &str) -> bool {
    name != ANY_NAME && !name.starts_with(['*', '~']) && !name.ends_with(".*")
}

/// nginx-acme takes addresses without the scheme.
fn contact(written: &str) -> String {
    if written.contains(':') { written.to_owned() } else { format!("mailto:{written}") }
}

const TRUSTED: &str = "ssl_trusted_certificate";
const CERTBOT_FOLDER: &str = "/etc/letsencrypt/live";
const CERTBOT: &str = "certbot renews its certificates on, but not with `--nginx`";
const CHANGE_FROM_CERTBOT: &str = "kettle can fetch them itself: add [site.acme] beside [[site.certificate]], and take the files away when \
                                   `kettle ctl acme status` shows the certificate: \
                                   https://github.com/kettle-tls/kettle/blob/main/docs/acme.md#moving-from-certbot";

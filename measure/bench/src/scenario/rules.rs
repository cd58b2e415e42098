//! The rules of fairness that all scenarios share, as sentences with this run's values in them.

use kettle_loadgen::offer::{Offer, ResumeBy};
use kettle_tls::policy::Group;
use kettle_tls::{Cipher, Version};

use super::options::{Options, OwnNginx, first};
use crate::peers::subject::{CertificateKey, OwnConfig, Program};
use crate::word::Word;

/// Returns the offer of client and servers unless a scenario compares it: one choice each.
pub fn offer(options: &Options) -> Offer {
    Offer {
        version: options.version.unwrap_or(Version::Tls13),
        cipher: first(&options.suites).unwrap_or(Cipher::Aes128Gcm),
        group: first(&options.groups).unwrap_or(Group::X25519),
        resume_by: ResumeBy::Nothing,
        http2: options.http.at_once(),
    }
}

/// The certificate's key unless a scenario compares it.
pub fn key(options: &Options) -> CertificateKey {
    first(&options.keys).unwrap_or(CertificateKey::P256)
}

pub fn usual(options: &Options) -> Vec<String> {
    match &options.own_nginx {
        Some(own) => by_own_nginx(own, options),
        None => by_templates(options),
    }
}

fn by_templates(options: &Options) -> Vec<String> {
    let agreed = agreed(options);
    let key = key(options).word();
    let mut rules = vec![
        format!(
            "Every server gets the same certificate (key {key}) and offers {agreed}, and nothing else."
        ),
        processors(options).to_owned(),
        "Files are random bytes, in the page cache; logs are off; records are as large as the server makes them, 16 KiB at most. \
         kettle has files of up to 64 KiB in memory, as it does unless told otherwise (not on its path `kernel-sendfile`)."
            .to_owned(),
        "Each server is configured as its documentation advises; the configurations are in this report.".to_owned(),
    ];
    for (program, word) in Program::ALL {
        let Some(config) = options.config(*program) else { continue };
        let (OwnConfig::Template(file) | OwnConfig::OfNginx(file)) = config;
        let file = file.display();
        rules.push(format!("{word} has the user's own configuration, {file}."));
    }
    rules
}

fn by_own_nginx(own: &OwnNginx, options: &Options) -> Vec<String> {
    let agreed = agreed(options);
    let key = key(options).word();
    let file = own.file.display();
    vec![
        format!(
            "nginx is configured by {file}, kettle by what `kettle import nginx` makes of it; both are in this report, with what \
             was left out."
        ),
        format!(
            "What belongs to the place is the measurement's: addresses, one certificate (key {key}), files at `/`. The client offers {agreed}."
        ),
        processors(options).to_owned(),
        "Files are random bytes, in the page cache. kettle has those of up to 64 KiB in memory, as it does unless told otherwise."
            .to_owned(),
    ]
}

/// Returns the common words of both sides.
fn agreed(options: &Options) -> String {
    let Offer { version, cipher, group, http2, .. } = offer(options);
    let agreed = format!("TLS {} with {} and {}", version.word(), cipher.word(), group.word());
    match http2 {
        None => agreed,
        Some(1) => format!("{agreed} and HTTP/2"),
        Some(requests) => {
            format!(
                "{agreed} and HTTP/2 ({requests} requests at once count as one, and their bodies as one)"
            )
        }
    }
}

fn processors(options: &Options) -> &'static str {
    let client = options.client_cpus.iter().flatten();
    let mut server = options.server_cpus.iter().flatten();
    if server.any(|cpu| client.clone().any(|other| cpu == other)) {
        "Client and servers share processors, as asked: each slows the other."
    } else {
        "Servers have processors of their own and as many workers; the client runs on others."
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_name_what_was_agreed_on() {
        let options = Options {
            suites: Some(vec![Cipher::Chacha20Poly1305]),
            // Of two the last is used.
            configs: ["its.conf", "my.conf"]
                .map(|file| (Program::Nginx, OwnConfig::Template(file.into())))
                .into(),
            ..Options::default()
        };
        let rules = usual(&options).join(" ");
        for words in
            ["chacha20-poly1305", "TLS 1.3", "x25519", "nginx has the user's own", "my.conf"]
        {
            assert!(rules.contains(words), "{words}: {rules}");
        }
        assert!(!rules.contains("its.conf") && rules.contains("of their own"), "{rules}");
    }

    #[test]
    fn shared_processors_are_not_called_their_own() {
        let cpus = |cpus: &[usize]| Some(cpus.to_vec());
        let shared =
            Options { server_cpus: cpus(&[0, 1]), client_cpus: cpus(&[1]), ..Options::default() };
        let rules = usual(&shared).join(" ");
        assert!(rules.contains("share processors") && !rules.contains("of their own"), "{rules}");
    }
}

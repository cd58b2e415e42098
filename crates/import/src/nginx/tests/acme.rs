//! Certificates that nginx or certbot fetches.

use kettle_config::{ChallengeKind, KeyType, Roots};

use super::*;

const ISSUER: &str = "acme_issuer own { uri https://ca.example.org/dir; contact ops@example.org; state_path /var/cache/acme; \
                      ssl_trusted_certificate ca.pem; accept_terms_of_service; challenge http; profile short; \
                      external_account_key kid-1 eab.key; }";

/// A server whose certificate is fetched, with these words beside, and a listener that answers challenges.
fn fetching(issuer: &str, words: &str) -> String {
    format!(
        "events {{}} http {{ {issuer} acme_shared_zone zone=a:1M; \
         server {{ listen 80; server_name a.org; return 301 https://$host$request_uri; }} \
         server {{ listen 443 ssl; ssl_certificate $acme_certificate; ssl_certificate_key $acme_certificate_key; \
         root /srv/www; {words} }} }}"
    )
}

#[test]
fn an_issuer_becomes_an_authority() {
    let config = config(&fetching(ISSUER, "server_name a.org b.org; acme_certificate own;"));
    let [acme] = config.acme.as_slice() else { panic!("{:?}", config.acme) };
    assert_eq!((&*acme.name.value, &*acme.directory.value), ("own", "https://ca.example.org/dir"));
    assert_eq!(acme.contact, ["mailto:ops@example.org"]);
    assert!(acme.accept_terms);
    assert_eq!(acme.profile.as_ref().unwrap().value, "short");
    assert!(matches!(&acme.roots, Roots::File(it) if it.ends_with("etc/nginx/ca.pem")), "{acme:?}");
    let account = acme.external_account.as_ref().unwrap();
    assert_eq!(account.id, "kid-1");
    assert_eq!(account.key_file.value, Path::new("/etc/nginx/eab.key"));
}

#[test]
fn a_server_fetches_for_all_its_names() {
    let words = "server_name a.org b.org; acme_certificate own key=ecdsa:384;";
    let config = config(&fetching(ISSUER, words));
    let [site] = config.sites.as_slice() else { panic!("{:?}", config.sites) };
    let acme = site.acme.as_ref().unwrap();
    assert_eq!(acme.authorities.len(), 1);
    assert_eq!(acme.challenges, [ChallengeKind::Http01]);
    assert_eq!(acme.key_type, KeyType::EcdsaP384);
    assert!(site.certificates.is_empty() && !site.self_signed);
}

#[test]
fn a_certificate_from_files_stays_beside_the_one_that_is_fetched() {
    let words = "server_name a.org; acme_certificate own; ssl_certificate c.pem; ssl_certificate_key c.key;";
    let config = config(&fetching(ISSUER, words));
    let site = &config.sites[0];
    assert!(site.acme.is_some());
    assert_eq!(site.certificates.len(), 1);
}

#[test]
fn files_of_certbot_stay_and_the_way_from_it_is_told_once() {
    let of = |name: &str| {
        let live = format!("/etc/letsencrypt/live/{name}");
        format!(
            "server {{ listen 443 ssl; server_name {name}; root /srv/www; ssl_certificate {live}/fullchain.pem; \
             ssl_certificate_key {live}/privkey.pem; }}"
        )
    };
    let text = format!("events {{}} http {{ {} {} }}", of("a.org"), of("b.org"));
    let imported = imported(&text);
    let config = imported.config().unwrap();
    let chain = &config.sites[1].certificates[0].chain.value;
    assert_eq!(chain, Path::new("/etc/letsencrypt/live/b.org/fullchain.pem"));
    assert_eq!(imported.toml.matches("[site.acme] beside [[site.certificate]]").count(), 1);
}

/// Of `certbot --webroot` and acme.sh, in front of a redirect for all else.
#[test]
fn proofs_that_another_client_lays_down_are_served() {
    for location in ["/.well-known/acme-challenge/", "^~ /.well-known/acme-challenge"] {
        let text = format!(
            "events {{}} http {{ server {{ listen 80; server_name a.org; location {location} {{ root /srv/acme; }} \
             location / {{ return 301 https://$host$request_uri; }} }} }}"
        );
        let config = config(&text);
        let of_proofs = |route: &&kettle_config::Route| format!("{route:?}").contains("/srv/acme");
        assert!(config.sites[0].routes.iter().find(of_proofs).is_some(), "{location}");
    }
}

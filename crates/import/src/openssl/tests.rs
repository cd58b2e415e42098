use super::*;

#[test]
fn lists_mean_what_openssl_means() {
    use Suite::{Aes128Gcm, Aes256Gcm, Chacha20Poly1305};
    let all = vec![Aes256Gcm, Chacha20Poly1305, Aes128Gcm];
    // As `openssl ciphers -v LIST` lists them, without what kettle has not.
    let table: [(&str, Vec<Suite>, bool); 20] = [
        ("ALL", all.clone(), true),
        ("HIGH", all.clone(), true),
        ("EECDH+AESGCM", vec![Aes256Gcm, Aes128Gcm], false),
        ("EECDH+AESGCM:EDH+AESGCM:AES256+EECDH:AES256+EDH", vec![Aes256Gcm, Aes128Gcm], true),
        ("ECDHE-RSA-AES128-GCM-SHA256", vec![Aes128Gcm], false),
        ("ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES128-GCM-SHA256", vec![Aes128Gcm], false),
        ("ECDHE+CHACHA20:ECDHE+AESGCM", all_from(Chacha20Poly1305), false),
        ("HIGH:!AES256", vec![Chacha20Poly1305, Aes128Gcm], true),
        ("ALL:!AES256:AES256", vec![Chacha20Poly1305, Aes128Gcm], true),
        ("ALL:-AES256:AES256", vec![Chacha20Poly1305, Aes128Gcm, Aes256Gcm], true),
        ("ALL:+AES256", vec![Chacha20Poly1305, Aes128Gcm, Aes256Gcm], true),
        ("ECDHE+AES128:ECDHE+AES256:@STRENGTH", vec![Aes256Gcm, Aes128Gcm], true),
        ("AES128-GCM-SHA256", vec![], true),
        ("ECDHE-RSA-AES256-SHA384", vec![], true),
        ("nonsense", vec![], true),
        ("", vec![], false),
        ("ALL:!aECDSA:!RSA:!SHA256", all.clone(), true),
        ("ECDSA+AES128", vec![Aes128Gcm], true),
        ("ALL:!aECDSA:!aRSA", vec![], true),
        ("HIGH:@SECLEVEL=2:!aNULL:!MD5", all, true),
    ];
    for (list, suites, has_others) in table {
        assert_eq!(ciphers(list), Ciphers { suites, has_others }, "{list}");
    }
}

fn all_from(first: Suite) -> Vec<Suite> {
    let mut all = vec![first];
    all.extend(STRENGTH.into_iter().filter(|suite| *suite != first));
    all
}

#[test]
fn names_that_kettle_has_not_are_told() {
    let (suites, unknown) = tls13_suites("TLS_AES_256_GCM_SHA384:TLS_AES_128_CCM_SHA256");
    assert_eq!((suites, unknown), (vec![Suite::Aes256Gcm], vec!["TLS_AES_128_CCM_SHA256"]));
    let (groups, unknown) = groups("X25519:prime256v1:secp521r1:X25519");
    assert_eq!((groups, unknown), (vec![Group::X25519, Group::P256], vec!["secp521r1"]));
}

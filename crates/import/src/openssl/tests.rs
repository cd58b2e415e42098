use super::*;

#[test]
fn lists_mean_what_openssl_means() {
    use Suite::{Aes128Gcm, Aes256Gcm, Chacha20Poly1305};
    let all = vec![Aes256Gcm, Chacha20Poly1305, Aes128Gcm];
    // As `openssl ciphers -v LIST` lists them, without what kettle has not.
    let table: [(&str, Vec<Suite>, bool); 29] = [
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
        ("HIGH:@SECLEVEL=4", vec![Aes256Gcm, Chacha20Poly1305], true),
        ("ECDHE+AES128+AESGCM:@SECLEVEL=5", vec![], false),
        ("HIGH:!FIPS", vec![Chacha20Poly1305], true),
        (
            "HIGH:!TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256:!ECDHE-ECDSA-AES128-GCM-SHA256",
            vec![Aes256Gcm, Chacha20Poly1305],
            true,
        ),
        ("HIGH:!TLS_AES_256_GCM_SHA384", all_from(Aes256Gcm), true),
        ("PROFILE=SYSTEM", all_from(Aes256Gcm), true),
        ("PROFILE=SYSTEM:!AES256", vec![Chacha20Poly1305, Aes128Gcm], true),
        ("DEFAULT@SECLEVEL=4", vec![Aes256Gcm, Chacha20Poly1305], true),
        ("ALL:!AES128@STRENGTH:AES128", vec![Aes256Gcm, Chacha20Poly1305], true),
    ];
    for (list, suites, has_others) in table {
        let read = ciphers(list);
        assert_eq!((read.suites, read.has_others), (suites, has_others), "{list}");
    }
}

#[test]
fn what_a_list_has_for_one_kind_of_key_is_told() {
    use Suite::{Aes128Gcm, Aes256Gcm, Chacha20Poly1305};
    let table: [(&str, Vec<(Suite, Key)>); 6] = [
        ("ECDHE-ECDSA-AES128-GCM-SHA256", vec![(Aes128Gcm, Key::Ecdsa)]),
        (
            "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384",
            vec![(Aes128Gcm, Key::Rsa), (Aes256Gcm, Key::Ecdsa)],
        ),
        (
            "HIGH:!aECDSA",
            vec![(Aes256Gcm, Key::Rsa), (Chacha20Poly1305, Key::Rsa), (Aes128Gcm, Key::Rsa)],
        ),
        ("ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES128-GCM-SHA256", vec![]),
        ("HIGH", vec![]),
        ("HIGH:!ECDHE-RSA-AES128-GCM-SHA256:@SECLEVEL=4", vec![]),
    ];
    for (list, expected) in table {
        assert_eq!(ciphers(list).of_one_key, expected, "{list}");
    }
}

#[test]
fn commands_are_read_or_told() {
    let table = [
        ("HIGH:@SECLEVEL=3", Some(3)),
        ("@SECLEVEL=0:HIGH", Some(0)),
        ("HIGH:@STRENGTH", None),
        ("DEFAULT@SECLEVEL=1", Some(1)),
        ("HIGH@STRENGTH", None),
    ];
    for (list, level) in table {
        let read = ciphers(list);
        assert_eq!((read.security_level, read.unknown), (level, None), "{list}");
    }
    for command in ["@SECLEVEL=6", "@SECLEVEL=", "@SECLEVEL=12", "@FOO", "@", "@STRENGTHS"] {
        let read = ciphers(&format!("HIGH:{command}"));
        assert_eq!(read.unknown.as_deref(), Some(command));
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

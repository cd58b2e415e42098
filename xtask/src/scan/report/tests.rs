use super::*;

fn scan(findings: &[(&str, &str)], is_self_signed: bool) -> Scan {
    let finding = |&(id, severity): &(&str, &str)| TestsslLine {
        id: id.to_owned(),
        severity: severity.to_owned(),
        text: "text".to_owned(),
    };
    Scan {
        title: "test",
        findings: findings.iter().map(finding).collect(),
        ciphers: vec!["TLSv1.3 TLS_AES_128_GCM_SHA256".to_owned()],
        is_self_signed,
    }
}

#[test]
fn only_what_is_worse_than_low_fails() {
    assert!(!scan(&[("HSTS", "LOW"), ("tickets", "WARN"), ("BEAST", "OK")], false).is_failed());
    assert!(scan(&[("RC4", "MEDIUM")], false).is_failed());
}

#[test]
fn blame_for_a_generated_certificate_counts_only_where_it_should_not_be() {
    let blame = [("cert_chain_of_trust <cert#1>", "CRITICAL")];
    assert!(!scan(&blame, true).is_failed());
    assert!(scan(&blame, false).is_failed());
}

#[test]
fn old_ciphers_and_no_ciphers_fail() {
    for ciphers in [
        vec![],
        vec!["TLSv1.1 ECDHE-RSA-AES128-GCM-SHA256"],
        vec!["TLSv1.2 AES128-GCM-SHA256"],
        vec!["TLSv1.2 ECDHE-RSA-AES128-SHA"],
    ] {
        let ciphers = ciphers.into_iter().map(str::to_owned).collect();
        assert!(Scan { ciphers, ..scan(&[], false) }.is_failed());
    }
}

#[test]
fn reports_are_read() {
    let json = r#"[{"id":"RC4","ip":"a","port":"1","severity":"OK","finding":"none"}]"#;
    let finding = TestsslLine { id: "RC4".into(), severity: "OK".into(), text: "none".into() };
    assert_eq!(findings(json), Ok(vec![finding]));
    assert!(findings("not JSON").is_err());
    let text = "  SSL\nPreferred TLSv1.3  128 bits  TLS_AES_128_GCM_SHA256  Curve 25519 DHE 253\n";
    assert_eq!(ciphers(text), ["TLSv1.3 TLS_AES_128_GCM_SHA256"]);
    assert_eq!(testssl_version("###\n    testssl   3.0.8 from https\n"), "3.0.8");
    assert_eq!(
        testssl_version("###\n  \u{1b}[1mtestssl\u{1b}[m version \u{1b}[1m3.2.4\u{1b}[m from"),
        "3.2.4"
    );
}

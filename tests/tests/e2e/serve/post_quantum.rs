//! Certificates with ML-DSA keys, made and verified by OpenSSL 3.5 or later.

use kettle_skip::skip;

use super::*;

const REQUEST: &str = "GET /a HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

#[test]
fn openssl_verifies_each_kind_and_others_get_the_certificate_beside_it() {
    let known = Tool::new("openssl").args(["list", "-signature-algorithms"]).output();
    if !known.text().contains("ML-DSA") {
        return skip("ML-DSA needs OpenSSL 3.5");
    }
    for set in ["44", "65", "87"] {
        let folder = tempfile::tempdir().unwrap();
        let key = folder.path().join("key.pem");
        let chain = folder.path().join("chain.pem");
        Tool::new("openssl")
            .args(["req", "-x509", "-noenc", "-days", "30", "-subj", "/CN=localhost"])
            .args(["-newkey", &format!("ml-dsa-{set}"), "-addext", "subjectAltName=DNS:localhost"])
            .args(["-keyout".as_ref(), key.as_os_str(), "-out".as_ref(), chain.as_os_str()])
            .run();
        let setup = with_a_file()
            .file("quantum.pem", fs::read(&chain).unwrap())
            .file("quantum.key", fs::read(&key).unwrap())
            .site_certificate("quantum");
        let kettle = Kettle::start(setup);

        let chain = chain.display().to_string();
        let only = ["-sigalgs", &format!("mldsa{set}"), "-CAfile", &chain];
        for (words, signed) in [(&only[..], format!("mldsa{set}")), (&[], "ecdsa".to_owned())] {
            let said = kettle.openssl(words).typed(REQUEST);
            let text = said.text();
            assert!(text.contains("Verify return code: 0 (ok)"), "{words:?}: {text}");
            assert!(text.contains("Peer signature type: ") && text.contains(&signed), "{text}");
            assert!(text.contains("content"), "{words:?}: {text}");
        }
    }
}

use super::*;

#[test]
fn a_pin_is_read_as_kettle_and_curl_write_it() {
    // The second hash begins with a slash itself.
    for hash in [[0x5a; 32], [0xff; 32], [0; 32]] {
        let pin = Pin(hash);
        let text = pin.to_string();
        assert_eq!(text.parse(), Ok(pin));
        assert_eq!(text.replacen('/', "//", 1).parse(), Ok(pin));
    }
    assert!(Pin([0xff; 32]).to_string().starts_with("sha256//"));
}

#[test]
fn what_is_no_pin_is_refused_with_how_to_make_one() {
    let hash = "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";
    assert!(format!("sha256/{hash}").parse::<Pin>().is_ok());
    let rows = [
        String::new(),
        hash.to_owned(),
        "sha256/".to_owned(),
        format!("sha1/{hash}"),
        format!("sha256/ {hash}"),
        format!("sha256///{hash}"),
        format!("sha256/A{hash}"),
        format!("sha256/{}", hash.trim_end_matches('=')),
        format!("sha256/{}", &hash[4..]),
        format!("sha256/{}", hash.replace('+', "-")),
    ];
    for text in rows {
        let error = text.parse::<Pin>().expect_err(&text).to_string();
        assert!(error.contains("openssl x509"), "{error}");
    }
}

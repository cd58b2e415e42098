use std::net::SocketAddr;

use super::*;

fn identity(subject: &str, chain: &[&[u8]]) -> PeerIdentity {
    PeerIdentity {
        subject: subject.into(),
        common_name: None,
        names: Box::default(),
        spki_sha256: [0; 32],
        chain: chain.iter().map(|one| Box::from(*one)).collect(),
    }
}

fn filled(words: &Words<'_>, template: &str) -> Option<String> {
    let template = FieldTemplate::parse(template).unwrap();
    words.fill(&template).map(|value| String::from_utf8(value).unwrap())
}

#[test]
fn words_are_filled_in() {
    let client = Client::connected(SocketAddr::from(([192, 0, 2, 1], 567)).into(), None);
    let certificate = identity("CN=ann", &[b"leaf", b"one", b"two"]);
    let words = Words {
        host: Some("a.example:8443"),
        reference: "/a%20b?c",
        scheme: Scheme::Https,
        client: Some(&client),
        certificate: Some(&certificate),
    };
    for (template, expected) in [
        ("{client_ip} {client_port}", "192.0.2.1 567"),
        ("{scheme}://{host}:{port}{uri}", "https://a.example:8443/a%20b?c"),
        ("{client_subject}", "CN=ann"),
        ("{client_cert}", ":bGVhZg==:"),
        ("{client_cert_chain}", ":b25l:, :dHdv:"),
        ("{{{host}}", "{a.example}"),
        ("", ""),
    ] {
        assert_eq!(filled(&words, template).as_deref(), Some(expected), "{template}");
    }
}

#[test]
fn what_is_not_there_is_no_field() {
    let client = Client::from(std::net::IpAddr::from([192, 0, 2, 1]));
    let (scheme, reference) = (Scheme::Http, "/");
    let words = Words { host: None, reference, scheme, client: Some(&client), certificate: None };
    for word in ["client_port", "client_subject", "client_cert", "client_cert_chain", "host"] {
        assert_eq!(filled(&words, &format!("{{{word}}}")), None, "{word}");
        assert_eq!(filled(&words, &format!("{{{word}}} {{{word}}}")), None, "{word}");
        assert_eq!(filled(&words, &format!("a={{{word}}}")).as_deref(), Some("a="), "{word}");
    }
    assert_eq!(filled(&words, "{port}").as_deref(), Some("80"));
    let words = Words { client: None, ..words };
    assert_eq!(filled(&words, "{client_ip}"), None);
    // A chain of one has no others.
    let certificate = identity("CN=ann", &[b"leaf"]);
    let words = Words { certificate: Some(&certificate), ..words };
    assert_eq!(filled(&words, "{client_cert_chain}"), None);
    // Half of a certificate would be another one.
    let long = vec![0; CERTIFICATE_BYTES_MAX + 1];
    let certificate = identity("CN=ann", &[&long, &long]);
    let words = Words { certificate: Some(&certificate), ..words };
    assert_eq!(filled(&words, "{client_cert}{client_cert_chain}"), None);
}

#[test]
fn subjects_are_ascii() {
    for (subject, expected) in [
        ("CN=\u{e4}", "CN=\\c3\\a4"),
        ("CN=a\\0d\\0ab", "CN=a\\0d\\0ab"),
        ("CN=a\\ ", "CN=a\\20"),
        ("CN=a\\, b\\+", "CN=a\\, b\\+"),
    ] {
        assert_eq!(in_ascii(subject), expected);
    }
}

#[test]
fn servers_are_asked_for_the_host_that_is_written() {
    let words =
        |host, scheme| Words { host, reference: "/", scheme, client: None, certificate: None };
    for (host, scheme, asked, with_port) in [
        ("a.example", Scheme::Https, "a.example", "a.example:443"),
        ("a.example", Scheme::Http, "a.example", "a.example:80"),
        ("a.example:8443", Scheme::Https, "a.example", "a.example:8443"),
        ("[::1]", Scheme::Https, "[::1]", "[::1]:443"),
        ("[::1]:8443", Scheme::Https, "[::1]", "[::1]:8443"),
    ] {
        let words = words(Some(host), scheme);
        assert_eq!(words.host(None).as_deref(), Some(host));
        assert_eq!(words.host(Some(&BackendHost::Asked)).as_deref(), Some(asked));
        assert_eq!(words.host(Some(&BackendHost::AskedWithPort)).as_deref(), Some(with_port));
    }
    let words = words(None, Scheme::Https);
    let fixed = BackendHost::Fixed("b.example:81".to_owned());
    assert_eq!(words.host(Some(&fixed)).as_deref(), Some("b.example:81"));
    for host in [None, Some(&BackendHost::Asked), Some(&BackendHost::AskedWithPort)] {
        assert_eq!(words.host(host), None);
    }
}

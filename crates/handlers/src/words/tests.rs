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

/// A request for `/` of which nothing else is known.
fn bare(source: &WordSource) -> Words<'_> {
    let reference = "/".into();
    let scheme = Scheme::Https;
    let head = None;
    let host = None;
    let path = None;
    let client = None;
    let certificate = None;
    let answer = None;
    let vouched = None;
    Words { head, host, reference, path, scheme, client, certificate, answer, vouched, source }
}

fn filled(words: &Words<'_>, template: &str) -> Option<String> {
    let template = FieldTemplate::parse(template).unwrap();
    words.fill(&template).map(|value| String::from_utf8(value).unwrap())
}

#[test]
fn words_are_filled_in() {
    let client = Client::connected(SocketAddr::from(([192, 0, 2, 1], 567)).into(), None);
    let certificate = identity("CN=ann", &[b"leaf", b"one", b"two"]);
    let source = WordSource::default();
    let words = Words {
        host: Some("a.example:8443".into()),
        reference: "/a%20b?c".into(),
        client: Some(&client),
        certificate: Some(&certificate),
        ..bare(&source)
    };
    for (template, expected) in [
        ("{client_ip} {client_port}", "192.0.2.1 567"),
        ("{scheme}://{host}:{port}{uri}", "https://a.example:8443/a%20b?c"),
        // Without a head it is asked for many.
        ("{asked_uri}", "/a%20b?c"),
        ("{asked_path}", "/a b"),
        ("{client_subject}", "CN=ann"),
        ("{client_cert}", ":bGVhZg==:"),
        ("{client_cert_chain}", ":b25l:, :dHdv:"),
        ("{path}|{query}|{method}", "/a b|c|GET"),
        ("{request_id}", &client.request_id.to_string()),
        ("{{{host}}", "{a.example}"),
        ("", ""),
    ] {
        assert_eq!(filled(&words, template).as_deref(), Some(expected), "{template}");
    }
}

#[test]
fn what_is_not_there_is_no_field() {
    let client = Client::from(std::net::IpAddr::from([192, 0, 2, 1]));
    let source = WordSource::default();
    let words = Words { scheme: Scheme::Http, client: Some(&client), ..bare(&source) };
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
    let source = WordSource::default();
    let words = |host: Option<&'static str>, scheme| {
        let host = host.map(Cow::Borrowed);
        Words { host, scheme, ..bare(&source) }
    };
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

#[test]
fn words_with_a_name_are_filled_in() {
    let head = crate::respond::tests::stage::head(
        "PUT /a%20b%2Fc?x=1&y=%20 HTTP/1.1\r\nhost: a.example\r\nx-a: 1\r\nX-A: 2\r\ncookie: s=v; t=w\r\n\r\n",
    );
    let source = WordSource::default();
    let words = Asked::by_head(&head).words(&source);
    for (template, expected) in [
        ("{header:X-A}", "1, 2"),
        ("{cookie:t}", "w"),
        ("{query:y}", "%20"),
        ("{query}", "x=1&y=%20"),
        ("{path}", "/a b%2Fc"),
        ("{uri}", "/a%20b%2Fc?x=1&y=%20"),
        ("{method}", "PUT"),
        ("<{header:x-b}{cookie:x}{query:z}{map:none}{name:sub}>", "<>"),
    ] {
        assert_eq!(filled(&words, template).as_deref(), Some(expected), "{template}");
    }
    // A response that is kept for many says the same of it, as far as it is of the URL.
    let shared = Words { head: None, path: None, ..words };
    for (template, expected) in
        [("{path}", Some("/a b%2Fc")), ("{query:x}", Some("1")), ("{header:x-a}{cookie:s}", None)]
    {
        assert_eq!(filled(&shared, template).as_deref(), expected, "{template}");
    }
}

fn maps(text: &str) -> WordSource {
    let text = format!(
        "{text}\n[[listener]]\naddress = \"127.0.0.1:443\"\n[[site]]\nnames = [\"a\"]\nself_signed = true\n[[site.route]]\nroot = \"/\"\n"
    );
    let config = kettle_config::parse(&text, std::path::Path::new("")).unwrap();
    WordSource { maps: Arc::new(Maps::new(&config.maps)), ..WordSource::default() }
}

#[test]
fn what_maps_say_is_bounded() {
    let source = maps(
        "[[map]]\nname = \"a\"\nof = \"{uri}\"\n[map.regex]\n'(?s).+' = \"{0}{0}\"\n\
         [[map]]\nname = \"b\"\nof = \"{map:a}{map:a}\"\ndefault = \"d\"\n[map.regex]\n'.' = \"{0}\"\n",
    );
    let of = |bytes: usize| format!("/{}", "a".repeat(bytes - 1));
    for (bytes, a, b) in [
        (MAP_BYTES_MAX / 4, MAP_BYTES_MAX / 2, "/"),
        (MAP_BYTES_MAX / 2, MAP_BYTES_MAX, "d"),
        (MAP_BYTES_MAX / 2 + 1, 0, "d"),
    ] {
        let words = Words { reference: of(bytes).into(), ..bare(&source) };
        let length = filled(&words, "{map:a}").map_or(0, |text| text.len());
        assert_eq!((length, filled(&words, "{map:b}").as_deref()), (a, Some(b)), "{bytes}");
    }
}

#[test]
fn nothing_that_fills_a_query_in_begins_another_argument() {
    // Only these and `params` have groups.
    let templates = maps(
        "[[map]]\nname = \"a\"\nof = \"{host}\"\n[map.regex]\n'^([a-z]+)$' = \"{query}&q={1}\"\n",
    );
    let with_group = templates.maps.find("a").unwrap().find(b"x").text;
    let source = WordSource::default();
    let words = Words {
        host: Some("a.example".into()),
        reference: "/p%26q?c=%26&d=1".into(),
        path: Some("/p&q"),
        ..bare(&source)
    };
    for (template, expected) in [
        ("p={path}&h={host}&s={scheme}", "p=/p%26q&h=a.example&s=https"),
        ("c={query:c}", "c=%26"),
        ("u={uri}", "u=/p%2526q%3Fc%3D%2526%26d%3D1"),
    ] {
        let template = FieldTemplate::parse(template).unwrap();
        let query = words.query_with(&template, |_| b"a&admin=1+%#");
        assert_eq!(String::from_utf8(query).unwrap(), expected);
    }
    let query = words.query_with(with_group, |_| b"a&admin=1+%#");
    assert_eq!(query, b"c=%26&d=1&q=a%26admin%3D1%2B%25%23");
}

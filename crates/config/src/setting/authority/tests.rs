use super::*;

#[test]
fn hosts_are_as_a_request_has_them() {
    let fixed = |text: &str| Some(BackendHost::Fixed(text.to_owned()));
    for (text, expected) in [
        ("{host}", Some(BackendHost::Asked)),
        ("{host}:{port}", Some(BackendHost::AskedWithPort)),
        ("App.example", fixed("app.example")),
        ("app.example:8080", fixed("app.example:8080")),
        ("192.0.2.1:80", fixed("192.0.2.1:80")),
        ("::1", fixed("[::1]")),
        ("[::1]", fixed("[::1]")),
        ("[2001:DB8::1]:8443", fixed("[2001:db8::1]:8443")),
        ("app:0", None),
        ("app:65536", None),
        ("app:", None),
        ("[::1", None),
        ("[::1]x", None),
        ("[::1]:", None),
        ("[a]:1", None),
        ("{host}x", None),
        ("{port}", None),
        ("a b", None),
        ("a@b", None),
        ("*:80", None),
        ("_", None),
    ] {
        assert_eq!(read_backend_host(text).ok(), expected, "{text}");
    }
}

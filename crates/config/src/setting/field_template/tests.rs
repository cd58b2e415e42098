use super::*;

#[test]
fn words_and_texts_alternate() {
    let parts = |text: &str| read(text).map_or_else(|wrong| panic!("{}", wrong.why), |it| it.parts);
    let text = |text: &str| FieldPart::Text(text.to_owned());
    assert_eq!(parts("plain"), [text("plain")]);
    assert_eq!(parts(""), []);
    assert_eq!(parts("{client_ip}"), [FieldPart::Word(RequestWord::ClientIp)]);
    let both = [
        text("a "),
        FieldPart::Word(RequestWord::Host),
        text(":"),
        FieldPart::Word(RequestWord::Port),
        text("}"),
    ];
    assert_eq!(parts("a {host}:{port}}"), both);
    assert_eq!(parts("{{host}"), [text("{host}")]);
    assert_eq!(parts("{{\"a\":{{\"b\":1}}"), [text("{\"a\":{\"b\":1}}")]);
    assert_eq!(parts("{{{host}"), [text("{"), FieldPart::Word(RequestWord::Host)]);
    for word in RequestWord::ALL {
        assert_eq!(parts(&format!("{{{word}}}")), [FieldPart::Word(*word)]);
    }
}

#[test]
fn no_line_can_be_added() {
    for text in ["a\r\nb: c", "{client_ip}\n", "a\u{7f}", "\u{85}"] {
        assert!(FieldTemplate::parse(text).is_err(), "{text:?}");
    }
}

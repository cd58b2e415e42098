use super::*;

#[test]
fn words_and_texts_alternate() {
    let parts = |text: &str| {
        read(text, Groups::None).map_or_else(|wrong| panic!("{}", wrong.why), |it| it.parts)
    };
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
fn some_words_are_followed_by_a_name() {
    for (text, word, name) in [
        ("{header:Origin}", NamedWord::Header, "Origin"),
        ("{cookie:__Host-a}", NamedWord::Cookie, "__Host-a"),
        ("{query:a[]}", NamedWord::Query, "a[]"),
        ("{map:cors.1}", NamedWord::Map, "cors.1"),
        ("{name:sub}", NamedWord::Name, "sub"),
    ] {
        let template = FieldTemplate::parse(text).unwrap();
        assert_eq!(template.parts(), [FieldPart::Named(word, name.to_owned())]);
        assert_eq!(template.parts()[0].to_string(), text);
    }
    for text in
        ["{header:}", "{header:a b}", "{query:a=b}", "{map:a/b}", "{name:1}", "{1}", "{sub}"]
    {
        assert!(FieldTemplate::parse(text).is_err(), "{text}");
    }
}

#[test]
fn groups_have_the_names_that_an_expression_gives_them() {
    let expression = Expression::new("(?<host>a)(?<b>c)?").unwrap();
    let groups = |text| group_template(text).unwrap().with_groups(&expression).map(|it| it.parts);
    let group = |name: &str| FieldPart::Group(name.to_owned());
    assert_eq!(groups("{0}{2}{b}").unwrap(), [group("0"), group("2"), group("b")]);
    assert_eq!(groups("{host}").unwrap(), [group("host")]);
    assert_eq!(groups("{scheme}").unwrap(), [FieldPart::Word(RequestWord::Scheme)]);
    assert_eq!(groups("{3}"), Err("3".to_owned()));
    assert_eq!(groups("{c}"), Err("c".to_owned()));
}

#[test]
fn no_line_can_be_added() {
    for text in ["a\r\nb: c", "{client_ip}\n", "a\u{7f}", "\u{85}"] {
        assert!(FieldTemplate::parse(text).is_err(), "{text:?}");
    }
}

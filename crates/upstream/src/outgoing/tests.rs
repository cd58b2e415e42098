use super::*;

#[test]
fn schemes_that_stand_for_a_whole_connection_are_known() {
    for value in
        ["NTLM TlRMTVNT", "negotiate", "Kerberos x", "Basic realm=\"a\", NTLM", "Basic x,Negotiate"]
    {
        assert!(binds_connection(value.as_bytes()), "{value}");
    }
    for value in ["", "Basic TlRMTQ==", "Bearer ntlm", "Digest a=b, c=negotiate", "NTLMv9"] {
        assert!(!binds_connection(value.as_bytes()), "{value}");
    }
}

#[test]
fn what_has_no_body_says_so_where_its_method_could_have_one() {
    for (method, framing, length, is_repeatable) in [
        ("POST", BodyFraming::None, Some("0"), false),
        ("PUT", BodyFraming::None, Some("0"), true),
        ("PUT", BodyFraming::Length(0), Some("0"), true),
        ("PUT", BodyFraming::Length(1), Some("1"), false),
        ("PUT", BodyFraming::Chunked, None, false),
        ("PATCH", BodyFraming::None, Some("0"), false),
        ("GET", BodyFraming::None, None, true),
        ("GET", BodyFraming::Length(0), Some("0"), true),
        ("HEAD", BodyFraming::None, None, true),
        ("DELETE", BodyFraming::None, None, true),
        ("OPTIONS", BodyFraming::None, None, true),
    ] {
        let client = ClientHost::Ip([127, 0, 0, 1].into());
        let mut request =
            OutgoingRequest::new(method, "/", "a", client, Duration::from_secs(1)).unwrap();
        request.announce_body(framing);
        let head = String::from_utf8(request.head().to_vec()).unwrap();
        let said: Vec<_> =
            head.lines().filter_map(|line| line.strip_prefix("content-length: ")).collect();
        assert_eq!(said, length.into_iter().collect::<Vec<_>>(), "{method} {framing:?}");
        assert_eq!(request.is_repeatable(), is_repeatable, "{method} {framing:?}");
    }
}

#[test]
fn a_program_is_told_the_same_where_its_request_was_ended_before_it_was_told_all() {
    for protocol in [BackendProtocol::FastCgi, BackendProtocol::Uwsgi, BackendProtocol::Scgi] {
        for framing in [BodyFraming::None, BodyFraming::Length(7)] {
            let client = ClientHost::Ip([127, 0, 0, 1].into());
            let request = || {
                let limit = Duration::from_secs(1);
                let host = Some("a.example");
                OutgoingRequest::to_program((protocol, true), "GET", host, client, limit).unwrap()
            };
            let mut at_once = request();
            let mut later = request().ended();
            at_once.announce_body(framing);
            at_once.parameter("A", "b");
            later.announce_body(framing);
            let mut later = later.ended();
            later.parameter("A", "b");
            assert_eq!(later.head(), at_once.head(), "{protocol:?} {framing:?}");
            let ended = at_once.clone().ended();
            assert_eq!(ended.head(), at_once.head(), "{protocol:?} {framing:?}");
            assert_eq!(ended.ended().head(), at_once.head(), "{protocol:?} {framing:?}");
        }
    }
}

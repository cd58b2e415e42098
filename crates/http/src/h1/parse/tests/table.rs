//! Whole requests as raw bytes, each with what the RFC makes of it, cut at every byte.

use super::*;
use RequestError::*;

/// The clause, the request, and the reason for refusing it.
const REFUSED: &[(&str, &[u8], RequestError)] = &[
    ("9112 §2.2 three empty lines", b"\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", LeadingLines),
    ("9112 §2.2 bare LF before the line", b"\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", LineEnding),
    ("9112 §2.2 bare CR before the line", b"\rGET / HTTP/1.1\r\nHost: a\r\n\r\n", LineEnding),
    ("9112 §2.2 bare LF after the line", b"GET / HTTP/1.1\nHost: a\r\n\r\n", LineEnding),
    ("9112 §2.2 bare CR after the line", b"GET / HTTP/1.1\rHost: a\r\n\r\n", LineEnding),
    ("9112 §2.2 two CR", b"GET / HTTP/1.1\r\r\nHost: a\r\n\r\n", LineEnding),
    ("9112 §2.2 bare LF after a field", b"GET / HTTP/1.1\r\nHost: a\nA: b\r\n\r\n", LineEnding),
    ("9112 §2.2 bare LF after the last field", b"GET / HTTP/1.1\r\nHost: a\n\r\n", LineEnding),
    ("9112 §2.2 bare LF at the end", b"GET / HTTP/1.1\r\nHost: a\r\n\n", LineEnding),
    ("9112 §2.2 bare LF only", b"GET / HTTP/1.1\nHost: a\n\n", LineEnding),
    ("9112 §2.2 bare CR in a value", b"GET / HTTP/1.1\r\nHost: a\r\nA: b\rc\r\n\r\n", FieldValue),
    ("9112 §2.2 space before the first field", b"GET / HTTP/1.1\r\n Host: a\r\n\r\n", FieldName),
    ("9112 §2.2 bare CR at the end", b"GET / HTTP/1.1\r\nHost: a\r\n\ra\r\n\r\n", LineEnding),
    ("9112 §3 no method", b" / HTTP/1.1\r\nHost: a\r\n\r\n", Method),
    ("9112 §3 method that is no token", b"G(T / HTTP/1.1\r\nHost: a\r\n\r\n", Method),
    ("9112 §3 method with NUL", b"GE\0T / HTTP/1.1\r\nHost: a\r\n\r\n", Method),
    ("9112 §3 tab for a space", b"GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", Method),
    (
        "9112 §3 method of 33 bytes",
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG / HTTP/1.1\r\nHost: a\r\n\r\n",
        MethodTooLong,
    ),
    (
        "9112 §3 two spaces before the target",
        b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
        TargetCharacter,
    ),
    ("9112 §3 two spaces after the target", b"GET /  HTTP/1.1\r\nHost: a\r\n\r\n", VersionSyntax),
    ("9112 §3 space in the target", b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", VersionSyntax),
    ("9112 §3 space after the version", b"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", LineEnding),
    ("9112 §3 HTTP/0.9", b"GET /\r\n", TargetCharacter),
    ("9112 §3.2 NUL in the target", b"GET /a\0 HTTP/1.1\r\nHost: a\r\n\r\n", TargetCharacter),
    ("9112 §3.2 DEL in the target", b"GET /a\x7f HTTP/1.1\r\nHost: a\r\n\r\n", TargetCharacter),
    ("9112 §3.2 tab in the target", b"GET /a\tb HTTP/1.1\r\nHost: a\r\n\r\n", TargetCharacter),
    ("9112 §3.2 CR in the target", b"GET /a\rb HTTP/1.1\r\nHost: a\r\n\r\n", TargetCharacter),
    (
        "9112 §3.2 UTF-8 in the target",
        b"GET /\xc3\xa9 HTTP/1.1\r\nHost: a\r\n\r\n",
        TargetCharacter,
    ),
    ("9112 §3.2 fragment in the target", b"GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", TargetCharacter),
    ("9112 §3.2.1 target without a slash", b"GET a HTTP/1.1\r\nHost: a\r\n\r\n", TargetForm),
    ("9112 §3.2.2 other scheme", b"GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", TargetForm),
    ("9112 §3.2.3 CONNECT", b"CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n", ConnectUnsupported),
    ("9112 §3.2.4 asterisk with GET", b"GET * HTTP/1.1\r\nHost: a\r\n\r\n", TargetForm),
    (
        "9110 §4.2.2 absolute without a host",
        b"GET http:/// HTTP/1.1\r\nHost: a\r\n\r\n",
        HostInvalid,
    ),
    ("9110 §4.2.4 user information", b"GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n", HostInvalid),
    ("9112 §2.3 no version", b"GET / \r\nHost: a\r\n\r\n", VersionSyntax),
    ("9112 §2.3 version in small letters", b"GET / http/1.1\r\nHost: a\r\n\r\n", VersionSyntax),
    ("9112 §2.3 version without a minor", b"GET / HTTP/1\r\nHost: a\r\n\r\n", VersionSyntax),
    ("9112 §2.3 version of two digits", b"GET / HTTP/11.1\r\nHost: a\r\n\r\n", VersionSyntax),
    ("9112 §2.3 minor of two digits", b"GET / HTTP/1.10\r\nHost: a\r\n\r\n", LineEnding),
    (
        "9112 §2.3 minor version that is no digit",
        b"GET / HTTP/1.x\r\nHost: a\r\n\r\n",
        VersionSyntax,
    ),
    (
        "9112 §2.3 major version that is no digit",
        b"GET / HTTP/x.1\r\nHost: a\r\n\r\n",
        VersionSyntax,
    ),
    ("9110 §15.6.6 HTTP/0.9 spelt out", b"GET / HTTP/0.9\r\nHost: a\r\n\r\n", VersionUnsupported),
    ("9110 §15.6.6 HTTP/2 preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", VersionUnsupported),
    ("9112 §5.1 space before the colon", b"GET / HTTP/1.1\r\nHost : a\r\n\r\n", FieldName),
    ("9112 §5.1 empty name", b"GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n", FieldName),
    ("9112 §5 line without a colon", b"GET / HTTP/1.1\r\nHost: a\r\nA\r\n\r\n", FieldName),
    ("9112 §5 NUL in a name", b"GET / HTTP/1.1\r\nHost: a\r\nA\0: b\r\n\r\n", FieldName),
    ("9112 §5 name in brackets", b"GET / HTTP/1.1\r\nHost: a\r\n(A): b\r\n\r\n", FieldName),
    ("9112 §5 name beyond ASCII", b"GET / HTTP/1.1\r\nHost: a\r\n\xe9: b\r\n\r\n", FieldName),
    ("9112 §5.2 folded line", b"GET / HTTP/1.1\r\nHost: a\r\nA: b\r\n c\r\n\r\n", FieldName),
    (
        "9112 §5.2 folded line with tab",
        b"GET / HTTP/1.1\r\nHost: a\r\nA: b\r\n\tc: d\r\n\r\n",
        FieldName,
    ),
    ("9112 §5.2 folded empty line", b"GET / HTTP/1.1\r\nHost: a\r\nA:\r\n \r\n\r\n", FieldName),
    ("9110 §5.5 NUL in a value", b"GET / HTTP/1.1\r\nHost: a\r\nA: b\0\r\n\r\n", FieldValue),
    ("9110 §5.5 control in a value", b"GET / HTTP/1.1\r\nHost: a\r\nA: \x01\r\n\r\n", FieldValue),
    ("9110 §5.5 DEL in a value", b"GET / HTTP/1.1\r\nHost: a\r\nA: b\x7f\r\n\r\n", FieldValue),
    ("9112 §3.2 no Host", b"GET / HTTP/1.1\r\n\r\n", HostMissing),
    ("9112 §3.2 no Host with an absolute target", b"GET http://a/ HTTP/1.1\r\n\r\n", HostMissing),
    ("9112 §3.2 two Hosts", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", HostRepeated),
    ("9112 §3.2 one Host twice", b"GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n", HostRepeated),
    (
        "9112 §3.2 two Hosts in HTTP/1.0",
        b"GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n",
        HostRepeated,
    ),
    ("9112 §3.2 Host with a path", b"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", HostInvalid),
    ("9112 §3.2 list of Hosts", b"GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", HostInvalid),
    ("9110 §4.2.2 empty Host", b"GET / HTTP/1.1\r\nHost:\r\n\r\n", HostInvalid),
    (
        "9112 §6.3 two lengths",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        ContentLengthRepeated,
    ),
    (
        "9112 §6.3 one length twice",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\ncontent-length: 1\r\n\r\n",
        ContentLengthRepeated,
    ),
    (
        "9112 §6.3 length and coding",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        TransferEncodingWithContentLength,
    ),
    (
        "9112 §6.3 coding and length",
        b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
        TransferEncodingWithContentLength,
    ),
    (
        "9112 §6.1 coding in HTTP/1.0",
        b"GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
        TransferEncodingInHttp10,
    ),
    (
        "9110 §4.2.2 climbing above the root",
        b"GET /../a HTTP/1.1\r\nHost: a\r\n\r\n",
        PathTraversal,
    ),
    ("3986 §2.1 half an escape", b"GET /%4 HTTP/1.1\r\nHost: a\r\n\r\n", PathEncoding),
    ("a TLS record", b"\x16\x03\x01\x02\x00\x01\x00", Method),
];

/// The clause, the request, and what is understood: method, host, path, framing.
const ACCEPTED: &[(&str, &[u8], &str)] = &[
    ("plain", b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET a / None"),
    ("9112 §2.2 one empty line", b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET a / None"),
    ("9112 §2.2 two empty lines", b"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET a / None"),
    ("9112 §3.2 no Host in HTTP/1.0", b"GET / HTTP/1.0\r\n\r\n", "GET - / None"),
    ("9110 §2.5 higher minor version", b"GET / HTTP/1.2\r\nHost: a\r\n\r\n", "GET a / None"),
    ("9110 §9.1 unknown method", b"BREW /pot HTTP/1.1\r\nHost: a\r\n\r\n", "BREW a /pot None"),
    ("9110 §9.1 methods have case", b"get / HTTP/1.1\r\nHost: a\r\n\r\n", "get a / None"),
    (
        "9112 §3.2.2 absolute target wins",
        b"GET http://b:8080/c?d HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET b /c None",
    ),
    (
        "9112 §3.2.2 absolute target, and a Host that says more",
        b"GET https://b/ HTTP/1.1\r\nHost: b:443\r\n\r\n",
        "GET b / None",
    ),
    (
        "9112 §3.2.2 absolute target without path",
        b"GET HTTPS://b?d HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET b / None",
    ),
    ("9112 §3.2.4 asterisk", b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS a / None"),
    ("9112 §5.1 space around a value", b"GET / HTTP/1.1\r\nHost:\t a \t\r\n\r\n", "GET a / None"),
    ("9112 §5.1 no space before a value", b"GET / HTTP/1.1\r\nhOST:a\r\n\r\n", "GET a / None"),
    ("9110 §5.5 empty value", b"GET / HTTP/1.1\r\nHost: a\r\nA:\r\n\r\n", "GET a / None"),
    (
        "9110 §5.5 value beyond ASCII",
        b"GET / HTTP/1.1\r\nHost: a\r\nA: \xff\xe9\r\n\r\n",
        "GET a / None",
    ),
    (
        "9112 §6.2 length",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
        "POST a / Length(5)",
    ),
    (
        "9112 §6.3 length with GET",
        b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
        "GET a / Length(5)",
    ),
    (
        "9112 §6.1 chunked",
        b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n",
        "POST a / Chunked",
    ),
    (
        "9112 §9.3.2 a second request follows",
        b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\n",
        "GET a /1 None",
    ),
];

#[test]
fn refused_requests_are_refused_for_their_reason_however_they_are_cut() {
    for (clause, bytes, error) in REFUSED {
        let outcome = assert_independent_of_fragmentation(bytes, &HeadLimits::default());
        assert_eq!(outcome, Err(*error), "{clause}");
    }
}

#[test]
fn accepted_requests_are_understood_however_they_are_cut() {
    for (clause, bytes, expected) in ACCEPTED {
        let outcome = assert_independent_of_fragmentation(bytes, &HeadLimits::default());
        let request = outcome.expect(clause).expect(clause);
        let host = request.host.as_deref().unwrap_or("-");
        let summary = format!("{} {host} {} {:?}", request.method, request.path, request.framing);
        assert_eq!(summary, *expected, "{clause}");
    }
}

//! The words of an error: in logs, in messages, and for callers that know only `std::io`.

use std::io::{self, ErrorKind};

use kettle_kernel::ktls::{KtlsError, KtlsStep};

use crate::control::{Alert, Violation};
use crate::handshake::HandshakeError;
use crate::records::RecordError;
use crate::stream::send::unread;
use crate::stream::{FileRecords, StreamError};

#[test]
fn each_has_a_word_a_sentence_and_a_kind() {
    let violation = Violation { alert: Alert::DECODE_ERROR, what: "a strange thing" };
    let refusal = KtlsError { step: KtlsStep::InstallTx, error: ErrorKind::Other.into() };
    let of_socket = |kind: ErrorKind| StreamError::from(io::Error::new(kind, "of a socket"));
    let rows = [
        (of_socket(ErrorKind::ConnectionReset), "reset", "of a socket", ErrorKind::ConnectionReset),
        (of_socket(ErrorKind::BrokenPipe), "broken_pipe", "of a socket", ErrorKind::BrokenPipe),
        (of_socket(ErrorKind::UnexpectedEof), "unexpected_eof", "", ErrorKind::UnexpectedEof),
        (of_socket(ErrorKind::TimedOut), "timed_out", "of a socket", ErrorKind::TimedOut),
        (of_socket(ErrorKind::NotConnected), "io", "of a socket", ErrorKind::NotConnected),
        (
            StreamError::Handshake(HandshakeError::NotTls),
            "not_tls",
            "does not answer in TLS",
            ErrorKind::InvalidData,
        ),
        (violation.into(), "a strange thing", "the peer: a strange", ErrorKind::InvalidData),
        (
            StreamError::AlertReceived(40),
            "alert_received",
            "alert 40 (HandshakeFailure)",
            ErrorKind::ConnectionAborted,
        ),
        (
            StreamError::AlertReceived(116),
            "certificate_required",
            "name one by `certificate`",
            ErrorKind::ConnectionAborted,
        ),
        (StreamError::Kernel(refusal), "other", "kernel TLS: other", ErrorKind::Other),
        (
            RecordError::KeyExhausted.into(),
            "key_exhausted",
            "a key reached its limit",
            ErrorKind::Other,
        ),
        (StreamError::Ended, "ended", "our side has ended", ErrorKind::Other),
        (RecordError::Overflow.into(), "internal", "a bug of kettle: what we", ErrorKind::Other),
    ];
    for (error, word, text, kind) in rows {
        assert_eq!(error.reason(), word);
        let line = error.to_string();
        assert!(line.contains(text), "{word}: {line}");
        let error = io::Error::from(error);
        assert_eq!((error.kind(), error.to_string()), (kind, line));
    }
}

#[test]
fn those_about_certificates_are_known() {
    let of_rustls = |error| StreamError::Handshake(HandshakeError::Rustls(error));
    let bad = rustls::Error::InvalidCertificate(rustls::CertificateError::Expired);
    assert!(of_rustls(rustls::Error::NoCertificatesPresented).is_about_certificate());
    assert!(of_rustls(bad).is_about_certificate());
    assert!(!of_rustls(rustls::Error::DecryptError).is_about_certificate());
    assert!(!StreamError::KeyExhausted.is_about_certificate());
}

#[test]
fn only_a_file_that_is_not_in_memory_is_cold() {
    let unread = |kind: ErrorKind| unread(kind.into());
    assert!(matches!(unread(ErrorKind::WouldBlock), FileRecords::Cold));
    assert!(matches!(unread(ErrorKind::Unsupported), FileRecords::Untold));
    let FileRecords::Failed(error) = unread(ErrorKind::IsADirectory) else { panic!() };
    assert_eq!(error.kind(), ErrorKind::IsADirectory);
}

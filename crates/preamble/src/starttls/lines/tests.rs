use proptest::prelude::*;

use super::super::tests::{End, told_text};
use super::LineProtocol::{Imap, Nntp, Pop3};
use super::*;

fn told(mut dialogue: impl Dialogue, pieces: &[&[u8]]) -> (String, End) {
    told_text(&mut dialogue, pieces.iter().copied())
}

fn server(protocol: LineProtocol, said: &str) -> (String, End) {
    told(LineServer::new(protocol), &[said.as_bytes()])
}

fn client(protocol: LineProtocol, said: &[&str]) -> (String, End) {
    let said: Vec<&[u8]> = said.iter().map(|it| it.as_bytes()).collect();
    told(LineClient::new(protocol), &said)
}

#[test]
fn a_client_that_asks_gets_tls() {
    for (protocol, said, expected) in [
        (
            Imap,
            "a1 capability\r\na2 STARTTLS\r\n",
            "* CAPABILITY IMAP4rev1 STARTTLS LOGINDISABLED\r\na1 OK done\r\na2 OK begin TLS\r\n",
        ),
        (Pop3, "CAPA\r\nstls\r\n", "+OK\r\nSTLS\r\n.\r\n+OK begin TLS\r\n"),
        (
            Nntp,
            "CAPABILITIES\r\nSTARTTLS\r\n",
            "101 capabilities\r\nVERSION 2\r\nSTARTTLS\r\n.\r\n382 begin TLS\r\n",
        ),
    ] {
        let (answer, end) = server(protocol, said);
        assert_eq!(end, Some(Ok(Next::Tls)), "{protocol:?}");
        let (_, behind) = answer.split_once("ready\r\n").unwrap();
        assert_eq!(behind, expected);
    }
}

#[test]
fn before_tls_nothing_else_is_served() {
    for (protocol, command, begins) in [
        (Imap, "a LOGIN me secret", "a NO "),
        (Imap, "a STARTTLS now", "a NO "),
        (Imap, "a", "a NO "),
        (Imap, "a noop", "a OK "),
        (Imap, "", "* BAD "),
        (Imap, "* STARTTLS", "* BAD "),
        (Imap, "+ STARTTLS", "* BAD "),
        (Imap, "\u{e4}\u{1b} STARTTLS", "* BAD "),
        (Pop3, "USER me", "-ERR "),
        (Pop3, "STLS now", "-ERR "),
        (Pop3, "", "-ERR "),
        (Nntp, "AUTHINFO USER me", "483 "),
        (Nntp, "", "483 "),
    ] {
        let (answer, end) = server(protocol, &format!("{command}\r\n"));
        let last = answer.lines().last().unwrap();
        assert!(last.starts_with(begins) && end.is_none(), "{command:?}: {last:?}, {end:?}");
    }
    for (protocol, command) in [(Imap, "a LOGOUT"), (Pop3, "QUIT"), (Nntp, "QUIT")] {
        assert_eq!(server(protocol, &format!("{command}\r\n")).1, Some(Ok(Next::End)));
    }
}

#[test]
fn what_stands_behind_the_command_is_not_taken_into_tls() {
    for (protocol, command) in [(Imap, "a STARTTLS"), (Pop3, "STLS"), (Nntp, "STARTTLS")] {
        for (behind, error) in [
            ("\r\nb NOOP\r\n", StartTlsError::SaidTooMuch),
            ("\r\n\u{16}", StartTlsError::SaidTooMuch),
            ("\n", StartTlsError::Malformed),
            ("\rx\r\n", StartTlsError::Malformed),
        ] {
            let (answer, end) = server(protocol, &format!("{command}{behind}"));
            assert_eq!(end, Some(Err(error)), "{behind:?}");
            assert!(answer.ends_with("this is no command\r\n"), "{answer}");
        }
        let many = "x NOOP\r\n".repeat(COMMANDS_MAX + 1);
        assert_eq!(server(protocol, &many).1, Some(Err(StartTlsError::TooMany)));
        assert_eq!(server(protocol, &"x".repeat(513)).1, Some(Err(StartTlsError::TooLong)));
    }
}

#[test]
fn a_server_is_asked_for_tls() {
    for (protocol, greeting, agreed, asked, passed_on) in [
        (
            Imap,
            "* OK [CAPABILITY IMAP4rev1 STARTTLS LOGINDISABLED] hi\r\n",
            "* CAPABILITY x\r\nk OK go\r\n",
            "k STARTTLS\r\n",
            "* OK IMAP4rev1 ready\r\n",
        ),
        (Pop3, "+OK hi <1@a>\r\n", "+OK go\r\n", "STLS\r\n", "+OK hi <1@a>\r\n"),
        (Nntp, "201 hi\r\n", "382 go\r\n", "STARTTLS\r\n", "201 hi\r\n"),
    ] {
        assert_eq!(
            client(protocol, &[greeting, agreed]),
            (asked.to_owned(), Some(Ok(Next::Tls))),
            "{protocol:?}"
        );
        let mut alone = LineClient::new(protocol);
        assert_eq!(alone.greeting(), b"");
        let (front, rest) = greeting.split_at(3);
        assert_eq!(alone.receive_greeting(front.as_bytes()), Ok(false));
        assert_eq!(alone.receive_greeting(rest.as_bytes()), Ok(true));
        assert_eq!(alone.greeting(), passed_on.as_bytes());
        // Whatever is said before it was asked for, or behind the word, is somebody else's (CVE-2021-38371 and its like).
        let too_early = format!("{greeting}{agreed}");
        let too_late = format!("{agreed}* x\r\n");
        for said in [&[too_early.as_str()][..], &[greeting, &too_late]] {
            assert_eq!(client(protocol, said).1, Some(Err(StartTlsError::SaidTooMuch)));
        }
    }
}

#[test]
fn a_server_without_tls_is_left() {
    for (protocol, said, words, goodbye) in [
        (Imap, &["* PREAUTH hi\r\n"][..], "* PREAUTH hi", "k LOGOUT\r\n"),
        (Imap, &["* BYE later\r\n"], "* BYE later", "k LOGOUT\r\n"),
        (Imap, &["* OKAY\r\n"], "* OKAY", "k LOGOUT\r\n"),
        (Imap, &["* OK hi\r\n", "k BAD what\r\n"], "k BAD what", "k LOGOUT\r\n"),
        (Imap, &["* OK hi\r\n", "a OK other\r\n"], "a OK other", "k LOGOUT\r\n"),
        (Pop3, &["-ERR busy\r\n"], "-ERR busy", "QUIT\r\n"),
        (Pop3, &["+OK hi\r\n", "-ERR no\r\n"], "-ERR no", "QUIT\r\n"),
        (Nntp, &["400 later\r\n"], "400 later", "QUIT\r\n"),
        (Nntp, &["200 hi\r\n", "580 no\r\n"], "580 no", "QUIT\r\n"),
    ] {
        let (answer, end) = client(protocol, said);
        assert_eq!(end, Some(Err(StartTlsError::Refused(words.to_owned()))));
        assert!(answer.ends_with(goodbye), "{answer}");
    }
    let endless = "* x\r\n".repeat(REPLY_LINES_MAX + 1);
    assert_eq!(client(Imap, &["* OK\r\n", &endless]).1, Some(Err(StartTlsError::TooMany)));
}

proptest! {
    #[test]
    fn the_same_is_said_however_it_arrives_and_noise_is_bounded(
        said in "(a (NOOP|STARTTLS|x)\r\n|STLS\r\n|\\* OK x\r\n|k OK\r\n|[ -~\r\n]{0,9}){0,6}",
        protocol in prop::sample::select(vec![Imap, Pop3, Nntp]),
        at in any::<prop::sample::Index>(),
    ) {
        let (front, rest) = said.as_bytes().split_at(at.index(said.len() + 1));
        let mut line = LineClient::new(protocol);
        let _ = line.receive(said.as_bytes(), &mut Vec::new());
        prop_assert!(line.line.0.len() <= REPLY_BYTES_MAX && line.greeting.len() <= REPLY_BYTES_MAX);
        let too_much = Some(Err(StartTlsError::SaidTooMuch));
        let at_once = server(protocol, &said);
        let in_pieces = told(LineServer::new(protocol), &[front, rest]);
        // Bytes that come only after our answer may be TLS.
        if at_once.1 != too_much {
            prop_assert_eq!(at_once, in_pieces);
        }
    }
}

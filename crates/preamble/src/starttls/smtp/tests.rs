use proptest::prelude::*;

use super::super::lines::COMMANDS_MAX;
use super::super::tests::{End, told_text as told};
use super::*;

fn server_told(received: &str) -> (String, End) {
    told(&mut Server::new("mx.example"), [received.as_bytes()])
}

/// The client's side of a conversation with a server that says these things, one at each of its turns.
fn client_told(said: &[&str]) -> (String, End) {
    told(&mut Client::new("us.example"), said.iter().map(|it| it.as_bytes()))
}

#[test]
fn a_client_that_asks_gets_tls() {
    let (answer, end) = server_told("EHLO them.example\r\nSTARTTLS\r\n");
    assert_eq!(end, Some(Ok(Next::Tls)));
    assert_eq!(
        answer,
        "220 mx.example ESMTP\r\n250-mx.example\r\n250 STARTTLS\r\n220 2.0.0 Ready to start TLS\r\n"
    );
}

#[test]
fn before_tls_nothing_else_is_served() {
    for (command, code) in [
        ("ehlo them", "250"),
        ("HELO them", "250"),
        ("EHLO", "501"),
        ("EHLO ", "501"),
        ("NOOP", "250"),
        ("noop please", "250"),
        ("RSET", "250"),
        ("MAIL FROM:<a@example>", "530"),
        ("RCPT TO:<a@example>", "530"),
        ("DATA", "530"),
        ("AUTH PLAIN AGEAYg==", "530"),
        ("VRFY root", "530"),
        ("STARTTLS now", "501"),
        ("QUIT now", "501"),
        ("STARTTLSX", "530"),
        ("", "530"),
        ("\u{e4}\0", "530"),
    ] {
        let (answer, end) = server_told(&format!("{command}\r\n"));
        let last = answer.lines().last().unwrap();
        assert!(last.starts_with(code) && end.is_none(), "{command:?}: {last:?}, {end:?}");
    }
}

#[test]
fn a_goodbye_is_answered() {
    let (answer, end) = server_told("QUIT\r\nEHLO x\r\n");
    assert!(answer.ends_with("\r\n221 2.0.0 Goodbye\r\n"), "{answer}");
    assert_eq!(end, Some(Ok(Next::End)));
}

#[test]
fn commands_behind_starttls_are_not_taken_into_tls() {
    for behind in ["RSET\r\n", "R", "\n", "\u{16}\u{3}\u{1}"] {
        let (answer, end) = server_told(&format!("EHLO x\r\nSTARTTLS\r\n{behind}"));
        assert_eq!(end, Some(Err(StartTlsError::SaidTooMuch)), "{behind:?}");
        assert!(answer.ends_with("\r\n554 5.5.0 Data behind STARTTLS\r\n"), "{answer}");
        assert!(!answer.contains("Ready"), "{answer}");
    }
}

#[test]
fn lines_end_in_one_way_and_soon() {
    for (line, error) in [
        ("STARTTLS\n", StartTlsError::Malformed),
        ("NOOP\rSTARTTLS\r\n", StartTlsError::Malformed),
        (&format!("NOOP {}\r\n", "x".repeat(506)), StartTlsError::TooLong),
        (&"x".repeat(513), StartTlsError::TooLong),
    ] {
        let (answer, end) = server_told(line);
        assert_eq!(end, Some(Err(error)), "{line:?}");
        assert!(answer.ends_with("\r\n500 5.5.2 Syntax error\r\n"), "{answer}");
    }
    assert_eq!(server_told(&format!("NOOP {}\r\n", "x".repeat(505))).1, None);
}

#[test]
fn nobody_talks_for_ever() {
    let (answer, end) = server_told(&"NOOP\r\n".repeat(COMMANDS_MAX));
    assert_eq!((end, answer.lines().count()), (None, COMMANDS_MAX + 1));
    let (answer, end) = server_told(&"NOOP\r\n".repeat(COMMANDS_MAX + 1));
    assert_eq!(end, Some(Err(StartTlsError::TooMany)));
    assert!(answer.ends_with("421 4.7.0 Too many commands\r\n"));
}

#[test]
fn a_server_that_offers_tls_is_asked_for_it() {
    let greeting = "220-mx.example ESMTP\r\n220 ready\r\n";
    let mut client = Client::new("us.example");
    let offer = "250-mx.example\r\n250-SIZE 1000\r\n250-starttls\r\n250 HELP\r\n";
    let said = [greeting, offer, "220 go\r\n"].map(str::as_bytes);
    let (answer, end) = told(&mut client, said);
    assert_eq!(end, Some(Ok(Next::Tls)));
    assert_eq!(answer, "EHLO us.example\r\nSTARTTLS\r\n");
    assert_eq!(client.greeting(), greeting.as_bytes());
}

#[test]
fn a_server_without_tls_is_left() {
    let refused = |said: &[&str]| match client_told(said) {
        (answer, Some(Err(StartTlsError::Refused(words)))) => {
            assert!(answer.ends_with("QUIT\r\n"), "{answer}");
            words
        }
        other => panic!("{other:?}"),
    };
    let hello = "220 hi\r\n";
    let offer = "250-mx\r\n250 STARTTLS\r\n";
    assert_eq!(refused(&["554 go\x1b away\r\n"]), "554 go\\x1b away");
    assert_eq!(refused(&[hello, "250 mx\r\n"]), "it does not offer STARTTLS");
    // Not an offer: the name of a server.
    assert_eq!(refused(&[hello, "250 STARTTLS\r\n"]), "it does not offer STARTTLS");
    assert_eq!(refused(&[hello, "502 what\r\n"]), "502 what");
    assert_eq!(refused(&[hello, offer, "454 not now\r\n"]), "454 not now");
}

#[test]
fn what_a_server_may_not_say() {
    let hello = "220 hi\r\n";
    let offer = "250-mx\r\n250 STARTTLS\r\n";
    let failure = |said: &[&str]| client_told(said).1.unwrap().unwrap_err();
    // Replies to what nobody asked yet: the response injection of CVE-2021-38371 and its like.
    assert_eq!(failure(&["220 hi\r\n250 x\r\n"]), StartTlsError::SaidTooMuch);
    assert_eq!(failure(&[hello, offer, "220 go\r\n250 x\r\n"]), StartTlsError::SaidTooMuch);
    assert_eq!(failure(&[hello, "250-mx\r\n251 STARTTLS\r\n"]), StartTlsError::Malformed);
    assert_eq!(failure(&["hello\r\n"]), StartTlsError::Malformed);
    assert_eq!(failure(&["22\r\n"]), StartTlsError::Malformed);
    assert_eq!(failure(&["220_hi\r\n"]), StartTlsError::Malformed);
    let endless = "220-hi\r\n".repeat(REPLY_LINES_MAX + 1);
    assert_eq!(failure(&[&endless]), StartTlsError::TooMany);
}

#[test]
fn a_greeting_is_taken_whole() {
    let mut greeting = Greeting::default();
    assert_eq!(greeting.receive(b"220-mx\r\n22"), Ok(false));
    assert_eq!(greeting.receive(b"0 ready\r\n"), Ok(true));
    let refused = Greeting::default().receive(b"421 later\r\n");
    assert_eq!(refused, Err(StartTlsError::Refused("421 later".to_owned())));
    let more = Greeting::default().receive(b"220 mx\r\n250 x\r\n");
    assert_eq!(more, Err(StartTlsError::SaidTooMuch));
}

/// The pieces between these places.
fn cut(whole: &[u8], at: Vec<prop::sample::Index>) -> Vec<&[u8]> {
    let mut ends: Vec<_> = at.iter().map(|it| it.index(whole.len() + 1)).collect();
    ends.push(whole.len());
    ends.sort_unstable();
    let starts = std::iter::once(0).chain(ends.iter().copied());
    starts.zip(&ends).map(|(start, end)| &whole[start..*end]).collect()
}

fn any_command() -> impl Strategy<Value = String> {
    prop_oneof![
        "(EHLO|helo|NOOP|RSET|MAIL|QUIT|STARTTLS)( [a-z]{0,8})?\r\n",
        "[ -~]{0,20}\r\n",
        "[a-z\r\n]{0,5}",
    ]
}

proptest! {
    #[test]
    fn the_same_is_said_however_commands_arrive(
        commands in prop::collection::vec(any_command(), 0..6),
        at in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let whole = commands.concat();
        let at_once = server_told(&whole);
        let in_pieces = told(&mut Server::new("mx.example"), cut(whole.as_bytes(), at));
        // Bytes that come only after our answer may be TLS.
        if !(at_once.1 == Some(Err(StartTlsError::SaidTooMuch)) && in_pieces.1 == Some(Ok(Next::Tls))) {
            prop_assert_eq!(at_once, in_pieces);
        }
    }

    #[test]
    fn the_same_is_understood_however_a_reply_arrives(
        reply in "(220|250|22)[ -][a-z\r]{0,8}(\r\n|\n)(220[ -][a-z]{0,8}\r\n)?",
        at in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        let at_once = told(&mut Client::new("us"), [reply.as_bytes()]);
        let in_pieces = told(&mut Client::new("us"), cut(reply.as_bytes(), at));
        if at_once.1 != Some(Err(StartTlsError::SaidTooMuch)) {
            prop_assert_eq!(at_once, in_pieces);
        }
    }

    #[test]
    fn noise_never_panics_and_is_bounded(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..700), 0..8)) {
        let pieces = || pieces.iter().map(Vec::as_slice);
        let mut server = Server::new("mx");
        let mut client = Client::new("us");
        told(&mut server, pieces());
        told(&mut client, pieces());
        prop_assert!(server.commands.line.0.len() <= LINE_BYTES_MAX && client.line.0.len() <= LINE_BYTES_MAX);
        prop_assert!(client.greeting.len() <= LINE_BYTES_MAX * REPLY_LINES_MAX);
    }
}

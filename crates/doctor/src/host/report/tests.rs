//! The screen about servers of several kinds.

use std::time::SystemTime;

use kettle_tls::connector::CertificateRefusal;
use kettle_tls::policy::Group;
use kettle_tls::{AlternativeName, Cipher, Version};

use super::super::facts::First;
use super::*;

/// A good server of today.
fn good() -> Facts {
    let day = Duration::from_secs(86_400);
    let leaf = PeerCertificate {
        subject: "CN=a.example".into(),
        issuer: "CN=Some CA,O=Example".into(),
        names: Box::new([AlternativeName::Dns("a.example".into())]),
        not_before: SystemTime::now() - day * 10,
        not_after: SystemTime::now() + day * 80 + Duration::from_secs(60),
        key_kind: None,
        is_self_issued: false,
        bytes: 900,
    };
    let above =
        PeerCertificate { subject: "CN=Some CA,O=Example".into(), bytes: 1_100, ..leaf.clone() };
    Facts {
        target: "a.example".parse().unwrap(),
        address: "192.0.2.1:443".parse().unwrap(),
        round_trip: Duration::from_micros(12_340),
        trust: Trust::Yes,
        chain: vec![leaf, above],
        first: First {
            version: Version::Tls13,
            suite: "TLS13_AES_128_GCM_SHA256",
            group: "X25519MLKEM768",
            alpn: Some("h2".to_owned()),
            is_retry: false,
        },
        wants_certificate: false,
        is_stapled: Some(false),
        tls13: version(Version::Tls13),
        tls12: VersionFacts {
            by_id: Some(second(Resumption::SessionId)),
            ..version(Version::Tls12)
        },
        groups: Group::ALL.into_iter().map(|group| (group, Ok(()))).collect(),
        hellos: vec![hello(false, "sent whole", Ok(())), hello(true, "sent whole", Ok(()))],
        is_cut_short: false,
    }
}

fn version(version: Version) -> VersionFacts {
    VersionFacts {
        full: Ok(SAMPLE),
        by_ticket: Some(second(Resumption::Ticket)),
        tickets: 2,
        ticket_lifetime: Duration::from_secs(7_200),
        suites: [Cipher::Aes128Gcm, Cipher::Aes256Gcm]
            .into_iter()
            .map(|one| (one, Ok(())))
            .collect(),
        ..VersionFacts::unknown(version)
    }
}

fn second(resumed: Resumption) -> Result<Second, Failure> {
    Ok(Second { resumed, sample: Sample { sent_bytes: 500, ..SAMPLE } })
}

fn hello(is_hybrid: bool, way: &'static str, taken: Taken) -> HelloTry {
    HelloTry { is_hybrid, hello_bytes: if is_hybrid { 1_480 } else { 258 }, way, taken }
}

fn refused() -> Failure {
    Failure::Alert("HandshakeFailure".to_owned())
}

/// The finding of that name, as it stands on the screen.
fn shown(facts: &Facts, check: &str) -> String {
    let report = HostReport::of(facts.clone());
    let text = report.render(Style::Plain);
    assert!(text.lines().all(|line| line.chars().count() <= render::COLUMNS_MAX), "{text}");
    let finding = report.findings().iter().find(|finding| finding.check == check);
    finding.map(|finding| render::finding(finding, Style::Plain)).unwrap_or_default()
}

/// Wherever lines are broken.
fn says(facts: &Facts, check: &str, words: &str) {
    let text = shown(facts, check);
    assert!(unwrapped(&text).contains(words), "no `{words}` in\n{text}");
}

fn unwrapped(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_good_server_fills_a_screen() {
    let report = HostReport::of(good());
    assert_eq!(report.render(Style::Plain), GOOD);
    assert!(report.findings().iter().all(|finding| finding.state == State::Good));
}

#[test]
fn what_is_not_resumed_is_told_with_what_to_do() {
    let full = || Some(second(Resumption::Full));
    let mut facts = good();
    facts.tls13 = VersionFacts { by_ticket: full(), tickets: 0, ..facts.tls13 };
    facts.tls12 = VersionFacts { by_ticket: full(), by_id: full(), tickets: 0, ..facts.tls12 };
    let text = shown(&facts, "resumption");
    assert!(text.contains("TLS 1.3 by ticket      ✗\n"), "{text}");
    assert!(unwrapped(&text).contains("each visit costs a full handshake"), "{text}");
    assert!(HostReport::of(facts.clone()).verdict().contains("and resumes no session: 1 thing"));

    facts.tls13.tickets = 2;
    let text = shown(&facts, "resumption");
    assert!(text.contains("✗  gives 2 tickets, takes none"), "{text}");
    assert!(unwrapped(&text).contains("need the same ticket keys"), "{text}");

    facts.tls13 = VersionFacts { full: Err(refused()), ..facts.tls13 };
    facts.tls12.by_id = Some(second(Resumption::SessionId));
    facts.tls13.tickets = 0;
    let text = shown(&facts, "resumption");
    assert!(text.starts_with("! resumption      by session ID only\n"), "{text}");
    assert!(unwrapped(&text).contains("turn on tickets"), "{text}");
}

#[test]
fn certificates_are_judged() {
    let mut facts = good();
    facts.trust = Trust::No(CertificateRefusal::UnknownIssuer { issuer: "CN=x".into() });
    says(&facts, "certificate", "SSL_CERT_FILE");
    facts.chain.truncate(1);
    says(&facts, "certificate", "the intermediate certificates");
    facts.chain[0].is_self_issued = true;
    says(&facts, "certificate", "get one from an authority");

    let mut facts = good();
    facts.chain[0].not_after = SystemTime::now() + Duration::from_secs(3 * 86_400 + 60);
    let text = shown(&facts, "certificate");
    assert!(text.starts_with("! ") && unwrapped(&text).contains("it ends in 3 days"), "{text}");
    facts.trust = Trust::Unknown;
    says(&facts, "certificate", "look why that was not done yet");
    facts.chain[1].is_self_issued = true;
    says(&facts, "chain", "1100 bytes in each full handshake for nothing");
}

#[test]
fn a_certificate_that_has_ended_gets_its_own_remedy() {
    let past = SystemTime::now() - Duration::from_secs(3 * 86_400 + 60);
    let renew = "renew it and reload the server; if it is renewed already, only the reload";
    let refusals = [
        Trust::No(CertificateRefusal::Expired(past)),
        // A certificate that vouches for itself and has ended: the issuer is found first.
        Trust::No(CertificateRefusal::UnknownIssuer { issuer: "CN=x".into() }),
        Trust::NoAuthorities("none".to_owned()),
        Trust::Unknown,
    ];
    for trust in refusals {
        let mut facts = Facts { trust, ..good() };
        facts.chain[0].not_after = past;
        let text = unwrapped(&shown(&facts, "certificate"));
        assert!(text.starts_with("✗ ") && text.contains("it ended 3 days ago"), "{text}");
        assert_eq!(text.matches(renew).count(), 1, "{text}");
        assert_eq!(HostReport::of(facts).worst(), State::Bad);
    }
    let mut facts = Facts { trust: Trust::No(CertificateRefusal::Expired(past)), ..good() };
    says(&facts, "certificate", "look at this machine's clock, and bring its authorities");
    facts.chain[1].not_after = past;
    says(&facts, "certificate", "not trusted: one that vouches for it has expired");
    says(&facts, "certificate", "send the authority's intermediate certificate of today");
}

#[test]
fn hellos_that_fail_are_told_one_by_one() {
    let mut facts = good();
    facts.hellos = vec![
        hello(false, "sent whole", Ok(())),
        hello(false, "split after byte 5", Err(Failure::TimedOut)),
        hello(false, "in two TLS records", Err(Failure::Reset)),
        hello(true, "sent whole", Err(Failure::Closed)),
    ];
    let text = shown(&facts, "split hello");
    assert!(text.contains("3 of 4 ways to send a hello fail"), "{text}");
    assert!(text.contains("split after byte 5                  no answer in time\n"), "{text}");
    assert!(text.contains("hybrid, sent whole                  closed\n"), "{text}");
    says(&facts, "split hello", "haproxy#3148");
    says(&facts, "split hello", "two TLS records, which");
}

#[test]
fn old_servers_are_told_what_they_lack() {
    let mut facts = good();
    facts.tls13 = VersionFacts { full: Err(refused()), ..VersionFacts::unknown(Version::Tls13) };
    drop(facts.groups.remove(0));
    facts.groups[2].1 = Err(refused());
    says(&facts, "versions", "(alert HandshakeFailure to TLS 1.3)");
    let text = shown(&facts, "groups");
    assert!(text.contains("X25519 ✓  P-256 ✓  P-384 ✗\n"), "{text}");
    assert!(!text.contains("turn on"), "{text}");
    facts.tls12.suites[0].1 = Err(refused());
    says(&facts, "suites", "allow AES-128-GCM");
    let json = HostReport::of(facts).json();
    assert_eq!(json["tls1.3"]["works"], false);
    assert_eq!(json["tls1.2"]["by_session_id"], true);
    assert_eq!(json["groups"][2]["reason"], "alert HandshakeFailure");

    let mut facts = good();
    facts.groups[0].1 = Err(refused());
    says(&facts, "groups", "turn on X25519MLKEM768");
    facts.groups[0].1 = Ok(());
    facts.first.is_retry = true;
    says(&facts, "groups", "which costs a round trip");
}

#[test]
fn names_of_strangers_do_not_move_the_cursor() {
    let mut facts = good();
    facts.chain[0].names = Box::new([AlternativeName::Dns("\x1b[2J\u{202e}evil".into())]);
    facts.first.alpn = Some("\x1b[2J".to_owned());
    let text = HostReport::of(facts).render(Style::Plain);
    assert!(!text.contains(['\x1b', '\u{202e}']), "{text}");
}

const SAMPLE: Sample =
    Sample { sent_bytes: 1_500, received_bytes: 3_000, duration: Duration::from_micros(25_000) };

const GOOD: &str = "\
kettle doctor on a.example:443 (192.0.2.1:443)

It speaks TLS 1.3 with TLS13_AES_128_GCM_SHA256 and X25519MLKEM768, and resumes
sessions by ticket, in TLS 1.2 by session ID too: nothing to mend.

✓ certificate     trusted; for a.example; a key of an unusual kind; it ends in
                  80 days
✓ chain           2 certificates, 2000 bytes; issued by CN=Some CA,O=Example; no
                  OCSP response
✓ versions        TLS 1.3 and TLS 1.2
✓ suites          TLS13_AES_128_GCM_SHA256 where all were offered
                  TLS 1.3  AES-128-GCM ✓  AES-256-GCM ✓
                  TLS 1.2  AES-128-GCM ✓  AES-256-GCM ✓
✓ groups          X25519MLKEM768 ✓  X25519 ✓  P-256 ✓  P-384 ✓
✓ ALPN            h2, of h2 and http/1.1
✓ resumption      by ticket, in TLS 1.2 by session ID too
                  TLS 1.3 by ticket      ✓  2 tickets, good for 2 hours
                  TLS 1.2 by ticket      ✓  2 tickets, good for 2 hours
                  TLS 1.2 by session ID  ✓
✓ on the wire     bytes of TLS in a handshake, tickets included; TCP connects in
                  12.3 ms; one sample each
                                        sent    received        time
                  TLS 1.3 full          1500        3000     25.0 ms
                  TLS 1.3 resumed        500        3000     25.0 ms
                  TLS 1.2 full          1500        3000     25.0 ms
                  TLS 1.2 resumed        500        3000     25.0 ms
✓ split hello     taken in all 2 ways: hellos of 258 and 1480 bytes, whole,
                  split after bytes 5, 6, half and all but one, in two records,
                  byte by byte
";

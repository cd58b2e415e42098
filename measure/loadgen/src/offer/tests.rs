use super::*;

fn offer(version: Version, group: Group, resume_by: ResumeBy) -> Offer {
    Offer { version, cipher: Cipher::Aes128Gcm, group, resume_by, http2: None }
}

fn refusal(offer: &Offer, host: &str) -> Option<String> {
    offer.dangerous_connector(host).err()
}

#[test]
fn combinations_that_do_not_exist_are_refused() {
    let rows = [
        (Version::Tls12, Group::X25519MlKem768, ResumeBy::Nothing, "TLS 1.3 only"),
        (Version::Tls12, Group::X25519, ResumeBy::EarlyData, "resume by ticket instead"),
        (Version::Tls13, Group::X25519, ResumeBy::SessionId, "resume by ticket instead"),
    ];
    for (version, group, resume_by, expected) in rows {
        let refused = refusal(&offer(version, group, resume_by), "localhost").unwrap();
        assert!(refused.contains(expected), "{refused}");
    }
}

#[test]
fn addresses_are_hosts_and_nonsense_is_not() {
    let offer = offer(Version::Tls13, Group::X25519, ResumeBy::Ticket);
    assert_eq!(refusal(&offer, "127.0.0.1"), None);
    assert_eq!(refusal(&offer, "::1"), None);
    assert!(refusal(&offer, "a b").unwrap().contains("a b"));
}

//! What a server is told of a connection before its first byte: the PROXY header.

use kettle_config::SendProxy;
use kettle_preamble::proxy::{TlsFacts, Tlv, write_v1, write_v2};
use kettle_tls::{Resumption, Session, Version};

use super::Peers;

/// The header for a client's connection; empty where none is sent.
pub(super) fn introduction(
    send_proxy: SendProxy,
    peers: &Peers,
    session: Option<&Session>,
    server_name: Option<&str>,
    number: u64,
) -> Vec<u8> {
    let mut header = Vec::new();
    let (source, destination) = (peers.client, peers.destination);
    match send_proxy {
        SendProxy::Off => {}
        SendProxy::V1 => write_v1(source, destination, &mut header),
        SendProxy::V2 => {
            // Unique on this machine: the process and the connection in it.
            let unique_id = format!("{:x}-{number:x}", std::process::id());
            let suite = session.map(openssl_suite);
            let mut tlvs = Vec::with_capacity(4);
            if let Some(session) = session {
                tlvs.extend(session.alpn.as_ref().map(|alpn| Tlv::Alpn(alpn.as_bytes())));
            }
            tlvs.extend(server_name.map(|name| Tlv::Authority(name.as_bytes())));
            tlvs.extend(session.map(|session| Tlv::Tls(facts(session, suite.as_deref()))));
            tlvs.push(Tlv::UniqueId(unique_id.as_bytes()));
            write_v2(Some((source, destination)), &tlvs, &mut header);
        }
    }
    header
}

fn facts<'s>(session: &'s Session, suite: Option<&'s str>) -> TlsFacts<'s> {
    let peer = session.peer.as_deref();
    TlsFacts {
        certificate_on_connection: peer.is_some() && session.resumed == Resumption::Full,
        certificate_in_session: peer.is_some(),
        // A certificate that is not good never gets here.
        verify_result: u32::from(peer.is_none()),
        version: Some(session.version_name().as_bytes()),
        common_name: peer.and_then(|peer| peer.common_name.as_deref()).map(str::as_bytes),
        cipher: suite.map(str::as_bytes),
    }
}

/// The suite's name as OpenSSL writes it, which is what receivers of the header know.
fn openssl_suite(session: &Session) -> String {
    if session.version == Version::Tls13 {
        return session.suite.replacen("TLS13_", "TLS_", 1);
    }
    let words = session.suite.trim_start_matches("TLS_").replace("_WITH_", "_");
    let words = words.replace("AES_128", "AES128").replace("AES_256", "AES256").replace('_', "-");
    // RFC 7905's names end in the hash, OpenSSL's do not.
    match words.strip_suffix("-SHA256") {
        Some(chacha) if chacha.ends_with("POLY1305") => chacha.to_owned(),
        _ => words,
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use kettle_preamble::proxy::{Endpoints, Parse, parse};
    use kettle_tls::{Alpn, Cipher};

    use super::*;

    fn session(version: Version, suite: &'static str) -> Session {
        Session {
            version,
            cipher: Cipher::Aes128Gcm,
            suite,
            group: "X25519",
            resumed: Resumption::Full,
            server_name: Some("a.example".into()),
            alpn: Some(Alpn::new(b"h2")),
            peer: None,
            ticket_epoch: None,
            audience: None,
        }
    }

    #[test]
    fn suites_have_the_names_that_openssl_prints() {
        for (version, suite, expected) in [
            (Version::Tls13, "TLS13_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256"),
            (Version::Tls13, "TLS13_CHACHA20_POLY1305_SHA256", "TLS_CHACHA20_POLY1305_SHA256"),
            (
                Version::Tls12,
                "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
                "ECDHE-RSA-AES256-GCM-SHA384",
            ),
            (
                Version::Tls12,
                "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
                "ECDHE-ECDSA-CHACHA20-POLY1305",
            ),
        ] {
            assert_eq!(openssl_suite(&session(version, suite)), expected);
        }
    }

    #[test]
    fn version_2_says_what_tls_agreed_on() {
        let address = |last, port| SocketAddr::from(([192, 0, 2, last], port));
        let (client, destination) = (address(1, 1000), address(2, 443));
        let peers = Peers { client, socket: address(3, 9), listener: destination, destination };
        let session = session(Version::Tls13, "TLS13_AES_128_GCM_SHA256");
        let name = Some("a.example");
        let header = introduction(SendProxy::V2, &peers, Some(&session), name, 9);
        let Ok(Parse::Complete { header, bytes }) = parse(&header) else { panic!() };
        assert!(bytes > 16);
        assert_eq!(header.endpoints, Endpoints::Inet { source: client, destination });
        let tlvs: Vec<_> = header.tlvs.iter().collect();
        assert!(tlvs.contains(&Tlv::Alpn(b"h2")) && tlvs.contains(&Tlv::Authority(b"a.example")));
        let facts = tlvs.iter().find_map(|tlv| match tlv {
            Tlv::Tls(facts) => Some(*facts),
            _ => None,
        });
        let facts = facts.unwrap();
        assert_eq!(facts.version, Some(b"TLSv1.3".as_slice()));
        assert_eq!(facts.cipher, Some(b"TLS_AES_128_GCM_SHA256".as_slice()));
        assert!(facts.verify_result != 0 && !facts.certificate_in_session);
        assert!(introduction(SendProxy::Off, &peers, None, None, 9).is_empty());
        let v1 = introduction(SendProxy::V1, &peers, None, None, 9);
        assert_eq!(v1, b"PROXY TCP4 192.0.2.1 192.0.2.2 1000 443\r\n");
    }
}

//! The PROXY header: the facts on a connection that a server gets before its first byte.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::LazyLock;

use kettle_config::{Backend, ProxyTlv, SendProxy};
use kettle_preamble::proxy::{self, Speaker, TlsFacts, Tlv, write_v1, write_v2};
use kettle_tls::mac::random;
use kettle_tls::{PeerIdentity, Resumption, Session, Version};

use super::Peers;

/// The header for a client's connection; empty where none is sent.
pub(super) fn introduction(
    backend: &Backend,
    peers: &Peers,
    destination: impl FnOnce() -> Option<SocketAddr>,
    session: Option<&Session>,
    server_name: Option<&str>,
    number: u64,
) -> Vec<u8> {
    let mut header = Vec::new();
    // One without an address is not named; that the server gets it from us it sees.
    let endpoints = || peers.client.socket().zip(destination());
    let is_v1_received = peers.header == Some(proxy::Version::V1);
    match backend.send_proxy {
        SendProxy::Off => {}
        SendProxy::Ip => header = ip_header(peers.client.host().ip()),
        SendProxy::V1 => write_v1(endpoints(), &mut header),
        SendProxy::AsReceived if is_v1_received => write_v1(endpoints(), &mut header),
        SendProxy::AsReceived | SendProxy::V2 => {
            let says = |tlv| backend.proxy_tlvs.contains(&tlv);
            let unique_id = format!("{:016x}-{number}", *PROCESS);
            let suite = session.map(openssl_suite);
            let alpn = session.and_then(|session| session.alpn.as_ref());
            let peer = session.and_then(|session| session.peer.as_deref());
            let certificate = peer.filter(|_| says(ProxyTlv::ClientCertificate));
            let pem = certificate.and_then(PeerIdentity::certificate_pem);
            let facts = session.map(|session| {
                let facts = facts(session, suite.as_deref());
                // One that is longer is nobody's name, and must not push out what else is said of TLS.
                let is_name = |name: &&[u8]| name.len() <= COMMON_NAME_BYTES_MAX;
                let common_name = facts.common_name.filter(|_| says(ProxyTlv::CommonName));
                let common_name = common_name.filter(is_name);
                TlsFacts { common_name, ..facts }
            });
            let tlvs: Vec<_> = [
                alpn.map(|alpn| Tlv::Alpn(alpn.as_bytes())).filter(|_| says(ProxyTlv::Alpn)),
                server_name
                    .map(|name| Tlv::Authority(name.as_bytes()))
                    .filter(|_| says(ProxyTlv::Authority)),
                pem.as_ref().map(|pem| Tlv::ClientCertificate(pem.as_bytes())),
                facts.map(Tlv::Tls).filter(|_| says(ProxyTlv::Tls)),
                Some(Tlv::UniqueId(unique_id.as_bytes())).filter(|_| says(ProxyTlv::UniqueId)),
            ]
            .into_iter()
            .flatten()
            .collect();
            write_v2(endpoints().map_or(Speaker::Nameless, Speaker::Client), &tlvs, &mut header);
        }
    }
    header
}

/// Returns the header of stud's and hitch's `write-ip`: the number of the address family on Linux, and the address.
/// There is no form for a client without one, so that it is 0.0.0.0.
fn ip_header(client: Option<IpAddr>) -> Vec<u8> {
    match client.unwrap_or(Ipv4Addr::UNSPECIFIED.into()) {
        IpAddr::V4(address) => [&[AF_INET], &address.octets()[..]].concat(),
        IpAddr::V6(address) => [&[AF_INET6], &address.octets()[..]].concat(),
    }
}

/// Tells this process from any other: in a container each has the same number.
static PROCESS: LazyLock<u64> = LazyLock::new(|| u64::from_be_bytes(random()));

/// RFC 5280 allows 64 characters.
const COMMON_NAME_BYTES_MAX: usize = 1_024;

const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;

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
    use std::net::Ipv6Addr;

    use kettle_config::ListenAddress;
    use kettle_runtime::client_address::ClientAddress;

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
            is_certificate_asked: false,
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
        let client = address(1, 1000);
        let destination = address(2, 443);
        let listener = destination.into();
        let socket = address(3, 9).into();
        let client_address = client.into();
        let peers =
            Peers { client: client_address, socket, listener, destination: None, header: None };
        let to = || Some(destination);
        let backend = |send_proxy| Backend { send_proxy, ..Backend::default() };
        let session = session(Version::Tls13, "TLS13_AES_128_GCM_SHA256");
        let name = Some("a.example");
        let header = introduction(&backend(SendProxy::V2), &peers, to, Some(&session), name, 1234);
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
        let unique_id = tlvs.iter().find_map(|tlv| match tlv {
            Tlv::UniqueId(id) => std::str::from_utf8(id).unwrap().split_once('-'),
            _ => None,
        });
        let (process, number) = unique_id.unwrap();
        assert_eq!((process.len(), number), (16, "1234"), "the number as the log has it");
        assert!(introduction(&backend(SendProxy::Off), &peers, to, None, None, 9).is_empty());
        let v1 = introduction(&backend(SendProxy::V1), &peers, to, None, None, 9);
        assert_eq!(v1, b"PROXY TCP4 192.0.2.1 192.0.2.2 1000 443\r\n");
        let ip = introduction(&backend(SendProxy::Ip), &peers, to, None, None, 9);
        assert_eq!(ip, [2, 192, 0, 2, 1]);
        assert_eq!(ip_header(Some(Ipv6Addr::LOCALHOST.into()))[..2], [10, 0]);
        let from_v1 = Peers { header: Some(proxy::Version::V1), ..peers };
        assert_eq!(introduction(&backend(SendProxy::AsReceived), &from_v1, to, None, None, 9), v1);
    }

    #[test]
    fn a_client_of_a_unix_socket_is_not_named() {
        let unix = ClientAddress::Unix;
        let listener = ListenAddress::Unix("/run/a".into());
        let peers = Peers { client: unix, socket: unix, listener, destination: None, header: None };
        let said = |send_proxy| {
            let backend = Backend { send_proxy, ..Backend::default() };
            introduction(&backend, &peers, || None, None, Some("a.example"), 9)
        };
        assert_eq!(said(SendProxy::V1), b"PROXY UNKNOWN\r\n");
        assert_eq!(said(SendProxy::Ip), [2, 0, 0, 0, 0]);
        let v2 = said(SendProxy::V2);
        let Ok(Parse::Complete { header, .. }) = parse(&v2) else { panic!() };
        assert_eq!(header.endpoints, Endpoints::Socket);
        assert!(header.tlvs.iter().any(|tlv| tlv == Tlv::Authority(b"a.example")));
    }

    #[test]
    fn version_2_says_no_more_than_it_may() {
        let address = SocketAddr::from(([192, 0, 2, 1], 443));
        let peers = Peers {
            client: address.into(),
            socket: address.into(),
            listener: address.into(),
            destination: None,
            header: None,
        };
        let session = session(Version::Tls13, "TLS13_AES_128_GCM_SHA256");
        let backend = |proxy_tlvs: &[ProxyTlv]| Backend {
            send_proxy: SendProxy::V2,
            proxy_tlvs: proxy_tlvs.to_vec(),
            ..Backend::default()
        };
        let kinds = |tlvs: &[ProxyTlv]| {
            let name = Some("a.example");
            let bytes =
                introduction(&backend(tlvs), &peers, || Some(address), Some(&session), name, 1);
            let Ok(Parse::Complete { header, .. }) = parse(&bytes) else { panic!() };
            header.tlvs.raw().map(|(kind, _)| kind).collect::<Vec<_>>()
        };
        assert!(kinds(&[]).is_empty());
        assert_eq!(kinds(&[ProxyTlv::Tls, ProxyTlv::Authority]), [0x02, 0x20]);
        assert_eq!(kinds(&Backend::default().proxy_tlvs), [0x01, 0x02, 0x20, 0x05]);
    }
}

//! The challenge of an authority, asked for by another program.

use std::future::poll_fn;
use std::net::TcpListener;
use std::process::{Command, Stdio};

use kettle_tls::stream::{Accepting, Handshaking};
use kettle_tls::{Acceptors, Challenges};

use crate::harness::{accepted, acceptor};

const KEY_AUTHORIZATION: &str = "token.thumbprint";

/// Answers one handshake; true if it was that of a challenge.
async fn answer(listener: &TcpListener, acceptors: &Acceptors) -> bool {
    let mut accepting = Accepting::begin(accepted(listener), &[], acceptors).unwrap();
    loop {
        if poll_fn(|context| accepting.poll_progress(context)).await.is_err() {
            return false;
        }
        match accepting.advance() {
            Handshaking::Continues(next) => accepting = next,
            Handshaking::Challenged(mut closing) => {
                poll_fn(|context| closing.poll_close(context)).await.unwrap();
                return true;
            }
            Handshaking::Failed(_, mut closing) => {
                let _ = poll_fn(|context| closing.poll_close(context)).await;
                return false;
            }
            Handshaking::Complete(_) | Handshaking::PlainHttp(..) => panic!("no challenge"),
        }
    }
}

#[tokio::test]
async fn openssl_sees_the_certificate_and_the_end() {
    let challenges = Challenges::default();
    challenges.present_tls_alpn("b.example", KEY_AUTHORIZATION).unwrap();
    let mut acceptors = Acceptors::new(acceptor());
    acceptors.answer(&challenges);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    for (version, name, is_known) in [
        ("-tls1_3", "b.example", true),
        ("-tls1_2", "b.example", true),
        ("-tls1_3", "c.example", false),
    ] {
        let client = Command::new("openssl")
            .args(["s_client", "-connect", &address, "-servername", name, version])
            .args(["-alpn", "acme-tls/1"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let Ok(client) = client else { return kettle_skip::skip("no openssl") };
        assert_eq!(answer(&listener, &acceptors).await, is_known, "{version} {name}");
        let output = client.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(said.contains("ALPN protocol: acme-tls/1"), is_known, "{said}");
        if !is_known {
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(said.contains("no application protocol"), "{said}");
            continue;
        }
        let shown = openssl_text(&said);
        assert!(shown.contains("DNS:b.example"), "{shown}");
        assert!(shown.contains("1.3.6.1.5.5.7.1.31: critical"), "{shown}");
    }
}

/// Returns the words of openssl on the certificate in this output.
fn openssl_text(said: &str) -> String {
    use std::io::Write as _;
    let mut shown = Command::new("openssl")
        .args(["x509", "-noout", "-text"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    shown.stdin.take().unwrap().write_all(said.as_bytes()).unwrap();
    String::from_utf8(shown.wait_with_output().unwrap().stdout).unwrap()
}

//! `openssl s_server` on the other side.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use super::*;
use crate::session::{Alpn, Resumption};

struct OpenSsl(Child);

impl Drop for OpenSsl {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server with these options, and its port; none where the program is missing.
fn s_server(options: &[&str]) -> Option<(OpenSsl, u16)> {
    let child = Command::new("openssl")
        .args(["s_server", "-accept", "127.0.0.1:0", "-rev"])
        .args(options)
        .stdout(Stdio::piped())
        .spawn();
    let mut server = match child {
        Ok(child) => OpenSsl(child),
        Err(error) => {
            kettle_skip::skip(&format!("no openssl ({error})"));
            return None;
        }
    };
    let output = BufReader::new(server.0.stdout.take().expect("a pipe"));
    // `ACCEPT 127.0.0.1:40123`
    let port = output.lines().find_map(|line| {
        line.expect("text").strip_prefix("ACCEPT")?.rsplit_once(':')?.1.parse().ok()
    });
    Some((server, port.expect("a port")))
}

#[tokio::test]
async fn openssl_is_trusted_by_roots_and_by_its_pin_and_resumed() {
    let authority = Authority::new("ca.example");
    let key = KeyPair::generate().expect("a key");
    let chain = authority.sign(&lasting(&["a.example"]), &key);
    let identity = Identity::from_pem(&chain, &key.serialize_pem()).expect("an identity");
    let files = Files::new();
    let chain = files.write("chain.pem", chain);
    let key = files.write("key.pem", key.serialize_pem());
    let options = ["-cert", chain.to_str().expect("text"), "-key", key.to_str().expect("text")];
    let Some((_server, port)) = s_server(&[&options[..], &["-alpn", "http/1.1"]].concat()) else {
        return;
    };
    let pinned = with_trust(Trust::pins(&[pin_of(&identity)]), None);
    for version in VERSIONS {
        for settings in [trusting(&authority), pinned.clone()] {
            let settings = ConnectorSettings { alpn: &[b"h2", b"http/1.1"], ..settings };
            let connector = connector(&only(version), settings);
            for expected in [Resumption::Full, Resumption::Ticket] {
                let socket = TcpStream::connect(("127.0.0.1", port)).await.expect("a connection");
                let mut stream = Stream::connect(socket, &connector).await.expect("a client");
                assert_eq!(stream.session().unwrap().resumed, expected, "{version:?}");
                assert_eq!(stream.session().unwrap().alpn, Some(Alpn::new(b"http/1.1")));
                assert!(stream.session().unwrap().peer.is_some());
                stream.seal(&[b"kettle\n"]).expect("a record");
                poll_fn(|context| stream.poll_flush(context)).await.expect("room");
                while stream.received().bytes().len() < 7 {
                    assert_eq!(fill(&mut stream).await.expect("a record"), Filled::Data);
                }
                assert_eq!(stream.received().bytes(), b"elttek\n");
            }
        }
    }
}

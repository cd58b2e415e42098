//! The two ends of a connection with TLS.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use kettle_tls::connector::{Connector, ConnectorSettings, ResumeBy, Trust};
use kettle_tls::identity::Identities;
use kettle_tls::policy::Policy;
use kettle_tls::stream::{Accepting, Handshaking, Stream};
use kettle_tls::tickets::SharedResumption;
use kettle_tls::{Acceptor, Acceptors, SiteGroup, Version, self_signed};
use tokio::net::{TcpListener, TcpStream};

/// The side that connected, and the one that accepted.
pub(super) async fn tls_pair(version: Version) -> (Box<Stream>, Box<Stream>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (connected, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
    tokio::join!(connect(connected.unwrap(), version), accept(accepted.unwrap().0))
}

async fn connect(socket: TcpStream, version: Version) -> Box<Stream> {
    #[expect(clippy::disallowed_methods, reason = "it is the server beside it")]
    let trust = Trust::dangerous_anyone();
    let name = Some("localhost");
    let resume_by = ResumeBy::Nothing;
    let settings = ConnectorSettings { trust, name, identity: None, alpn: &[], resume_by };
    let policy = Policy { versions: vec![version], ..Policy::default() };
    Stream::connect(socket, &Connector::new(&policy, settings).unwrap()).await.unwrap()
}

async fn accept(socket: TcpStream) -> Box<Stream> {
    let mut accepting = Accepting::begin(socket, &[], &acceptors()).unwrap();
    loop {
        poll_fn(|context| accepting.poll_progress(context)).await.unwrap();
        match accepting.advance() {
            Handshaking::Continues(next) => accepting = next,
            Handshaking::Complete(mut stream) => {
                // In TLS 1.2 the server has the last word.
                poll_fn(|context| stream.poll_flush(context)).await.unwrap();
                return stream;
            }
            _ => panic!("it fails"),
        }
    }
}

fn acceptors() -> Acceptors {
    let names = ["localhost".to_owned()];
    let mut identities = Identities::new();
    let identity = self_signed::generate_in_memory(&names).unwrap();
    identities.add_site(&names, true, vec![Arc::new(identity)]);
    let resumption = SharedResumption::new(Duration::from_secs(3_600), 64).unwrap();
    let group = SiteGroup::default();
    Acceptor::for_group(&Policy::default(), identities.into(), &resumption, &group).unwrap().into()
}

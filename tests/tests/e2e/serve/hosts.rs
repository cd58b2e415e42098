//! Hosts with one secret resume each other's sessions, and only those of the same audience.

use rustls::HandshakeKind;
use rustls::client::{Resumption, Tls12Resumption};

use super::*;

const BOTH_VERSIONS: [Suite; 2] = [TLS13_AES_128, TLS12_AES_128];

fn setup(secret: &str) -> Setup {
    Setup::default()
        .file("www/a", "content")
        .file("cluster.secret", secret.repeat(8))
        .set("tls", "ticket_secret = \"cluster.secret\"")
}

/// True if a connection to the first listener, which also fetches new tickets, was resumed.
fn resumes(dialer: &Dialer, kettle: &Kettle) -> bool {
    let mut client = dialer.connect(kettle.address());
    let kind = client.tls.handshake_kind();
    assert_eq!(client.get("/a").body, b"content");
    kind == Some(HandshakeKind::Resumed)
}

fn counted(kettle: &Kettle, outcome: &str) -> u64 {
    kettle.status(&format!("/total/ticket_epochs/{outcome}")).as_u64().unwrap_or_default()
}

fn dialer(suite: Suite) -> Dialer {
    let sessions = Resumption::in_memory_sessions(64);
    Dialer::suite(suite).resuming(sessions.tls12_resumption(Tls12Resumption::SessionIdOrTickets))
}

#[test]
fn hosts_with_one_secret_resume_each_others_sessions() {
    let [here, there] = ["secret"; 2].map(|secret| Kettle::start(setup(secret)));
    for suite in BOTH_VERSIONS {
        let dialer = dialer(suite);
        assert!(!resumes(&dialer, &here), "{}", suite.name);
        for host in [&there, &here, &there] {
            assert!(resumes(&dialer, host), "{}", suite.name);
        }
    }
    for (host, resumed) in [(&here, 2), (&there, 4)] {
        // A period may end between a ticket and its use.
        let [own, previous] = ["own", "previous"].map(|outcome| counted(host, outcome));
        assert_eq!((own + previous, counted(host, "none")), (resumed, 0));
    }
}

#[test]
fn host_with_another_secret_makes_a_full_handshake() {
    let [here, there] = ["secret", "Secret"].map(|secret| Kettle::start(setup(secret)));
    for suite in BOTH_VERSIONS {
        let dialer = dialer(suite);
        assert!(!resumes(&dialer, &here));
        assert!(!resumes(&dialer, &there), "{}", suite.name);
    }
    assert_eq!(counted(&there, "none"), 2);
}

#[test]
fn restarted_host_resumes_its_sessions() {
    let mut kettle = Kettle::start(setup("secret"));
    for suite in BOTH_VERSIONS {
        let dialer = dialer(suite);
        assert!(!resumes(&dialer, &kettle));
        kettle.restart();
        assert!(resumes(&dialer, &kettle), "{}", suite.name);
    }
}

#[test]
fn reload_with_another_secret_ends_sessions() {
    let kettle = Kettle::start(setup("secret"));
    let dialer = dialer(TLS13_AES_128);
    assert!(!resumes(&dialer, &kettle));
    let _ = kettle.ctl(&["reload"]).succeed();
    assert!(resumes(&dialer, &kettle), "the same secret");
    kettle.folder.replace("cluster.secret", "another".repeat(8));
    let _ = kettle.ctl(&["reload"]).succeed();
    assert!(!resumes(&dialer, &kettle), "another secret");
    assert!(resumes(&dialer, &kettle));
    kettle.folder.replace("cluster.secret", "short");
    kettle.ctl(&["reload"]).fail("a secret takes 32");
    assert!(resumes(&dialer, &kettle));
}

#[test]
fn session_of_one_listener_opens_no_other_on_another_host() {
    let host = || {
        let app = backend("app", "", &[Backend::echoing()]);
        let setup =
            setup("secret").listener("").listener("kind = \"tls\"\nbackend = \"app\"").more(&app);
        Kettle::start(setup)
    };
    let here = host();
    let there = host();
    for suite in BOTH_VERSIONS {
        let dialer = dialer(suite);
        assert!(!resumes(&dialer, &here));
        let tunnel = dialer.connect(there.addresses[1]);
        assert_eq!(tunnel.tls.handshake_kind(), Some(HandshakeKind::Full), "{}", suite.name);
    }
}

#[test]
fn session_without_a_certificate_opens_no_site_that_asks_for_one() {
    let authority = ClientAuthority::new("clients");
    let asking = setup("secret")
        .file("clients.pem", authority.pem())
        .site("client_auth = { mode = \"optional\", roots = \"clients.pem\" }");
    let [open, asking] = [setup("secret"), asking].map(Kettle::start);
    for suite in BOTH_VERSIONS {
        let dialer = dialer(suite);
        assert!(!resumes(&dialer, &open));
        assert!(!resumes(&dialer, &asking), "{}", suite.name);
        assert!(resumes(&dialer, &asking), "{}", suite.name);
    }
}

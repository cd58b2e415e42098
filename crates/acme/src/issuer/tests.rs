//! The issuer in this process, asked by a server that was taken over.

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::*;
use crate::plan::Installed;
use crate::protocol::End;
use crate::wishes::Wanted;

/// Two sockets that lead to each other.
fn pair() -> (OwnedFd, OwnedFd) {
    let flags = SocketFlags::CLOEXEC;
    socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap()
}

/// Runs an issuer that wants nothing, and asks it by `work`.
fn with_issuer<F: Future<Output = ()>>(work: impl FnOnce(End) -> F) {
    let folder = tempfile::tempdir().unwrap();
    let ((ours, its), (_warden, programs)) = (pair(), pair());
    let wishes = Wishes {
        certificates_group: None,
        state_directory: folder.path().to_owned(),
        authorities: Vec::new(),
        sites: Vec::new(),
        problems: vec!["something is wrong".to_owned()],
    };
    let issuer = std::thread::spawn(move || run(its, programs, wishes, || Ok(())));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { work(End::new(ours).unwrap()).await });
    // It has learnt by then that the server has gone, or is to read again.
    issuer.join().unwrap().unwrap();
}

async fn answer(end: &End) -> Report {
    loop {
        match end.receive::<Report>().await.unwrap() {
            Report::Begun { .. } | Report::Log { .. } => {}
            answer => return answer,
        }
    }
}

#[test]
fn a_server_that_was_taken_over_gets_no_order_for_another_name() {
    with_issuer(|end| async move {
        let site = || "bank.example".to_owned();
        for order in [
            Order::Renew { number: 7, site: site(), rehearse: false },
            Order::Renew { number: 7, site: site(), rehearse: true },
            Order::Forget { number: 7, site: site() },
            Order::Revoke { number: 7, site: site(), reason: None },
        ] {
            end.send(&order).await.unwrap();
            let Report::Done { number, is_refused, message } = answer(&end).await else {
                panic!("it is refused");
            };
            assert!(number == 7 && is_refused && message.contains("bank.example"), "{message}");
        }
    });
}

#[test]
fn what_a_configuration_keeps_from_being_asked_is_told() {
    with_issuer(|end| async move {
        loop {
            if let Report::Log { level, text } = end.receive().await.unwrap() {
                assert_eq!((level, &*text), (Level::Error, "something is wrong"));
                return;
            }
        }
    });
}

#[test]
fn a_status_of_no_sites_is_an_answer() {
    with_issuer(|end| async move {
        end.send(&Order::Status { number: 3, from: 0 }).await.unwrap();
        let expected = Report::Sites { number: 3, total: 0, from: 0, sites: Vec::new() };
        assert_eq!(answer(&end).await, expected);
    });
}

#[test]
fn a_reload_waits_for_records_that_are_on_their_way_but_not_for_ever() {
    let minutes = |all: &[u64]| finish_time(all.iter().copied().map(Duration::from_mins));
    assert_eq!(minutes(&[]), Duration::from_secs(30));
    assert_eq!(minutes(&[1, 2]), Duration::from_secs(150));
    assert_eq!(minutes(&[60]), Duration::from_secs(330));
}

/// A machine that slept goes on with the wait that it was in, and its clock is days ahead.
#[test]
fn a_clock_that_jumps_is_noticed_within_a_minute() {
    let text = "[[listener]]\naddress = \"0.0.0.0:443\"\n\
                [[acme]]\nname = \"own\"\ndirectory = \"https://ca.example/\"\naccept_terms = true\n\
                [[site]]\nnames = [\"example.org\"]\nacme = {}\n[[site.route]]\nroot = \"/srv\"\n";
    let config = kettle_config::parse(text, "/etc/kettle/kettle.toml".as_ref()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let ((_server, its), (_warden, programs)) = (pair(), pair());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let server = Server::new(its).unwrap();
        let warden = Warden::new(programs, server.clone()).unwrap();
        let state = StateFolder::open(folder.path()).unwrap();
        let mut issuer = Issuer::new(server, warden, state, Wanted::of(&config).read());
        issuer.leads = true;
        let now = SystemTime::now();
        issuer.sites[0].standing.installed = Some(Installed {
            not_before: now,
            not_after: now + Duration::from_hours(90 * 24),
            identifier: None,
            directory: issuer.shared.authorities[0].directory.clone(),
            lacks: Vec::new(),
            key: issuer.shared.sites[0].key_word.clone(),
        });
        assert!(issuer.look() <= TokioInstant::now() + Duration::from_mins(1));
        assert!(issuer.jobs.is_empty());
        issuer.clock.wall += Duration::from_hours(61 * 24);
        issuer.look();
        assert_eq!(issuer.jobs.len(), 1);
    });
}

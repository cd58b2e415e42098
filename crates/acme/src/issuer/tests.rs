//! The issuer in this process, asked by a server that was taken over.

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use super::*;
use crate::protocol::End;

/// Runs an issuer that wants nothing, and asks it by `work`.
fn with_issuer<F: Future<Output = ()>>(work: impl FnOnce(End) -> F) {
    let folder = tempfile::tempdir().unwrap();
    let pair = || {
        let flags = SocketFlags::CLOEXEC;
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap()
    };
    let ((ours, its), (_warden, programs)) = (pair(), pair());
    let wishes = Wishes {
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

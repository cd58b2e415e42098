use proptest::prelude::*;

use super::*;
use crate::scenario::options::Http;

fn with(effort: Effort) -> Options {
    Options { effort, ..Options::default() }
}

#[test]
fn a_first_look_is_one_case_of_every_server() {
    let Cells { cells, refused } = Cells::of(&with(Effort::Quick), 1);
    let names: Vec<_> = cells.iter().map(|cell| cell.subject.to_string()).collect();
    assert_eq!(names, ["kettle auto", "nginx user", "haproxy user", "hitch", "stunnel"]);
    for cell in &cells {
        assert_eq!(cell.per_session, [1, 4]);
        assert_eq!((cell.case.key, cell.case.workers), (CertificateKey::P256, 1));
        assert_eq!(cell.case.offer.version, Version::Tls13);
    }
    assert!(refused.is_empty());
}

#[test]
fn a_normal_look_adds_rsa() {
    let Cells { cells, .. } = Cells::of(&with(Effort::Normal), 1);
    let keys: Vec<_> = cells.iter().map(|cell| (cell.case.key, cell.per_session.len())).collect();
    assert_eq!(keys[0], (CertificateKey::P256, 4));
    assert_eq!(keys[keys.len() - 1], (CertificateKey::Rsa2048, 2));
    assert_eq!(keys.len(), 10);
}

#[test]
fn a_thorough_look_leaves_the_base_case_along_one_axis_at_a_time() {
    let Cells { cells, .. } = Cells::of(&with(Effort::Thorough), 6);
    let base = cells[0].case;
    let differences = |case: &Case| {
        usize::from(case.workers != base.workers)
            + usize::from(case.key != base.key)
            + usize::from(case.offer.cipher != base.offer.cipher)
            + usize::from(case.offer.group != base.offer.group)
            + usize::from(
                (case.offer.version, case.offer.resume_by)
                    != (base.offer.version, base.offer.resume_by),
            )
    };
    assert!(cells.iter().all(|cell| differences(&cell.case) <= 1));
    let mut cases: Vec<Case> = Vec::new();
    for cell in &cells {
        if !cases.contains(&cell.case) {
            cases.push(cell.case);
        }
    }
    assert_eq!(cases.len(), 1 + 3 + 4 + 2 + 2 + 2);
    assert!(cells.iter().any(|cell| cell.subject.to_string() == "nginx terminator"));
}

#[test]
fn named_axes_are_crossed() {
    let options = Options {
        keys: Some(vec![CertificateKey::P256, CertificateKey::Rsa2048]),
        suites: Some(vec![Cipher::Aes128Gcm, Cipher::Aes256Gcm]),
        servers: Some(vec![Program::Kettle]),
        per_session: Some(vec![1]),
        ..with(Effort::Quick)
    };
    let Cells { cells, .. } = Cells::of(&options, 1);
    assert_eq!(cells.len(), 4);
}

#[test]
fn more_workers_than_processors_are_refused_once_with_the_number() {
    let options = Options { workers: Some(vec![1, 6]), ..with(Effort::Quick) };
    let Cells { cells, refused } = Cells::of(&options, 1);
    assert!(cells.iter().all(|cell| cell.case.workers == 1));
    assert_eq!(refused.len(), 1);
    assert_eq!(refused[0].0, "6 workers");
    assert!(refused[0].1.contains("may have 1 of"));
}

#[test]
fn session_ids_are_asked_for_in_tls_1_2() {
    let options = Options {
        resume: Some(vec![ResumeBy::SessionId]),
        servers: Some(vec![Program::Nginx]),
        ..with(Effort::Quick)
    };
    assert_eq!(Cells::of(&options, 1).cells[0].case.offer.version, Version::Tls12);
    let refused = Cells::of(&Options { version: Some(Version::Tls13), ..options }, 1);
    assert_eq!((refused.cells.len(), refused.refused.len()), (0, 1));
}

#[test]
fn sessions_never_resumed_have_one_transaction() {
    let options = Options { resume: Some(vec![ResumeBy::Nothing]), ..with(Effort::Quick) };
    let Cells { cells, .. } = Cells::of(&options, 1);
    assert!(!cells.is_empty() && cells.iter().all(|cell| cell.per_session == [1]));
}

#[test]
fn a_server_without_bodies_of_its_own_only_stands_before_others() {
    let options = Options {
        roles: Some(vec![Role::Files]),
        servers: Some(vec![Program::Hitch, Program::Nginx]),
        ..with(Effort::Quick)
    };
    let Cells { cells, .. } = Cells::of(&options, 1);
    let names: Vec<_> = cells.iter().map(|cell| cell.subject.to_string()).collect();
    assert_eq!(names, ["nginx user"]);
}

#[test]
fn as_terminators_all_servers_stand_on_one_footing() {
    let options = Options { roles: Some(vec![Role::Terminator]), ..with(Effort::Quick) };
    let names = |options: &Options| -> Vec<String> {
        Cells::of(options, 1).cells.iter().map(|cell| cell.subject.to_string()).collect()
    };
    assert_eq!(
        names(&options),
        ["kettle terminator auto", "nginx terminator", "haproxy terminator", "hitch", "stunnel"]
    );
    let paths = Some(vec![SubjectPath::User, SubjectPath::KernelSplice]);
    let servers = Some(vec![Program::Kettle, Program::Nginx]);
    assert_eq!(
        names(&Options { paths, servers, ..options }),
        ["kettle terminator user", "kettle terminator kernel-splice", "nginx terminator"]
    );
}

proptest! {
    #[test]
    fn no_case_of_a_server_comes_twice(
        effort in prop::sample::select(vec![Effort::Quick, Effort::Normal, Effort::Thorough]),
        processors in 1_usize..8,
        workers in prop::option::of(prop::collection::vec(1_usize..8, 1..4)),
        per_session in prop::option::of(prop::collection::vec(0_u32..9, 1..4)),
        version in prop::option::of(prop::sample::select(Version::ALL.to_vec())),
    ) {
        let options = Options { workers, per_session, version, ..with(effort) };
        let Cells { cells, .. } = Cells::of(&options, processors);
        for (index, cell) in cells.iter().enumerate() {
            prop_assert!(cell.case.workers <= processors);
            prop_assert!(cell.per_session.iter().all(|k| *k >= 1));
            let again = |other: &Cell| (other.subject, other.case) == (cell.subject, cell.case);
            prop_assert_eq!(cells.iter().position(again), Some(index));
        }
    }
}

#[test]
fn every_case_is_measured_over_the_http_that_was_asked_for() {
    for (http, expected) in [(1, None), (2, Some(10))] {
        let http = Http { http, at_once: 10 };
        let Cells { cells, .. } = Cells::of(&Options { http, ..with(Effort::Thorough) }, 6);
        assert!(cells.iter().all(|cell| cell.case.offer.http2 == expected));
    }
}

//! An obstacle known beforehand is named with the version that has it.

use std::path::PathBuf;

use kettle_loadgen::offer::Offer;
use kettle_tls::Cipher;

use super::*;
use crate::peers::nginx_stream::NginxStream;
use crate::peers::release::Release;
use crate::peers::subject::CertificateKey;
use Program::*;

fn setup() -> Setup {
    Setup {
        cpus: vec![0],
        workers: 1,
        key: CertificateKey::P256,
        offer: Offer {
            version: Version::Tls13,
            cipher: Cipher::Aes128Gcm,
            group: Group::X25519,
            resume_by: ResumeBy::Ticket,
            http2: None,
        },
        resumes: true,
        site: PathBuf::from("/site"),
        backend: None,
        folder: PathBuf::from("/run"),
        config: None,
    }
}

fn found(program: Program, release: &str, openssl: &str) -> Found {
    Found {
        program,
        executable: PathBuf::from("/bin/true"),
        arguments: Vec::new(),
        environment: Vec::new(),
        version: format!("{program} {release}, OpenSSL {openssl}"),
        release: Release::parse(release),
        openssl: Release::parse(openssl),
        nginx_stream: NginxStream::Absent,
    }
}

fn subject(program: Program, path: SubjectPath, role: Role) -> Subject {
    Subject { program, path, role }
}

#[test]
fn what_everyone_can_do_is_available() {
    for program in [Kettle, Nginx] {
        let found = found(program, "9.9", "3.0.19");
        let subject = subject(program, SubjectPath::User, Role::Files);
        assert_eq!(unavailable(&subject, &found, &setup()), None, "{program}");
    }
}

#[test]
fn post_quantum_group_needs_a_new_openssl_and_tls13() {
    let mut setup = setup();
    setup.offer.group = Group::X25519MlKem768;
    let nginx = subject(Nginx, SubjectPath::User, Role::Files);
    let reason = unavailable(&nginx, &found(Nginx, "1.22.1", "3.0.19"), &setup).unwrap();
    assert_eq!(reason, "nginx 1.22.1, OpenSSL 3.0.19: X25519MLKEM768 needs OpenSSL 3.5");
    assert_eq!(unavailable(&nginx, &found(Nginx, "1.30.6", "3.6.5"), &setup), None);
    setup.offer.version = Version::Tls12;
    assert!(unavailable(&nginx, &found(Nginx, "1.30.6", "3.6.5"), &setup).is_some());
}

#[test]
fn an_nginx_from_before_kernel_tls_is_told_from_a_kernel_without() {
    let nginx = subject(Nginx, SubjectPath::KernelSendfile, Role::Files);
    let reason = unavailable(&nginx, &found(Nginx, "1.20.0", "3.0.19"), &setup()).unwrap();
    assert!(reason.contains("from 1.21.4 on"), "{reason}");
    let reason = unavailable(&nginx, &found(Nginx, "1.22.1", "1.1.1"), &setup()).unwrap();
    assert!(reason.contains("OpenSSL does from 3.0 on"), "{reason}");
}

#[test]
fn roles_and_paths_a_program_lacks_are_named() {
    for (program, path, role, word) in [
        (Kettle, SubjectPath::KernelSplice, Role::Files, "from a backend"),
        (Kettle, SubjectPath::KernelSendfile, Role::Terminator, "by user, kernel-splice or auto"),
        (Nginx, SubjectPath::User, Role::Terminator, "apt-get install libnginx-mod-stream"),
        (Haproxy, SubjectPath::KernelSplice, Role::Terminator, "kernel TLS"),
        (Kettle, SubjectPath::Plain, Role::Terminator, "plain HTTP"),
        (Nginx, SubjectPath::Auto, Role::Files, "does not choose"),
        (Hitch, SubjectPath::User, Role::Files, "only ends TLS"),
        (Haproxy, SubjectPath::KernelWrite, Role::Terminator, "kernel TLS"),
    ] {
        let reason =
            unavailable(&subject(program, path, role), &found(program, "9.9", "3.0.19"), &setup());
        assert!(
            reason.as_ref().is_some_and(|reason| reason.contains(word)),
            "{program}: {reason:?}"
        );
    }
}

#[test]
fn an_nginx_with_its_stream_module_terminates_but_takes_no_early_data() {
    let nginx = subject(Nginx, SubjectPath::User, Role::Terminator);
    let mut found = found(Nginx, "1.22.1", "3.0.19");
    found.nginx_stream = NginxStream::BuiltIn;
    let mut setup = setup();
    assert_eq!(unavailable(&nginx, &found, &setup), None);
    setup.offer.resume_by = ResumeBy::EarlyData;
    let reason = unavailable(&nginx, &found, &setup).unwrap();
    assert!(reason.ends_with("takes no early data for a stream"), "{reason}");
}

#[test]
fn ways_of_resuming_must_exist() {
    let mut setup = setup();
    setup.offer.resume_by = ResumeBy::EarlyData;
    let kettle = subject(Kettle, SubjectPath::User, Role::Files);
    assert!(unavailable(&kettle, &found(Kettle, "0.1.0", ""), &setup).is_some());
    setup.offer.resume_by = ResumeBy::SessionId;
    assert!(unavailable(&kettle, &found(Kettle, "0.1.0", ""), &setup).is_some());
    setup.resumes = false;
    assert_eq!(unavailable(&kettle, &found(Kettle, "0.1.0", ""), &setup), None);
}

#[test]
fn a_program_that_lacks_settings_of_the_template_is_too_old() {
    let nginx = subject(Nginx, SubjectPath::User, Role::Files);
    let reason = unavailable(&nginx, &found(Nginx, "1.18.0", "1.1.1"), &setup()).unwrap();
    assert_eq!(reason, "nginx 1.18.0, OpenSSL 1.1.1 is too old: version 1.19.5 is needed");
}

#[test]
fn haproxy_serves_what_fits_a_buffer() {
    let folder = tempfile::tempdir().unwrap();
    let mut setup = setup();
    setup.site = folder.path().to_owned();
    let haproxy = subject(Haproxy, SubjectPath::User, Role::Files);
    let found = found(Haproxy, "2.6.12", "3.0.19");
    std::fs::write(folder.path().join("20000"), vec![0; 20_000]).unwrap();
    let reason = unavailable(&haproxy, &found, &setup).unwrap();
    assert_eq!(reason, "HAProxy answers from a buffer, with at most 14336 bytes");
    std::fs::write(folder.path().join("1024"), vec![0; 1024]).unwrap();
    assert_eq!(unavailable(&haproxy, &found, &setup), None);
}

#[test]
fn workers_of_hitch_share_no_sessions() {
    let mut setup = setup();
    setup.offer.version = Version::Tls12;
    setup.offer.resume_by = ResumeBy::SessionId;
    let hitch = subject(Hitch, SubjectPath::User, Role::Terminator);
    let found = found(Hitch, "1.7.2", "3.0.19");
    assert_eq!(unavailable(&hitch, &found, &setup), None);
    setup.workers = 2;
    let reason = unavailable(&hitch, &found, &setup).unwrap();
    assert!(reason.ends_with("its workers share no sessions"), "{reason}");
}
